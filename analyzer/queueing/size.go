package queueing

import (
	"errors"
	"fmt"
	"math"
	"sync"
)

// Question asks for the capacity of one replica for a mix of requests within an objective.
type Question struct {
	Replica   Replica
	Mix       *Mix
	Objective Objective
	// Dispersion is the index of dispersion of the arrivals: variance over mean of their number,
	// over windows about as long as the limit on TTFT. 0 means 1, Poisson. One replica of a pool
	// whose gateway balances the load gets arrivals that are smoother, below 1. A value below 1/64
	// counts as 1/64, one above 64 as 64.
	Dispersion float64
}

// Answer is the capacity of a replica.
type Answer struct {
	// Rate is the highest rate in requests per second at which at least the percentile of requests
	// meet both limits; 0 if fewer do even without load.
	Rate float64
	// MeanRate is the rate at which the means reach the limits, the answer of sizing by means.
	MeanRate float64
	// LimitedBy is the limit that is missed just above Rate.
	LimitedBy Limit
	// Infeasible says that Rate, of a simulation before its standard error is taken off, is below a
	// tenth of MeanRate: the replica cannot meet the objective under load.
	Infeasible bool
	// Misses is the share of requests that miss the objective on an empty replica. It is 0 if Rate
	// is above half of MeanRate: then they do not matter.
	Misses float64
	// MissesAtRate and MissesBelow are the shares of requests that miss the objective at the rate
	// of the formula and at BelowShare of it: the search knows them.
	MissesAtRate, MissesBelow float64
	// Remedy names the cause and the setting that would help if Infeasible, or if an empty replica
	// misses the objective for more than half of the requests that may; else it is empty.
	Remedy string
	// Doubtful says that the formula is known to be far off, so that a simulation should answer.
	Doubtful bool
	// Simulated says that the simulation answered.
	Simulated bool
	// Iterations is how many the simulation took, whether it answered or was given up.
	Iterations int
}

// LeastUsefulShare is the share of the mean rate below which no useful load meets an objective.
const LeastUsefulShare = 0.1

const (
	// mostEmptyMisses is the part of the allowed misses above which an empty replica has too many:
	// the rate that is left depends on a few of the longest requests.
	mostEmptyMisses = 0.5
	// freeOfMisses is the share of the mean rate above which an empty replica has few.
	freeOfMisses = 0.5
)

// Sizer answers questions. It caches tables of burstiness and simulated answers; the cache never
// changes an answer. The zero value works; it is safe for concurrent use.
type Sizer struct {
	mu        sync.Mutex
	bursts    map[int]*burst
	gaps      map[int][]float64
	simulated map[simulationKey]Answer
	seed      uint64 // of simulations, 0 but in tests of how much of an answer is chance
}

// MaxRate computes the capacity of the replica by formula.
func (s *Sizer) MaxRate(q Question) (Answer, error) {
	if err := q.check(); err != nil {
		return Answer{}, err
	}
	c := newCell(q, s.burstOf(q.Dispersion))
	return c.answer(), nil
}

// Violation holds the shares of requests that miss each limit, and either, at a rate.
type Violation struct {
	TTFT   float64 // includes requests that wait for KV cache or for a slot in the batch
	ITL    float64
	Either float64
}

// Violation computes the shares of requests that miss the limits at a rate, by formula.
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

// keptBursts bounds the number of tables of burstiness that are cached. The grid has 421 points.
const keptBursts = 512

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

// check returns every validation error of the question.
func (q Question) check() error {
	var errs []error
	if q.Mix == nil {
		errs = append(errs, errors.New("no mix; make one of the lengths of prompts and outputs"))
	}
	if !(q.Dispersion >= 0) || math.IsInf(q.Dispersion, 1) {
		errs = append(errs, fmt.Errorf("dispersion %v is not a finite number from 0; leave it at 0 if it is unknown", q.Dispersion))
	}
	errs = append(errs, q.Replica.check(), q.Objective.check())
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if prefill, decode := q.Mix.Work(q.Replica.Profile, q.Replica.PrefixHits); !(prefill+decode >= leastWork) {
		return fmt.Errorf("a request adds %v seconds to iterations, so that no rate would fill the engine; "+
			"set the profile's costs of decoding and of prompts", prefill+decode)
	}
	return nil
}

// leastWork is the least valid time that a request adds to iterations, in seconds.
const leastWork = 1e-9

func (r Replica) check() error {
	var errs []error
	costs := []float64{r.Iteration, r.PerSequence, r.PerContextToken, r.PerPromptToken, r.PerPromptTokenSquared}
	for _, cost := range costs {
		if !(cost >= 0 && cost <= 1e6) {
			errs = append(errs, fmt.Errorf("profile %v contains %v; costs are from 0 to 1e6 seconds", costs, cost))
			break
		}
	}
	if !(r.Iteration >= 1e-9) {
		errs = append(errs, fmt.Errorf("an iteration of %v seconds is too short; measure the profile's alpha", r.Iteration))
	}
	if r.MaxSequences < 1 {
		errs = append(errs, fmt.Errorf("max_num_seqs is %d; it must be at least 1", r.MaxSequences))
	}
	if r.BatchedTokens < 1 {
		errs = append(errs, fmt.Errorf("max_num_batched_tokens is %d; it must be at least 1", r.BatchedTokens))
	}
	if !(r.KVTokens >= 0) || math.IsInf(r.KVTokens, 1) {
		errs = append(errs, fmt.Errorf("KV cache of %v tokens; give its size, or 0 for no limit", r.KVTokens))
	}
	if !(r.PrefixHits >= 0 && r.PrefixHits <= 1) {
		errs = append(errs, fmt.Errorf("share of prefix hits is %v; it must be from 0 to 1", r.PrefixHits))
	}
	return errors.Join(errs...)
}

func (o Objective) check() error {
	var errs []error
	for _, limit := range []float64{o.TTFT, o.ITL} {
		if !(limit >= 0 && limit <= 1e6) {
			errs = append(errs, fmt.Errorf("limit of %v seconds is not from 0 to 1e6; 0 is no limit", limit))
		}
	}
	if o.TTFT == 0 && o.ITL == 0 {
		errs = append(errs, errors.New("the objective has no limit; set one on TTFT or on ITL"))
	}
	if !(o.Percentile > 0 && o.Percentile < 1) {
		errs = append(errs, fmt.Errorf("percentile %v is not between 0 and 1; use 0.95 for 95 %%", o.Percentile))
	}
	return errors.Join(errs...)
}
