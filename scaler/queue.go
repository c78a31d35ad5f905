package scaler

import "container/heap"

// queue is a heap of streams. A stream is in at most one queue.
type queue struct {
	streams []*stream
	before  func(a, b *stream) bool
}

func (q *queue) first() *stream { return q.streams[0] }

func (q *queue) add(s *stream) {
	s.queue = q
	heap.Push((*order)(q), s)
}

func (q *queue) remove(s *stream) {
	heap.Remove((*order)(q), s.position)
	s.queue = nil
}

func (q *queue) empty() bool { return len(q.streams) == 0 }

// order is a queue as container/heap wants to see it.
type order queue

func (o *order) Len() int           { return len(o.streams) }
func (o *order) Less(i, j int) bool { return o.before(o.streams[i], o.streams[j]) }

func (o *order) Swap(i, j int) {
	o.streams[i], o.streams[j] = o.streams[j], o.streams[i]
	o.streams[i].position, o.streams[j].position = i, j
}

func (o *order) Push(x any) {
	s := x.(*stream)
	s.position = len(o.streams)
	o.streams = append(o.streams, s)
}

func (o *order) Pop() any {
	last := len(o.streams) - 1
	s := o.streams[last]
	o.streams[last] = nil
	o.streams = o.streams[:last]
	return s
}
