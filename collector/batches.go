package collector

import (
	"context"
	"slices"
	"time"

	"github.com/wva-project/wva/fleet"
)

// batch is queries that are sent side by side: those for scrape intervals, or else those about
// sources with one window of rates.
type batch struct {
	window            time.Duration // zero: the query for scrape intervals
	engines, gateways bool
}

// written is the queries of a batch with the windows of the cycle that they were written for.
type written struct {
	windows cycleWindows
	queries []*asked
}

// queries returns the queries of a batch, with the matchers that every series must meet.
func (b batch) queries(o Options) []*asked {
	queries, matchers := b.unmatched(o), o.matchers()
	for _, q := range queries {
		q.text = matchers.in(q.text)
	}
	return queries
}

func (b batch) unmatched(o Options) []*asked {
	engines, gateways := newExpressions(o), newGatewayExpressions(o)
	if b.window == 0 {
		return []*asked{{query: engines.intervalsQuery(gateways), hides: fleet.SourceEngine}}
	}
	var queries []*asked
	if b.engines {
		for _, q := range engines.queries() {
			queries = append(queries, &asked{query: q, hides: fleet.SourceEngine})
		}
	}
	queries = append(queries, &asked{query: engines.arrivalsQuery(gateways), hides: fleet.SourceEngine})
	if o.hasObjectives() {
		queries = append(queries, &asked{query: engines.latencyPartsQuery(gateways), hides: fleet.SourceEngine, settle: o.Window})
	}
	if b.gateways {
		for _, q := range gateways.queries() {
			queries = append(queries, &asked{query: q, hides: fleet.SourceGateway})
		}
	}
	return queries
}

// rewrite returns the queries of a batch. Those whose text is the same as before keep their
// answers. The sender of the turn calls it.
func (c *Collector) rewrite(b batch, o Options) []*asked {
	before, found := c.batches[b]
	if found && before.windows == o.windows() {
		return before.queries
	}
	queries := b.queries(o)
	for i, q := range queries { // there may be more or fewer than before
		if k := slices.IndexFunc(before.queries, func(old *asked) bool { return old.query == q.query }); k >= 0 {
			queries[i] = before.queries[k]
		}
	}
	c.batches[b] = written{windows: o.windows(), queries: queries}
	return queries
}

// intervalsPart is the part of the time-out of a query that the query for scrape intervals may
// take: the others wait for it.
const intervalsPart = 4

// scrapeIntervals asks for the scrape intervals, and forgets the queries with windows that are not
// used any more.
func (c *Collector) scrapeIntervals(ctx context.Context, now time.Time, o Options) (scrapeIntervals, answerOf) {
	limited := o
	limited.Timeout /= intervalsPart
	answered := c.answers(ctx, now, limited, batch{})[0]
	found := newScrapeIntervals(o, answered.answer)
	if answered.err == nil {
		c.forget(ctx, append(found.batches(), batch{}))
	}
	return found, answered
}

// forget drops the queries of all batches but those.
func (c *Collector) forget(ctx context.Context, used []batch) {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return
	}
	keep := make(map[batch]written, len(used))
	for _, b := range used {
		if queries, found := c.batches[b]; found {
			keep[b] = queries
		}
	}
	c.batches = keep
}
