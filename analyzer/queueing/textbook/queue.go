package textbook

import (
	"errors"
	"fmt"
	"math"
)

// Unlimited is the limit on waiting requests of a queue that rejects none.
const Unlimited = -1

// ErrOverload means that requests arrive at least as fast as a full batch serves them, and that the
// queue has no limit.
var ErrOverload = errors.New("requests arrive as fast as they can be served or faster; lower the rate or limit the queue")

// extreme bounds rates, and one over it, so that no product of two of them leaves the range of
// float64.
const extreme = 1e100

// Queue is a birth-death queue: requests arrive in a Poisson stream, up to B of them are served at
// the same time, and n of them are served at the rate μ(n) together. The others wait in order of
// arrival; a request that finds the queue full is rejected. A Queue does not depend on the rate of
// arrivals, is immutable, and solving it allocates nothing. Answers are exact to nine digits for B
// up to 4,096 and up to a million waiting requests, in overload as well.
//
// With p(n) the share of time with n requests, p(n+1) = p(n)·λ/μ(n+1) up to B, and above B the
// ratio is constant, r = λ/μ(B): a geometric tail, which is summed in closed form. (Kleinrock,
// Queueing Systems 1, sections 3.1 and 3.2.)
type Queue struct {
	inverse    []float64 // 1/μ(n) at n-1
	inBatch    []float64 // n at n
	full       float64   // μ(B)
	maxWaiting float64   // +Inf if unlimited
}

// New returns the queue with the rates μ(1), μ(2) ... μ(B) in requests per second, of which the
// last holds for all larger numbers, and with at most maxWaiting waiting requests, or Unlimited.
func New(rates []float64, maxWaiting int) (Queue, error) {
	if len(rates) == 0 {
		return Queue{}, errors.New("a queue without service rates; give one for every size of the batch")
	}
	if maxWaiting < Unlimited {
		return Queue{}, fmt.Errorf("queue limit of %d waiting requests; give 0 or more, or Unlimited", maxWaiting)
	}
	q := Queue{inverse: make([]float64, len(rates)), inBatch: make([]float64, len(rates)), maxWaiting: float64(maxWaiting)}
	for i, rate := range rates {
		if !(rate >= 1/extreme && rate <= extreme) {
			return Queue{}, fmt.Errorf("service rate %g of a batch of %d; it must be above zero and finite", rate, i+1)
		}
		q.inverse[i], q.inBatch[i] = 1/rate, float64(i)
	}
	q.full = rates[len(rates)-1]
	if maxWaiting == Unlimited {
		q.maxWaiting = math.Inf(1)
	}
	return q, nil
}

// Capacity returns μ(B), the rate at which a full batch is served.
func (q Queue) Capacity() float64 { return q.full }

// At returns the steady state at a rate of arrivals. The error is ErrOverload if there is none.
func (q Queue) At(rate float64) (State, error) {
	if !(rate >= 0 && rate <= extreme) {
		return State{}, fmt.Errorf("rate of arrivals %g; it must be finite and not below zero", rate)
	}
	if math.IsInf(q.maxWaiting, 1) && rate >= q.full {
		return State{}, fmt.Errorf("rate %g against a capacity of %g: %w", rate, q.full, ErrOverload)
	}
	if rate < 1/extreme {
		return q.idle(rate), nil
	}
	head := q.head(rate, q.inBatch)
	parts := q.parts(rate, head)
	batch := float64(len(q.inverse))
	s := State{
		Rate:       rate,
		Throughput: rate * parts.accepted / parts.total,
		Rejected:   parts.last / parts.total,
		InService:  (parts.head*head.mean + batch*parts.tail) / parts.total,
		Waiting:    parts.tail / parts.total * truncatedMean(q.maxWaiting+1, parts.growth),
		Empty:      parts.head * math.Exp(head.first) / parts.total,
		batch:      batch,
		waits:      waits{share: parts.waiting / parts.accepted, service: q.full, growth: parts.growth, maxWaiting: q.maxWaiting},
	}
	s.Service = s.InService / s.Throughput
	s.Wait = s.waits.share * (1 + truncatedMean(q.maxWaiting, parts.growth)) / q.full
	return s, nil
}

// idle is the state at a rate that is too low to differ from zero.
func (q Queue) idle(rate float64) State {
	return State{Rate: rate, Throughput: rate, Service: q.inverse[0], InService: rate * q.inverse[0], Empty: 1,
		batch: float64(len(q.inverse)), waits: waits{service: q.full, maxWaiting: q.maxWaiting}}
}

// RequestMean returns the mean of a quantity over the accepted requests at a rate of arrivals. The
// quantity is values[n-1] for a request that enters a batch of n, itself included. By Little's law
// the mean of n/μ(n) is the mean time in service. There must be a value for every size of the
// batch.
func (q Queue) RequestMean(rate float64, values []float64) float64 {
	if !(rate >= 1/extreme) {
		return values[0]
	}
	head := q.head(rate, values[:len(q.inverse)])
	parts := q.parts(rate, head)
	return (parts.head*head.mean + parts.waiting*values[len(values)-1]) / parts.accepted
}

// head sums up the states with free slots in the batch; weights are relative to their sum.
type head struct {
	mean  float64 // of the values
	first float64 // logarithm of the weight of the empty queue
	edge  float64 // logarithm of the weight of the state with the batch full and no request waiting
}

// stride is the step of the scale: weights are kept within one step of 1, so that neither they nor
// their sums leave the range of float64.
const (
	stride    = 0x1p+500
	strideLog = 500 * math.Ln2
)

// head sums over the states 0 .. B-1. Weights far below the largest so far get a scale of their
// own, as they may grow again.
func (q Queue) head(rate float64, values []float64) head {
	weight, unit, sum, weighted := 1.0, 1.0, 0.0, 0.0
	first, deep := 0.0, 0
	for i, inverse := range q.inverse {
		sum += weight * unit
		weighted += weight * unit * values[i]
		weight *= rate * inverse
		for weight > stride {
			weight /= stride
			if deep > 0 {
				deep--
			} else {
				sum, weighted, first = sum/stride, weighted/stride, first-strideLog
			}
			unit = math.Pow(stride, -float64(deep))
		}
		for weight < 1/stride {
			weight, deep = weight*stride, deep+1
			unit = math.Pow(stride, -float64(deep))
		}
	}
	scale := math.Log(sum)
	return head{mean: weighted / sum, first: first - scale, edge: math.Log(weight) - float64(deep)*strideLog - scale}
}

// parts is the weights of groups of states, scaled together so that the largest is near 1.
type parts struct {
	head     float64 // slots free
	tail     float64 // batch full
	waiting  float64 // batch full, queue not: an arrival waits
	last     float64 // queue full: an arrival is rejected
	accepted float64 // queue not full
	total    float64
	growth   float64 // logarithm of λ/μ(B)
}

func (q Queue) parts(rate float64, h head) parts {
	growth := logRatio(rate, q.full)
	decay := math.Abs(growth)
	highest := h.edge // logarithm of the largest state of the tail
	if growth > 0 {
		highest += q.maxWaiting * growth
	}
	top := max(0, highest)
	unit := math.Exp(highest - top)
	p := parts{head: math.Exp(-top), tail: unit * geometric(q.maxWaiting+1, decay), growth: growth}
	p.waiting, p.last = unit*geometric(q.maxWaiting, decay), unit
	if growth > 0 {
		p.waiting *= math.Exp(-decay) // the largest state is the one that rejects
	} else if q.maxWaiting > 0 {
		p.last *= math.Exp(q.maxWaiting * growth)
	}
	if math.IsInf(q.maxWaiting, 1) {
		p.last = 0
	}
	p.accepted = p.head + p.waiting
	p.total = p.head + p.tail
	return p
}

// logRatio returns ln(a/b), exact if a and b are close.
func logRatio(a, b float64) float64 {
	if ratio := a / b; ratio < 0.5 || ratio > 2 {
		return math.Log(ratio)
	}
	return math.Log1p((a - b) / b)
}

// geometric returns the sum of e^(-k·decay) over k = 0 .. terms-1, decay >= 0.
func geometric(terms, decay float64) float64 {
	switch {
	case terms == 0:
		return 0
	case decay == 0:
		return terms
	}
	return math.Expm1(-terms*decay) / math.Expm1(-decay)
}

// truncatedMean returns the mean of k over k = 0 .. terms-1 with weights e^(k·growth); terms may be
// infinite if growth < 0.
func truncatedMean(terms, growth float64) float64 {
	switch {
	case terms <= 1:
		return 0
	case growth > 0:
		return terms - 1 - truncatedMean(terms, -growth)
	case terms*-growth < 0.5:
		// 1/(e^t-1) = 1/t - 1/2 + bernoulli(t): the first two terms would cancel.
		return (terms-1)/2 + bernoulli(-growth) - terms*bernoulli(terms*-growth)
	case math.IsInf(terms, 1):
		return 1 / math.Expm1(-growth)
	}
	return 1/math.Expm1(-growth) - terms/math.Expm1(terms*-growth)
}

// bernoulli returns 1/(e^t-1) - 1/t + 1/2 for |t| <= 1/2 by its series, whose coefficients are
// Bernoulli's B(2k)/(2k)!.
func bernoulli(t float64) float64 {
	s := t * t
	return t * (1.0/12 + s*(-1.0/720+s*(1.0/30240+s*(-1.0/1209600+s*(1.0/47900160+s*(-691.0/1307674368000+s/74724249600))))))
}
