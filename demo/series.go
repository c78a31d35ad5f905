package demo

import (
	"hash/fnv"
	"strings"

	"github.com/wva-project/wva/demo/promstore"
	"github.com/wva-project/wva/simulation"
)

// scrapeSamples returns the samples of a scrape of a target, with the labels that Prometheus adds.
func scrapeSamples(target simulation.Target) []promstore.Sample {
	added := promstore.Labels("namespace", target.Namespace, "pod", target.Pod)
	samples := make([]promstore.Sample, 0, len(target.Samples))
	for _, s := range target.Samples {
		labels := make([]promstore.Label, 0, len(s.Labels)+len(added))
		for _, l := range s.Labels {
			labels = append(labels, promstore.Label(l))
		}
		samples = append(samples, promstore.Sample{Name: s.Name, Labels: append(labels, added...), Value: s.Value})
	}
	return samples
}

// isGateway reports whether a target is a gateway and not an engine.
func isGateway(target simulation.Target) bool {
	return strings.HasSuffix(target.Name, "/inference-gateway")
}

// scrapeOffset returns a number of seconds that differs from target to target, so that not all are
// scraped at once.
func scrapeOffset(name string) int {
	hash := fnv.New32a()
	hash.Write([]byte(name))
	return int(hash.Sum32() % scrapePods)
}
