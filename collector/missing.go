package collector

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/wva-project/wva/fleet"
)

// prometheusSource is the source of a row of Missing that no single query explains.
const prometheusSource = "prometheus"

func querySource(query string) string { return prometheusSource + " query " + query }

// failure is a query without an answer.
type failure struct {
	query string
	hides fleet.LoadSource
	err   error
}

// hidesEngines reports whether a query failed that hides engines.
func (t *tables) hidesEngines() bool {
	return slices.ContainsFunc(t.failures, func(f failure) bool { return f.hides == fleet.SourceEngine })
}

// missing returns everything that is not known, sorted by source. Queries that failed for one cause
// are one row for each source of loads that they hide.
func (t *tables) missing() []fleet.Missing {
	rows := slices.Concat(t.warnings, t.unlabeledRows(), t.failureRows())
	slices.SortStableFunc(rows, func(a, b fleet.Missing) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Hides, b.Hides))
	})
	return rows
}

// failureRows joins the failures of each source of loads that have one reason.
func (t *tables) failureRows() []fleet.Missing {
	t.unifyUnreachable()
	queries := make(map[fleet.Missing][]string) // by the row that they make, without its source
	alike := make(map[string]int)
	var rows []fleet.Missing
	for _, f := range t.failures {
		row := fleet.Missing{Reason: f.err.Error(), Hides: f.hides}
		if len(queries[row]) == 0 {
			rows = append(rows, row)
		}
		queries[row] = append(queries[row], f.query)
		if alike[row.Reason]++; isUnreachable(f.err) {
			alike[row.Reason] = t.answers // whatever was answered from memory
		}
	}
	for i, row := range rows {
		switch failed := queries[row]; {
		case alike[row.Reason] >= t.answers:
			rows[i].Source = prometheusSource
		case len(failed) == 1:
			rows[i].Source = querySource(failed[0])
		default:
			rows[i].Source = prometheusSource + " queries " + strings.Join(failed, ", ")
		}
	}
	return rows
}

// unifyUnreachable gives all failures of connections the most frequent cause: when Prometheus goes
// away, some connections break and others fail to open.
func (t *tables) unifyUnreachable() {
	times := make(map[string]int)
	var cause error
	for _, f := range t.failures {
		text := f.err.Error()
		if !isUnreachable(f.err) {
			continue
		}
		times[text]++
		if cause == nil || times[text] > times[cause.Error()] || times[text] == times[cause.Error()] && text < cause.Error() {
			cause = f.err
		}
	}
	for i, f := range t.failures {
		if isUnreachable(f.err) {
			t.failures[i].err = cause
		}
	}
}

// unlabeledRows returns a row if series lack the labels of a subject. The copies of engines' series
// that a router exposes under its own pod lack the model on purpose: the engines are scraped
// themselves.
func (t *tables) unlabeledRows() []fleet.Missing {
	copies := make(map[identity]bool) // pods, and their namespaces with an empty pod
	for who, about := range t.facts {
		if about.has(copied) {
			copies[who], copies[identity{namespace: who.namespace}] = true, true
		}
	}
	var subjects []identity
	series := 0
	for who, rows := range t.unlabeled {
		if who.namespace == "" || !copies[who] {
			subjects = append(subjects, who)
			series += rows
		}
	}
	if series == 0 {
		return nil
	}
	return []fleet.Missing{{Source: prometheusSource, Reason: fmt.Sprintf(
		"%d series lack one of the labels %s, %s and %s, such as those of %s; add them by relabeling the scrape, or set prometheus.labels",
		series, t.options.NamespaceLabel, t.options.PodLabel, t.options.ModelLabel, slices.MinFunc(subjects, identity.compare))}}
}
