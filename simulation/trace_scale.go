package simulation

import (
	"fmt"
	"math"
)

// maxShift is the largest shift of a copy of a trace, in seconds. It is small against the changes
// that an autoscaler can follow, so that superposed copies keep them. Shifts over the whole trace
// would flatten it.
const maxShift = 30.0

// Scale multiplies the rate of a sorted trace by a factor > 0. It superposes copies: the first is
// the trace itself, and each other one is shifted by its own seeded time below 30 s. Requests that
// a shift moves past the end continue at the beginning, so that the length stays. The fractional
// part of the factor is a seeded choice of requests from one more copy. The result has exactly
// round(factor × requests) requests.
func Scale(trace []Request, factor float64, seed uint64) ([]Request, error) {
	if !(factor > 0) || math.IsInf(factor, 0) {
		return nil, fmt.Errorf("factor %v of the trace's rate is not a number > 0", factor)
	}
	count := math.Round(float64(factor * float64(len(trace))))
	if count > maxRequests {
		return nil, fmt.Errorf("factor %v makes %.0f requests of a trace of %d; at most %d are possible", factor, count, len(trace), maxRequests)
	}
	if len(trace) == 0 {
		return nil, nil
	}
	whole, rest := int(count)/len(trace), int(count)%len(trace)
	shifts := evenShifts(trace, whole+1, newDraws(seed, 1))
	scaled := make([]Request, 0, int(count))
	for _, shift := range shifts[:whole] {
		scaled = append(scaled, shifted(trace, shift)...)
	}
	last := shifted(trace, shifts[whole])
	scaled = append(scaled, choose(last, rest, newDraws(seed, 2))...)
	sortByArrival(scaled)
	return scaled, nil
}

// evenShifts returns a shift for each of n copies: 0 for the first, and for each other one a draw
// from its own part of the range, so that no two are equal.
func evenShifts(trace []Request, n int, source draws) []float64 {
	reach := min(maxShift, trace[len(trace)-1].Arrival-trace[0].Arrival)
	shifts := make([]float64, n)
	for i := 1; i < n; i++ {
		shifts[i] = reach * (float64(i-1) + source.uniform()) / float64(n-1)
	}
	return shifts
}

// shifted returns the trace moved to the right around a circle of its own length. The shift is at
// most that length.
func shifted(trace []Request, shift float64) []Request {
	begin, end := trace[0].Arrival, trace[len(trace)-1].Arrival
	moved := make([]Request, len(trace))
	for i, request := range trace {
		request.Arrival += shift
		if request.Arrival > end {
			request.Arrival -= end - begin
		}
		moved[i] = request
	}
	return moved
}

// choose returns n of the requests, each choice of n equally likely, in their order (Knuth, The Art
// of Computer Programming 2, 3.4.2, algorithm S).
func choose(requests []Request, n int, source draws) []Request {
	chosen := make([]Request, 0, n)
	for i, request := range requests {
		if source.uniform()*float64(len(requests)-i) < float64(n-len(chosen)) {
			chosen = append(chosen, request)
		}
	}
	return chosen
}
