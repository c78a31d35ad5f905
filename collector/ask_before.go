package collector

import (
	"context"
	"slices"
	"time"
)

// askBefore sends the queries by turns for those instants of turns that have no answer, such as
// those before this server was started. In other cycles there are none: the answers are kept. One
// after the other is sent, so that Prometheus has time for others; those that do not end before the
// deadline are read in the next cycles.
func (c *Collector) askBefore(ctx context.Context, queries []*asked, now time.Time, o Options) {
	turns := o.turns()
	for _, q := range slices.Backward(queries) {
		if !q.isByTurns() {
			continue
		}
		for _, at := range q.missing(turns.instants(c.instant(now), q.step), now, c.options.RetryAfter) {
			if ctx.Err() != nil {
				return
			}
			a := c.ask(ctx, q.query, at, o.Timeout)
			if q.triedBefore[at] = now; a.isComplete() {
				q.before = append(q.before, turns.rest(a, q.step))
			}
		}
	}
}

// ofTurns returns the complete answers of a query by turns.
func (a *asked) ofTurns() []answer {
	if !a.isByTurns() {
		return nil
	}
	answers := slices.Clone(a.before)
	if a.answer.isComplete() {
		answers = append(answers, a.answer)
	}
	return answers
}

// keepBefore keeps the rows of the latest answer that a turn may need later, before it is replaced.
func (a *asked) keepBefore(t turns, cycle time.Time) {
	if a.isByTurns() && a.answer.isComplete() {
		a.before = append(a.before, t.rest(a.answer, a.step))
		a.retain(t.instants(cycle, a.step))
	}
}

// retain drops the answers about instants that are not needed any more.
func (a *asked) retain(needed []time.Time) {
	a.before = slices.DeleteFunc(a.before, func(old answer) bool { return !slices.ContainsFunc(needed, old.at.Equal) })
}

// missing returns the instants without an answer that are not tried too recently.
func (a *asked) missing(needed []time.Time, now time.Time, retryAfter time.Duration) (missing []time.Time) {
	a.retain(needed)
	tried := a.triedBefore
	a.triedBefore = make(map[time.Time]time.Time)
	for _, at := range needed {
		if at.Equal(a.answer.at) || slices.ContainsFunc(a.before, func(old answer) bool { return old.at.Equal(at) }) {
			continue
		}
		last, found := tried[at]
		if found {
			a.triedBefore[at] = last
		}
		if !found || now.Sub(last) >= retryAfter || now.Before(last) {
			missing = append(missing, at)
		}
	}
	return missing
}
