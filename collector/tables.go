package collector

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/wva-project/wva/fleet"
)

// identity is whom a row of an answer is about. A row about a model has no pod; a row about a pod alone has no model.
type identity struct{ namespace, pod, model string }

func (i identity) compare(other identity) int {
	return cmp.Or(
		cmp.Compare(i.namespace, other.namespace), cmp.Compare(i.pod, other.pod), cmp.Compare(i.model, other.model))
}

// tables puts the answers of the queries together.
type tables struct {
	options Options
	at      time.Time
	facts   map[identity]*facts
	missing []fleet.Missing
}

func newTables(o Options, at time.Time) *tables {
	return &tables{options: o, at: at, facts: make(map[identity]*facts)}
}

// take reads one answer. The source names it in Missing, with what is hidden where it failed.
func (t *tables) take(source string, hides fleet.LoadSource, a answer) {
	if a.err != nil {
		t.missing = append(t.missing, fleet.Missing{Source: source, Reason: a.err.Error(), Hides: hides})
		return
	}
	for _, warning := range a.warnings {
		t.miss(source, fmt.Sprintf("Prometheus warned that the answer may be incomplete: %s", warning))
	}
	nameless := 0
	for _, sample := range a.samples {
		if !t.takeSample(sample) {
			nameless++
		}
	}
	for _, stream := range a.streams {
		if !t.takeStream(stream) {
			nameless++
		}
	}
	if nameless > 0 {
		t.miss(source, fmt.Sprintf("%d series lack one of the labels %s, %s and %s; add them by relabeling the scrape, or set the label names",
			nameless, t.options.NamespaceLabel, t.options.PodLabel, t.options.ModelLabel))
	}
}

// miss notes something that hides nothing by itself.
func (t *tables) miss(source, reason string) {
	t.missing = append(t.missing, fleet.Missing{Source: source, Reason: reason})
}

// takeSample reads one row, and says false where it does not say whom it is about.
func (t *tables) takeSample(sample *model.Sample) bool {
	p, known := partNamed(string(sample.Metric[partLabel]))
	if !known {
		return true // not one of ours: a proxy may add series of its own
	}
	value := float64(sample.Value)
	if p == kvBlocks {
		if value, known = blockTokens(sample.Metric); !known {
			return true // an engine that has not counted its blocks yet
		}
	}
	about := t.about(p, sample.Metric)
	switch {
	case about == nil:
		return false
	case p.ofHistogram():
		about.addBucket(p, string(sample.Metric[model.BucketLabel]), value)
	default:
		about.add(p, value)
	}
	return true
}

// takeStream reads one row of values at several instants, and says false where it does not say whom it is about.
func (t *tables) takeStream(stream *model.SampleStream) bool {
	p, known := partNamed(string(stream.Metric[partLabel]))
	if !known {
		return true
	}
	about := t.about(p, stream.Metric)
	if about != nil {
		about.addStream(p, stream.Values)
	}
	return about != nil
}

// about returns what is known of the pod or model that a row is about; nil where its labels do not say which that is.
func (t *tables) about(p part, metric model.Metric) *facts {
	label := func(name string) string { return string(metric[model.LabelName(name)]) }
	who := identity{
		namespace: label(t.options.NamespaceLabel), pod: label(t.options.PodLabel), model: label(t.options.ModelLabel),
	}
	switch {
	case p == kvBlocks:
		who.model = ""
	case p.ofGateway():
		who.pod, who.model = "", label(gatewayModelLabel)
	case !p.ofPod():
		who.pod = ""
	}
	if who.namespace == "" || (p.ofPod() && who.pod == "") || (p != kvBlocks && who.model == "") {
		return nil
	}
	about := t.facts[who]
	if about == nil {
		about = &facts{}
		t.facts[who] = about
	}
	return about
}

// blockTokens returns the room of an engine's KV cache, which vLLM writes into labels.
func blockTokens(metric model.Metric) (float64, bool) {
	size, sizeErr := strconv.ParseFloat(string(metric[blockSize]), 64)
	count, countErr := strconv.ParseFloat(string(metric[blockCount]), 64)
	tokens := size * count
	return tokens, sizeErr == nil && countErr == nil && tokens > 0 && !math.IsInf(tokens, 0)
}

// newestSample returns when the youngest of the pods' oldest gauges was scraped.
func (t *tables) newestSample() (time.Time, bool) {
	var newest float64
	for _, about := range t.facts {
		if when, known := about.value(sampled); known {
			newest = max(newest, when)
		}
	}
	return unixTime(newest), newest > 0
}

func (t *tables) sortedMissing() []fleet.Missing {
	slices.SortStableFunc(t.missing, func(a, b fleet.Missing) int { return strings.Compare(a.Source, b.Source) })
	return t.missing
}

// sortedIdentities returns whom the answers are about.
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
