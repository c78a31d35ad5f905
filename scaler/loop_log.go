package scaler

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/wva-project/wva/fleet"
)

// logChanges writes a line for each number that is not what it was: in the plan before, or else in the cluster.
func (l *Loop) logChanges(number uint64, before *edition) {
	after := l.options.Board.latest.Load()
	log := l.options.Logger.With("cycle", number)
	for _, d := range after.decisions {
		from, known := before.standing(d)
		if !d.Known || known && from == d.Replicas {
			continue
		}
		attributes := []any{"variant", d.Variant.String(), "to", d.Replicas, "reason", string(d.Reason.Code), "text", d.Reason.Text}
		if known {
			attributes = append(attributes, "from", from)
		}
		log.Info("target changed", attributes...)
	}
	held := after.plan.Held()
	log.Debug("cycle done", "decided", len(after.plan.Decisions)-held, "held", held, "cost", after.plan.Cost)
}

// logHidden says once that sources of metrics do not answer, and once that they do again, however many cycles that lasts.
func (l *Loop) logHidden(number uint64, before, after *fleet.Snapshot) {
	was, is := hidden(before), hidden(after)
	log := l.options.Logger.With("cycle", number)
	switch {
	case slices.EqualFunc(was, is, func(a, b fleet.Missing) bool { return a.Source == b.Source }):
	case len(is) == 0:
		log.Info("all metrics are observed again")
	default:
		sources := make([]string, len(is))
		for i, m := range is {
			sources[i] = m.Source
		}
		log.Warn("metrics cannot be observed, what depends on them is held", "sources", sources, "reason", is[0].Reason)
	}
}

// hidden returns, sorted by source, what of a snapshot's missing table makes its loads and usages incomplete.
func hidden(s *fleet.Snapshot) []fleet.Missing {
	if s == nil {
		return nil
	}
	rows := slices.DeleteFunc(slices.Clone(s.Missing), func(m fleet.Missing) bool { return m.Hides == "" })
	slices.SortFunc(rows, func(a, b fleet.Missing) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Reason, b.Reason))
	})
	return rows
}

// standing returns the number that stood for a variant before a new decision.
func (e *edition) standing(d fleet.Decision) (replicas int, known bool) {
	if old, found := e.lookup(d.Variant); found && old.Known {
		return old.Replicas, true
	}
	return d.Facts.Current, d.Facts.CurrentKnown
}

func (l *Loop) logFailure(number uint64, cause string, err error) {
	log := l.options.Logger.With("cycle", number, "cause", cause)
	if crash, crashed := errors.AsType[*panicError](err); crashed {
		log.Error("cycle crashed, the plan stands", "panic", fmt.Sprint(crash.value), "stack", crash.stack)
		return
	}
	log.Error("cycle failed, the plan stands", "error", err)
}
