package inventory

import (
	"slices"
	"sync"
)

// The causes of a change, as Run tells them.
const (
	causeScaledObject = "scaledobject"
	causeWorkload     = "workload"
	causeAutoscaler   = "hpa"
	causeNode         = "node"
	causePod          = "pod"
	causeNamespace    = "namespace"
	causeWatch        = "watch"
)

// changes collects why the tables have to be made anew.
type changes struct {
	waiting chan struct{} // holds one while there is a cause

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

// take returns the first cause, in the order in which they stand above, and forgets them all.
func (c *changes) take() string {
	select {
	case <-c.waiting:
	default:
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	causes := c.causes
	c.causes = map[string]bool{}
	order := []string{causeScaledObject, causeWorkload, causeAutoscaler, causeNode, causePod, causeNamespace}
	if i := slices.IndexFunc(order, func(cause string) bool { return causes[cause] }); i >= 0 {
		return order[i]
	}
	return causeWatch
}

// lookupQueue is the objects whose scale subresource is to be asked for, each once.
type lookupQueue struct {
	ready chan struct{} // holds one while there is a question

	mu   sync.Mutex
	waiting []scaleLookup
}

func newLookupQueue() *lookupQueue { return &lookupQueue{ready: make(chan struct{}, 1)} }

// put replaces the questions.
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

// next takes a question.
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
