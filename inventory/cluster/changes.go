package cluster

import (
	"slices"
	"sync"
)

// The causes of a change, as Run passes them on.
const (
	causeScaledObject = "scaledobject"
	causeWorkload     = "workload"
	causeAutoscaler   = "hpa"
	causeNode         = "node"
	causePod          = "pod"
	causeNamespace    = "namespace"
	causeConfig       = "config"
	causeWatch        = "watch"
)

// changes collects the causes of the next rebuild.
type changes struct {
	waiting chan struct{} // buffer of one: there is a cause

	mu     sync.Mutex
	causes map[string]bool
}

func newChanges() *changes {
	return &changes{waiting: make(chan struct{}, 1), causes: map[string]bool{}}
}

// note adds a cause. It never waits.
func (c *changes) note(cause string) {
	c.mu.Lock()
	c.causes[cause] = true
	c.mu.Unlock()
	select {
	case c.waiting <- struct{}{}:
	default:
	}
}

// take returns the first cause, in the order of the table of resources, and removes them all.
func (c *changes) take() string {
	select {
	case <-c.waiting:
	default:
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	causes := c.causes
	c.causes = map[string]bool{}
	if i := slices.IndexFunc(resources, func(r *watchedResource) bool { return causes[r.cause] }); i >= 0 {
		return resources[i].cause
	}
	return causeWatch
}

// lookupQueue is the objects whose scale subresource is to be read, each once.
type lookupQueue struct {
	ready chan struct{} // buffer of one: there is a lookup

	mu      sync.Mutex
	waiting []scaleLookup
}

func newLookupQueue() *lookupQueue { return &lookupQueue{ready: make(chan struct{}, 1)} }

// put replaces the lookups.
func (q *lookupQueue) put(open []scaleLookup) {
	q.mu.Lock()
	q.waiting = open
	q.mu.Unlock()
	if len(open) > 0 {
		select {
		case q.ready <- struct{}{}:
		default:
		}
	}
}

// next takes a lookup.
func (q *lookupQueue) next() (scaleLookup, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return scaleLookup{}, false
	}
	first := q.waiting[0]
	q.waiting = q.waiting[1:]
	return first, true
}
