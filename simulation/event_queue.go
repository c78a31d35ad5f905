package simulation

import (
	"container/heap"
	"math"
)

// eventQueue is a heap of the replicas that have a next event, the earliest on top. Of two at the
// same time, the replica that was created first comes first.
type eventQueue []*pod

// set adds a replica, moves it to the time of its next event, or removes it if it has none.
func (q *eventQueue) set(p *pod) {
	p.at = p.next()
	switch {
	case math.IsInf(p.at, 1) && p.place >= 0:
		heap.Remove(q, p.place)
	case math.IsInf(p.at, 1):
	case p.place >= 0:
		heap.Fix(q, p.place)
	default:
		heap.Push(q, p)
	}
}

// first returns the time of the first event, or +Inf.
func (q *eventQueue) first() float64 {
	if len(*q) == 0 {
		return math.Inf(1)
	}
	return (*q)[0].at
}

// Len implements [heap.Interface].
func (q *eventQueue) Len() int { return len(*q) }

// Less implements [heap.Interface].
func (q *eventQueue) Less(i, j int) bool {
	x, y := (*q)[i], (*q)[j]
	if x.at != y.at {
		return x.at < y.at
	}
	return x.ordinal < y.ordinal
}

// Swap implements [heap.Interface].
func (q *eventQueue) Swap(i, j int) {
	(*q)[i], (*q)[j] = (*q)[j], (*q)[i]
	(*q)[i].place, (*q)[j].place = i, j
}

// Push implements [heap.Interface].
func (q *eventQueue) Push(x any) {
	p, _ := x.(*pod)
	p.place = len(*q)
	*q = append(*q, p)
}

// Pop implements [heap.Interface].
func (q *eventQueue) Pop() any {
	last := (*q)[len(*q)-1]
	(*q)[len(*q)-1] = nil
	*q = (*q)[:len(*q)-1]
	last.place = -1
	return last
}
