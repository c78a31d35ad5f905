package scaler

import (
	"container/heap"
	linked "container/list"
	"sync"
)

// shares bounds how many streams are open, and divides them fairly between addresses. While any is
// free everybody may open one. If none is free, the address with the most loses its newest one to
// an address that has at least two fewer. So an address with fewer than an equal part is never
// rejected, whenever it comes, no address loses a stream of its equal part, and no two addresses
// take a stream from each other again and again.
type shares struct {
	most int // above 0

	mu     sync.Mutex
	open   int
	hosts  map[string]*share
	byOpen shareHeap
}

// share is the open streams of one address.
type share struct {
	holdings linked.List // of *holding, the newest last
	position int         // in the heap
}

// holding is one open stream.
type holding struct {
	host    string
	element *linked.Element // nil if it was left, or lost
	end     func()
}

func newShares(most int) *shares { return &shares{most: most, hosts: make(map[string]*share)} }

// enter returns the holding of one more stream of an address, which counts until it is left; nil if
// the stream is rejected. The function is called if the holding is lost to another address.
func (s *shares) enter(host string, end func()) *holding {
	entered, lost := s.exchange(host, end)
	if lost != nil {
		lost.end()
	}
	return entered
}

// exchange returns the holding that was entered, and the one that was lost to it; nil if there is
// none.
func (s *shares) exchange(host string, end func()) (entered, lost *holding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own, held := s.hosts[host], 0
	if own != nil {
		held = own.holdings.Len()
	}
	if s.open >= s.most {
		largest := s.byOpen[0]
		if largest.holdings.Len() < held+2 {
			return nil, nil
		}
		lost = largest.holdings.Back().Value.(*holding)
		s.remove(lost)
	}
	if own == nil {
		own = &share{}
		s.hosts[host] = own
		heap.Push(&s.byOpen, own)
	}
	entered = &holding{host: host, end: end}
	entered.element = own.holdings.PushBack(entered)
	s.open++
	heap.Fix(&s.byOpen, own.position)
	return entered, lost
}

// leave frees a holding, if it was not lost.
func (s *shares) leave(left *holding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if left.element != nil {
		s.remove(left)
	}
}

func (s *shares) remove(removed *holding) {
	of := s.hosts[removed.host]
	of.holdings.Remove(removed.element)
	removed.element = nil
	s.open--
	if of.holdings.Len() > 0 {
		heap.Fix(&s.byOpen, of.position)
		return
	}
	heap.Remove(&s.byOpen, of.position)
	delete(s.hosts, removed.host)
}

// shareHeap has the address with the most streams first.
type shareHeap []*share

func (h shareHeap) Len() int           { return len(h) }
func (h shareHeap) Less(i, j int) bool { return h[i].holdings.Len() > h[j].holdings.Len() }

func (h shareHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].position, h[j].position = i, j
}

func (h *shareHeap) Push(x any) {
	added := x.(*share)
	added.position = len(*h)
	*h = append(*h, added)
}

func (h *shareHeap) Pop() any {
	last := len(*h) - 1
	removed := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return removed
}
