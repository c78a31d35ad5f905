package scaler

import "container/heap"

// streamHeap is a priority queue of streams. A stream is in at most one.
type streamHeap struct {
	streams []*stream
	before  func(a, b *stream) bool
}

func (h *streamHeap) first() *stream { return h.streams[0] }

func (h *streamHeap) add(s *stream) {
	s.heap = h
	heap.Push((*heapOrder)(h), s)
}

func (h *streamHeap) remove(s *stream) {
	heap.Remove((*heapOrder)(h), s.position)
	s.heap = nil
}

func (h *streamHeap) empty() bool { return len(h.streams) == 0 }

// heapOrder is a streamHeap in the form that container/heap needs.
type heapOrder streamHeap

func (o *heapOrder) Len() int           { return len(o.streams) }
func (o *heapOrder) Less(i, j int) bool { return o.before(o.streams[i], o.streams[j]) }

func (o *heapOrder) Swap(i, j int) {
	o.streams[i], o.streams[j] = o.streams[j], o.streams[i]
	o.streams[i].position, o.streams[j].position = i, j
}

func (o *heapOrder) Push(x any) {
	s := x.(*stream)
	s.position = len(o.streams)
	o.streams = append(o.streams, s)
}

func (o *heapOrder) Pop() any {
	last := len(o.streams) - 1
	s := o.streams[last]
	o.streams[last] = nil
	o.streams = o.streams[:last]
	return s
}
