package demo

import (
	"hash/fnv"
	"strings"

	"github.com/wva-project/wva/demo/promstore"
	"github.com/wva-project/wva/simulation"
)

// exposition returns what a target shows as the samples of a scrape, with the labels that Prometheus adds.
func exposition(target simulation.Target) []promstore.Sample {
	samples := make([]promstore.Sample, 0, len(target.Samples))
	for _, s := range target.Samples {
		labels := make([]promstore.Label, 0, len(s.Labels)+len(target.Labels))
		for _, l := range s.Labels {
			labels = append(labels, promstore.Label(l))
		}
		for _, l := range target.Labels {
			labels = append(labels, promstore.Label(l))
		}
		samples = append(samples, promstore.Sample{Name: s.Name, Labels: labels, Value: s.Value})
	}
	return samples
}

// isGateway reports whether a target is a gateway and no engine.
func isGateway(target simulation.Target) bool {
	return strings.HasSuffix(target.Name, "/inference-gateway")
}

// spread returns a number of seconds that differs from target to target, so that not all are scraped at once.
func spread(name string) int {
	hash := fnv.New32a()
	hash.Write([]byte(name))
	return int(hash.Sum32() % scrapePods)
}
