package simulation

import "container/heap"

// sequence is a request on its way through the gateway and an engine.
type sequence struct {
	Request

	dispatched float64 // when the gateway handed it to its present engine
	scheduled  float64 // when that engine first admitted it to a batch
	firstToken float64
	lastToken  float64 // the end of its latest prefill, or of the sequence

	order     int // of admission to the engine's batch, from 1; 0 before
	generated int // tokens of output at its latest prefill
	position  int // tokens of prefill that are done
	prefill   int // tokens to prefill: the prompt, and after a preemption also the generated ones
	chunk     int // tokens of prefill in the running iteration
	finish    int // the engine's step that ends with its last token
	place     int // in the heap of decoding sequences
}

// started reports whether the client has seen a token. Such a request cannot move to another
// replica.
func (s *sequence) started() bool { return s.generated > 0 }

// longest returns the largest number of tokens that the sequence has in the KV cache. The last
// token is never stored.
func (s *sequence) longest() int { return s.Prompt + s.Output - 1 }

// decoded returns the number of tokens that a decoding sequence has generated at a step.
func (s *sequence) decoded(step int) int { return s.Output - (s.finish - step) }

// decoding is a heap of sequences in decode, the one that finishes first on top. Of two at the same
// step, the one that was admitted first comes first.
type decoding []*sequence

func (d *decoding) add(s *sequence) { heap.Push(d, s) }

func (d *decoding) remove(s *sequence) { heap.Remove(d, s.place) }

// pop removes and returns the sequence that finishes with the step, if there is one.
func (d *decoding) pop(step int) (*sequence, bool) {
	if len(*d) == 0 || (*d)[0].finish != step {
		return nil, false
	}
	s := (*d)[0]
	heap.Pop(d)
	return s, true
}

// Len implements [heap.Interface].
func (d *decoding) Len() int { return len(*d) }

// Less implements [heap.Interface].
func (d *decoding) Less(i, j int) bool {
	a, b := (*d)[i], (*d)[j]
	if a.finish != b.finish {
		return a.finish < b.finish
	}
	return a.order < b.order
}

// Swap implements [heap.Interface].
func (d *decoding) Swap(i, j int) {
	(*d)[i], (*d)[j] = (*d)[j], (*d)[i]
	(*d)[i].place, (*d)[j].place = i, j
}

// Push implements [heap.Interface].
func (d *decoding) Push(x any) {
	s, _ := x.(*sequence)
	s.place = len(*d)
	*d = append(*d, s)
}

// Pop implements [heap.Interface].
func (d *decoding) Pop() any {
	last := (*d)[len(*d)-1]
	(*d)[len(*d)-1] = nil
	*d = (*d)[:len(*d)-1]
	return last
}
