package cluster

import (
	"fmt"
	"slices"
	"time"

	"github.com/wva-project/wva/fleet"
)

const (
	// mixedAfter is how far apart the objects of a variant may be read, its workload and its pods:
	// the longest time between two attempts of a watch, and as much again.
	mixedAfter = time.Minute
	// resyncLimit bounds how long the tables wait after an outage until all watches work again.
	resyncLimit = 10 * time.Second
	// catchUp is how long a watch that works again may need to deliver the changes that it missed.
	catchUp = time.Second
)

// retryFailing makes the failing watches try again at once: the cause of one failure has often been
// that of the others. A watch does not hasten itself.
func (c *Cluster) retryFailing() {
	for _, w := range c.runningWatches() {
		if w.state().health.failure == nil {
			continue
		}
		select {
		case w.retry <- struct{}{}:
		default:
		}
	}
}

// Behind returns a line for each watch that fails or has no list yet, sorted. It names resources,
// and no other objects.
func (c *Cluster) Behind() (lines []string) {
	for _, state := range c.watchStates() {
		switch failure := state.health.failure; {
		case failure != nil:
			lines = append(lines, fmt.Sprintf("watch of %s fails since %s", state.id, failure.since.UTC().Format("2006-01-02 15:04:05 UTC")))
		case !state.health.listed:
			lines = append(lines, fmt.Sprintf("watch of %s has no list yet", state.id))
		}
	}
	return lines
}

// withhold returns how long the tables stay as they are because the watches of a view have not
// caught up after an outage; zero if they are to be replaced.
func (c *Cluster) withhold(v *view) time.Duration {
	wait := v.awaitsResync()
	if c.withheld.IsZero() {
		c.withheld = v.now
	}
	wait = min(wait, c.withheld.Add(resyncLimit).Sub(v.now))
	if wait <= 0 {
		c.withheld = time.Time{}
		return 0
	}
	return wait
}

// awaitsResync returns how long watches may still need to show the same time again: one that has
// just recovered has changes to catch up on, and others may still fail because of the same outage.
// It is zero if there is nothing to wait for. Kinds of scale targets that come from
// CustomResourceDefinitions are not waited for: whoever owns one can make its watch fail.
func (v *view) awaitsResync() (wait time.Duration) {
	var failing time.Time // since when the first of them has failed
	for _, state := range v.states {
		if f := state.health.failure; f != nil && f.class == failedOtherwise && state.isShared() && (failing.IsZero() || f.since.Before(failing)) {
			failing = f.since
		}
	}
	for _, state := range v.states {
		recovered := state.health.recovered
		if recovered.IsZero() || state.health.failure != nil || !state.isShared() {
			continue
		}
		until := recovered.Add(catchUp)
		if !failing.IsZero() && recovered.After(failing) {
			until = recovered.Add(resyncLimit)
		}
		wait = max(wait, until.Sub(v.now))
	}
	return wait
}

// isShared reports whether the resource is one of the table of resources that variants of all
// tenants need.
func (s watchState) isShared() bool {
	return !s.unnamed && slices.Contains(resources, s.watchedResource)
}

// dependencies returns the watches that show a target, its pods and its variants.
func (v *view) dependencies(id fleet.TargetID) (states []watchState) {
	if state, watched := v.stateOf(v.kinds[kindOf(id)].resource, id.Namespace); watched {
		states = append(states, state)
	}
	for _, r := range resources {
		if !r.holdsVariants || !r.isWatched(v.options) {
			continue
		}
		if state, watched := v.stateOf(r.gvr, id.Namespace); watched {
			states = append(states, state)
		}
	}
	return states
}

// mixedReason returns why the objects of a target do not fit together: one of its watches fails,
// and another one has shown changes since. It is empty if they fit. If all watches fail, the
// objects are old, and of one time.
func (v *view) mixedReason(id fleet.TargetID) string {
	states := v.dependencies(id)
	for _, behind := range states {
		if behind.health.failure == nil {
			continue
		}
		limit := behind.health.knownAt().Add(mixedAfter)
		for _, ahead := range states {
			if ahead.health.changed.After(limit) {
				return "the watch of " + behind.id.name() + " fails, and " + ahead.id.name() + " have changed since; check WVA's role and the API server"
			}
		}
	}
	return ""
}

// knownAt returns when a target and its pods were last known; zero if they are known now.
func (v *view) knownAt(id fleet.TargetID) (earliest time.Time) {
	for _, state := range v.dependencies(id) {
		at := state.health.knownAt()
		if (state.isTarget || state.watchedResource == pods) && !at.IsZero() && (earliest.IsZero() || at.Before(earliest)) {
			earliest = at
		}
	}
	return earliest.UTC()
}
