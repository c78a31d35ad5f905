package collector

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

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

// named reports whether the labels of a row of the part name its subject.
func (i identity) named(p part) bool {
	return i.namespace != "" && (!p.ofPod() || i.pod != "") && (!p.ofModel() || i.model != "")
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
	readings  readings         // of the turns of models
	unlabeled map[identity]int // rows without a subject, by the labels that they have
	warnings  []fleet.Missing
	failures  []failure
	since     time.Time  // answers that were sent before it say nothing about Prometheus now
	sorted    []identity // the subjects, once all answers are read
	answers   int        // sent since, with the failures
	scrapes   scrapeIntervals
	began     map[Pod]time.Time // of pods that began to serve lately
	// the end of the latest part of the error budget; zero if there is none
	partsUntil time.Time
	all        []*tables // of all windows, one of which has the parts of a namespace
}

func newTables(o Options, at time.Time) *tables {
	return &tables{options: o, at: at, facts: make(map[identity]*facts), readings: newReadings(o, at), unlabeled: make(map[identity]int)}
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
	t.readRows(a.rows)
}

// readRows reads the rows of an answer.
func (t *tables) readRows(found rows) {
	subjects := make([]*facts, len(found.subjects))
	of := func(r row) *facts {
		switch who := found.subjects[r.subject]; {
		case !who.named(r.part):
			t.unlabeled[who]++
			return nil
		case subjects[r.subject] == nil:
			subjects[r.subject] = t.about(who)
		}
		return subjects[r.subject]
	}
	for r := range found.all() {
		if r.part.ofScrapes() {
			continue
		}
		switch about := of(r); {
		case about == nil:
		case r.part.ofHistogram():
			about.addBucket(r.part, bucket{upper: r.bound, below: r.value})
		default:
			about.add(r.part, r.value)
		}
	}
	for _, r := range found.streams {
		switch about := of(r.row); {
		case about == nil:
		case r.part.ofLatencies():
			about.addBucketStream(r.part, bucketStream{upper: r.bound, values: r.values})
		default:
			about.addStream(r.part, r.values)
		}
	}
}

// about returns the facts about a subject.
func (t *tables) about(who identity) *facts {
	about := t.facts[who]
	if about == nil {
		about = newFacts(who)
		t.facts[who] = about
	}
	return about
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

// sortedIdentities returns the subjects of the answers, once all are read.
func (t *tables) sortedIdentities() []identity {
	if len(t.sorted) != len(t.facts) {
		t.sorted = slices.AppendSeq(make([]identity, 0, len(t.facts)), maps.Keys(t.facts))
		slices.SortFunc(t.sorted, identity.compare)
	}
	return t.sorted
}

func unixTime(seconds float64) time.Time {
	whole, fraction := math.Modf(seconds)
	return time.Unix(int64(whole), int64(math.Round(fraction*1e3))*int64(time.Millisecond)).UTC()
}
