package collector

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/common/model"

	"github.com/wva-project/wva/engine"
	"github.com/wva-project/wva/fleet"
)

// identity is the subject of a row of an answer. A row about a model has no pod; a row about a pod
// alone has no model.
type identity struct{ namespace, pod, model string }

// String names the subject as people do.
func (i identity) String() string {
	pod := i.pod
	if pod == "" {
		pod = "an unnamed pod"
	}
	if i.namespace == "" {
		return pod
	}
	return i.namespace + "/" + pod
}

func (i identity) compare(other identity) int {
	return cmp.Or(
		cmp.Compare(i.namespace, other.namespace), cmp.Compare(i.pod, other.pod), cmp.Compare(i.model, other.model))
}

// tables puts the answers of the queries together.
type tables struct {
	options   Options
	at        time.Time
	facts     map[identity]*facts
	unlabeled map[identity]int // rows without a subject, by the labels that they have
	warnings  []fleet.Missing
	failures  []failure
	since     time.Time       // answers that were sent before it say nothing about Prometheus now
	answers   int             // sent since, with the failures
	blocks    []engine.Labels // of engines that have their KV cache size in labels
	scrapes   scrapeIntervals
	began     map[Pod]time.Time // of pods that began to serve lately
	// the end of the latest part of the error budget; zero if there is none
	partsUntil time.Time
}

func newTables(o Options, at time.Time) *tables {
	t := &tables{options: o, at: at, facts: make(map[identity]*facts), unlabeled: make(map[identity]int)}
	for _, e := range engine.Engines() {
		if e.Labels.BlockSize != "" {
			t.blocks = append(t.blocks, e.Labels)
		}
	}
	return t
}

// read reads the answer to one query, which hides a source of loads if it failed.
func (t *tables) read(query string, hides fleet.LoadSource, a answer) {
	if a.err != nil || !a.sent.Before(t.since) {
		t.answers++
	}
	if a.err != nil {
		t.failures = append(t.failures, failure{query: query, hides: hides, err: a.err})
		return
	}
	for _, warning := range a.warnings {
		if isAnnotation(warning) {
			continue
		}
		t.warnings = append(t.warnings, fleet.Missing{
			Source: querySource(query), Hides: hides,
			Reason: fmt.Sprintf("Prometheus warned that the answer is partial: %s; check its stores", beginningOf(warning)),
		})
	}
	if query == latencyParts {
		return // partial is unknown: readLatencies reads the latest complete answer
	}
	for _, sample := range a.samples {
		t.readSample(sample)
	}
	for _, stream := range a.streams {
		t.readStream(stream)
	}
}

// readSample reads one row.
func (t *tables) readSample(sample *model.Sample) {
	p, known := partNamed(string(sample.Metric[partLabel]))
	if !known {
		return // not one of ours: a proxy may add series of its own
	}
	value := float64(sample.Value)
	if p == kvBlocks {
		if value, known = t.blockTokens(sample.Metric); !known {
			return // an engine that has not counted its blocks yet
		}
	}
	about := t.about(p, sample.Metric)
	switch {
	case about == nil:
	case p.ofHistogram():
		about.addBucket(p, string(sample.Metric[model.BucketLabel]), value)
	default:
		about.add(p, value)
	}
}

// readStream reads one row of values at several instants.
func (t *tables) readStream(stream *model.SampleStream) {
	p, known := partNamed(string(stream.Metric[partLabel]))
	if !known {
		return
	}
	about := t.about(p, stream.Metric)
	switch {
	case about == nil:
	case p.ofLatencies():
		about.addBucketStream(p, string(stream.Metric[model.BucketLabel]), stream.Values)
	default:
		about.addStream(p, stream.Values)
	}
}

// about returns the facts about the pod or model that is the subject of a row; nil if its labels do
// not name one.
func (t *tables) about(p part, metric model.Metric) *facts {
	label := func(name string) string { return string(metric[model.LabelName(name)]) }
	who := identity{
		namespace: label(t.options.NamespaceLabel), pod: label(t.options.PodLabel), model: label(t.options.ModelLabel),
	}
	switch {
	case !p.ofModel():
		who.model = ""
	case p.ofGateway():
		who.pod, who.model = "", label(gatewayModelLabel)
	case !p.ofPod():
		who.pod = ""
	}
	if who.namespace == "" || (p.ofPod() && who.pod == "") || (p.ofModel() && who.model == "") {
		t.unlabeled[who]++
		return nil
	}
	about := t.facts[who]
	if about == nil {
		about = &facts{}
		t.facts[who] = about
	}
	return about
}

// blockTokens returns the KV cache size of an engine that has it in labels.
func (t *tables) blockTokens(metric model.Metric) (float64, bool) {
	for _, labels := range t.blocks {
		size, sizeErr := strconv.ParseFloat(string(metric[model.LabelName(labels.BlockSize)]), 64)
		count, countErr := strconv.ParseFloat(string(metric[model.LabelName(labels.BlockCount)]), 64)
		tokens := size * count
		if sizeErr == nil && countErr == nil && tokens > 0 && !math.IsInf(tokens, 0) {
			return tokens, true
		}
	}
	return 0, false
}

// newestSample returns the time of the most recent of the pods' oldest gauges.
func (t *tables) newestSample() (time.Time, bool) {
	var newest float64
	for _, about := range t.facts {
		if when, known := about.value(sampled); known {
			newest = max(newest, when)
		}
	}
	return unixTime(newest), newest > 0
}

// sortedIdentities returns the subjects of the answers.
func (t *tables) sortedIdentities() []identity {
	list := make([]identity, 0, len(t.facts))
	for who := range t.facts {
		list = append(list, who)
	}
	slices.SortFunc(list, identity.compare)
	return list
}

func unixTime(seconds float64) time.Time {
	whole, fraction := math.Modf(seconds)
	return time.Unix(int64(whole), int64(math.Round(fraction*1e3))*int64(time.Millisecond)).UTC()
}
