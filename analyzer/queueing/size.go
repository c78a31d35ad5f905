package queueing

import (
	"errors"
	"fmt"
	"math"
	"sync"
)

// Question asks what one replica carries of a mix within an objective.
type Question struct {
	Replica   Replica
	Mix       *Mix
	Objective Objective
	// Dispersion is the index of dispersion of the arrivals: variance over mean of their number, over windows about as long as
	// the limit on TTFT. 0 means 1, Poisson; what is below 1 counts as 1, and what is above 64 as 64.
	Dispersion float64
}

// Answer is what a replica carries.
type Answer struct {
	// Rate is the highest rate in requests per second at which at least the percentile of requests meet both limits; 0 where
	// they do not without any load.
	Rate float64
	// MeanRate is the rate at which the means reach the limits, which is what sizing by means would give.
	MeanRate float64
	// Binding is what breaks just above Rate.
	Binding Limit
	// Infeasible says that Rate is below a tenth of MeanRate: the replica cannot keep the promise under load.
	Infeasible bool
	// Remedy names the setting that would help, where Infeasible.
	Remedy string
	// Doubtful says that the formula is known to be far off here, and that a simulation should answer.
	Doubtful bool
	// Simulated says that the simulation answered.
	Simulated bool
}

// infeasibleShare is the share of the mean rate below which no useful load meets an objective.
const infeasibleShare = 0.1

// Sizer answers questions and keeps what costs time: tables of burstiness, and simulated answers. What it keeps never changes
// an answer. The zero value works; it is safe for concurrent use.
type Sizer struct {
	mu        sync.Mutex
	bursts    map[int]*burst
	gaps      map[int][]float64
	simulated map[simulationKey]Answer
}

// MaxRate works out by formula what the replica carries.
func (s *Sizer) MaxRate(q Question) (Answer, error) {
	if err := q.check(); err != nil {
		return Answer{}, err
	}
	c := newCell(q, s.burstOf(q.Dispersion))
	return c.answer(), nil
}

// Violation says which share of requests misses each limit, and any, at a rate.
type Violation struct {
	TTFT   float64 // includes what waits for KV cache or for a place in the batch
	ITL    float64
	Either float64
}

// Violation works out by formula which share of requests misses the limits at a rate.
func (s *Sizer) Violation(q Question, rate float64) (Violation, error) {
	if err := q.check(); err != nil {
		return Violation{}, err
	}
	if !(rate >= 0) || math.IsInf(rate, 1) {
		return Violation{}, fmt.Errorf("rate %v is not a number of requests per second; correct it", rate)
	}
	c := newCell(q, s.burstOf(q.Dispersion))
	m := c.misses(rate)
	return Violation{TTFT: m.first(), ITL: m.itl, Either: m.either()}, nil
}

// keptBursts bounds how many tables of burstiness are kept. There are 211 cells in the grid.
const keptBursts = 256

func (s *Sizer) burstOf(dispersion float64) *burst {
	cell := dispersionCell(dispersion)
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.bursts[cell]; ok {
		return known
	}
	if s.bursts == nil || len(s.bursts) >= keptBursts {
		s.bursts = make(map[int]*burst)
	}
	built := newBurst(cell)
	s.bursts[cell] = built
	return built
}

// check reports every fault of the question.
func (q Question) check() error {
	var faults []error
	if q.Mix == nil {
		faults = append(faults, errors.New("no mix; make one of the lengths of prompts and outputs"))
	}
	if !(q.Dispersion >= 0) || math.IsInf(q.Dispersion, 1) {
		faults = append(faults, fmt.Errorf("dispersion %v is not a finite number from 0; leave it at 0 where it is not known", q.Dispersion))
	}
	faults = append(faults, q.Replica.check(), q.Objective.check())
	if err := errors.Join(faults...); err != nil {
		return err
	}
	if prefill, decode := q.Mix.Work(q.Replica.Profile, q.Replica.PrefixHits); !(prefill+decode >= leastWork) {
		return fmt.Errorf("a request adds %v seconds to iterations, so that no rate would fill the engine; give the profile what decoding and prompts cost", prefill+decode)
	}
	return nil
}

// leastWork is the least that a request adds to iterations, in seconds; less would be no engine.
const leastWork = 1e-9

func (r Replica) check() error {
	var faults []error
	costs := []float64{r.Iteration, r.PerSequence, r.PerContextToken, r.PerPromptToken, r.PerPromptTokenSquared}
	for _, cost := range costs {
		if !(cost >= 0 && cost <= 1e6) {
			faults = append(faults, fmt.Errorf("profile %v holds %v; costs are seconds within 0 and 1e6", costs, cost))
			break
		}
	}
	if !(r.Iteration >= 1e-9) {
		faults = append(faults, fmt.Errorf("an iteration of %v seconds is too short; measure the profile's alpha", r.Iteration))
	}
	if r.MaxSequences < 1 {
		faults = append(faults, fmt.Errorf("max_num_seqs is %d; it must be at least 1", r.MaxSequences))
	}
	if r.BatchedTokens < 1 {
		faults = append(faults, fmt.Errorf("max_num_batched_tokens is %d; it must be at least 1", r.BatchedTokens))
	}
	if !(r.KVTokens >= 0) || math.IsInf(r.KVTokens, 1) {
		faults = append(faults, fmt.Errorf("KV cache of %v tokens; give its size, or 0 where it is no limit", r.KVTokens))
	}
	if !(r.PrefixHits >= 0 && r.PrefixHits <= 1) {
		faults = append(faults, fmt.Errorf("share of prefix hits is %v; it lies within 0 and 1", r.PrefixHits))
	}
	return errors.Join(faults...)
}

func (o Objective) check() error {
	var faults []error
	for _, limit := range []float64{o.TTFT, o.ITL} {
		if !(limit >= 0 && limit <= 1e6) {
			faults = append(faults, fmt.Errorf("limit of %v seconds is not within 0 and 1e6; 0 is no limit", limit))
		}
	}
	if o.TTFT == 0 && o.ITL == 0 {
		faults = append(faults, errors.New("the objective has no limit; set one on TTFT or on ITL"))
	}
	if !(o.Percentile > 0 && o.Percentile < 1) {
		faults = append(faults, fmt.Errorf("percentile %v is not within 0 and 1; use 0.95 for 95 %%", o.Percentile))
	}
	return errors.Join(faults...)
}
