package cluster

import (
	"context"
	"reflect"
	"slices"
	"time"

	"github.com/wva-project/wva/inventory"
)

const (
	// rebuildDelay is how long a change waits for others of its burst.
	rebuildDelay = 50 * time.Millisecond
	// maxRebuildDelay bounds the wait if rebuilding is slow: it then lasts as long as the last
	// rebuild, so that changes without end use at most half a processor.
	maxRebuildDelay = 2 * time.Second
)

// rebuild rebuilds the tables when an object has changed, until the context ends.
func (c *Cluster) rebuild(ctx context.Context, changed func(cause string)) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for took := time.Duration(0); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-c.changes.waiting:
		case <-timer.C:
		}
		timer.Reset(min(maxRebuildDelay, max(rebuildDelay, took)))
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		start := time.Now()
		cause := c.changes.take()
		wasSynced := c.isSynced()
		next, notify := c.publish(start)
		if !wasSynced {
			cause = causeWatch
		}
		took = time.Since(start)
		c.metrics.rebuilds.Observe(took.Seconds())
		if notify && changed != nil {
			changed(cause)
		}
		timer.Reset(next)
	}
}

// publish rebuilds the tables. It returns the time after which they have to be rebuilt even though
// nothing changes, and whether changed is to be called: not before every readable resource was
// read.
func (c *Cluster) publish(now time.Time) (next time.Duration, notify bool) {
	v := c.view(now)
	tables := v.tables()
	w := c.kindsOf(tables.Variants)
	c.setWanted(w)
	v.markUnnamed(w)
	open, next := v.lookupsDue(tables.Variants)
	c.scaleLookups.put(open)
	problems := slices.Concat(v.problems(tables.Variants), w.problems(v.kinds))
	wasSynced := c.isSynced()
	if wasSynced {
		if wait := c.withhold(v); wait > 0 {
			return wait, false
		}
	}
	isSynced := wasSynced || v.isComplete(w, tables.Variants)
	if isSynced {
		v.markUnreliable(&tables)
		if wait := c.confirmAutoscalers(tables.Variants, now, !wasSynced); wait > 0 {
			next = min(next, wait)
		}
	} else {
		tables = inventory.Tables{}
	}
	tables.Problems = append(tables.Problems, problems...)
	slices.SortFunc(tables.Problems, inventory.CompareProblems)
	before := c.tables.Swap(&tables)
	c.log(before, &tables)
	if isSynced && !wasSynced {
		close(c.synced)
		return next, true
	}
	return next, isSynced && !reflect.DeepEqual(*before, tables)
}

func (c *Cluster) isSynced() bool {
	select {
	case <-c.synced:
		return true
	default:
		return false
	}
}

// log logs each problem once, and once when it is solved.
func (c *Cluster) log(before, now *inventory.Tables) {
	for _, problem := range inventory.NewProblems(before.Problems, now.Problems) {
		c.options.Logger.Warn("problem in the cluster", "object", problem.Object, "problem", problem.Text, "remedy", problem.Remedy)
	}
	remains := func(object string) bool {
		return slices.ContainsFunc(now.Problems, func(p inventory.Problem) bool { return p.Object == object })
	}
	for _, problem := range inventory.NewProblems(now.Problems, before.Problems) {
		if remains(problem.Object) {
			continue // its text has changed
		}
		c.options.Logger.Info("problem in the cluster is solved", "object", problem.Object, "problem", problem.Text)
	}
}
