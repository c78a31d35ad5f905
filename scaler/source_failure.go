package scaler

import (
	"cmp"
	"log/slog"
	"slices"
	"time"

	"github.com/wva-project/wva/fleet"
)

// prometheusSource is the source of a row of Missing about all queries. Rows about some of them
// have longer names.
const prometheusSource = "prometheus"

// sourceFailure is a failure to read metrics of the whole fleet. The zero value is none.
type sourceFailure struct {
	extent failureExtent
	since  time.Time // of the first cycle that failed so
	// recovered is the time from which the latest failure that ended, or became smaller, explains
	// no hold any more.
	recovered time.Time
}

// recovery is how long after a failure the metrics of a variant may still be missing because of it:
// engines have to be scraped again, and rates need a whole window.
const recovery = 5 * time.Minute

// failureExtent is how much fails.
type failureExtent int

const (
	noFailure         failureExtent = iota
	queriesFail                     // some queries are answered, and some are not
	prometheusMissing               // Prometheus is not reached
)

// explains reports whether a variant may be held with the code because of the failure. If some
// queries are answered, the others explain only missing metrics: samples that are old or invalid
// were read. Without Prometheus, answers from memory become old too. Invalid samples always have
// another cause.
func (f sourceFailure) explains(code fleet.Code) bool {
	switch f.extent {
	case prometheusMissing:
		return outage(code)
	case queriesFail:
		return code == fleet.CodeMetricsMissing
	default:
		return false
	}
}

// recoveryExplains reports whether a variant that was held because of the failure may still be.
func (f sourceFailure) recoveryExplains(code fleet.Code, now time.Time) bool {
	return now.Before(f.recovered) && outage(code)
}

// outage reports whether an outage of Prometheus may cause a hold with the code.
func outage(code fleet.Code) bool {
	switch code {
	case fleet.CodeMetricsMissing, fleet.CodeMetricsStale:
		return true
	default:
		return false
	}
}

// writeSources logs if Prometheus, or queries to it, begin to fail or are answered again. These
// lines stand for the variants that are held for that reason, and say how many lack metrics.
func (c *changeLog) writeSources(log *slog.Logger, change cycleChange) {
	now, rows, before := change.latest.plan.Time, hiding(change.missing), c.failure
	after := extentOf(rows)
	if after == before.extent {
		return
	}
	if after < before.extent {
		c.failure.recovered = now.Add(recovery)
	}
	c.failure.extent, c.failure.since = after, now
	held := c.heldForMetrics(change.latest)
	switch {
	case before.extent == prometheusMissing:
		log.Info("prometheus reachable again", "since", before.since, "duration", now.Sub(before.since), "held", held)
	case after == noFailure:
		log.Info("prometheus queries answered again", "since", before.since, "duration", now.Sub(before.since), "held", held)
	}
	switch after {
	case prometheusMissing:
		log.Warn("prometheus unreachable", "reason", rows[0].Reason, "since", now, "held", held)
	case queriesFail:
		sources := make([]string, len(rows))
		for i, row := range rows {
			sources[i] = row.Source
		}
		log.Warn("prometheus queries failing", "sources", sources, "reason", rows[0].Reason, "since", now, "held", held)
	case noFailure:
	}
}

// heldForMetrics counts the variants without usable metrics, dry runs included.
func (c *changeLog) heldForMetrics(latest *boardState) (held int) {
	for _, d := range latest.listed {
		if d.Held && c.ofMetrics(d.Reason.Code) {
			held++
		}
	}
	return held
}

// extentOf returns how much fails. Prometheus is unreachable if neither engines nor gateways can be
// queried, whatever the cause: each is a row.
func extentOf(rows []fleet.Missing) failureExtent {
	if len(rows) == 0 {
		return noFailure
	}
	fails := make(map[fleet.LoadSource]bool)
	for _, row := range rows {
		if row.Source == prometheusSource {
			fails[row.Hides] = true
		}
	}
	if fails[fleet.SourceEngine] && fails[fleet.SourceGateway] {
		return prometheusMissing
	}
	return queriesFail
}

// hiding returns the rows that make loads and usages incomplete, sorted: those about all queries
// are the first.
func hiding(missing []fleet.Missing) []fleet.Missing {
	rows := slices.DeleteFunc(slices.Clone(missing), func(m fleet.Missing) bool { return m.Hides == "" })
	slices.SortFunc(rows, func(a, b fleet.Missing) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Reason, b.Reason))
	})
	return rows
}
