package queueing

import (
	"fmt"
	"math"
)

// Infeasibility returns one sentence for an operator if the answer has a remedy, "" otherwise: the
// limit of the objective that cannot be met, the cause, and the remedy.
func (a Answer) Infeasibility(o Objective) string {
	if a.Remedy == "" {
		return ""
	}
	limit, load := "TTFT "+duration(o.TTFT), "any useful load"
	if o.TTFT == 0 || a.LimitedBy == LimitITL {
		limit = "ITL " + duration(o.ITL)
	}
	if a.Rate == 0 {
		load = "any load"
	}
	return limit + " cannot be met at " + load + ": " + a.Remedy
}

// answer finds the highest rate at which no more requests miss the objective than the percentile
// allows, and the limit of that rate. With arrivals smoother than Poisson's a simulation would be
// worse: it does not know that a request comes for one that ends.
func (c *cell) answer() Answer {
	a := Answer{MeanRate: c.meanRate()}
	start := 0.7 * a.MeanRate
	if c.burst.index < 1 {
		start = 0.87 * a.MeanRate
	}
	if start <= 0 {
		start = c.stableRate() * leastShare
	}
	found, check, ok := c.maxRate(start)
	if ok {
		a.Rate = math.Exp(found.at)
		a.MissesAtRate, a.MissesBelow = found.either(), check.either()
		if margin := check.margin(); margin > 0 {
			a.Rate = math.Exp(found.at - margin)
			a.MissesAtRate = c.misses(a.Rate).either()
		}
	}
	a.Doubtful = c.burst.index >= 1 && (c.doubtful(a, found.misses) || check.excess > -doubtfulRise*-math.Log(BelowShare))
	c.conclude(&a, found.misses)
	return a
}

const (
	rateError  = 0.02 // relative error of the formula's rate if the misses rise steeply
	mostMisses = 1.4  // times the allowed misses, the most at a rate with this error
)

// margin is the logarithm of the part by which the rate is lowered so that an error of the formula
// does not take much more than the allowed misses; p is the probe at BelowShare of the rate. With
// long outputs the misses rise by up to the hundredth power of the rate.
func (p *probe) margin() float64 {
	if p.excess >= 0 {
		return 0
	}
	power := p.excess / math.Log(BelowShare)
	return max(0, rateError-math.Log(mostMisses)/power)
}

// conclude derives the rest of the answer from the rate and the misses at it.
func (c *cell) conclude(a *Answer, m misses) {
	a.LimitedBy = m.largest()
	if a.Rate > 0.98*c.stableRate() {
		a.LimitedBy = LimitCompute
	}
	a.Infeasible = a.Rate == 0 || a.Rate < LeastUsefulShare*a.MeanRate
	if a.Misses, a.Remedy = 0, ""; a.Rate < freeOfMisses*a.MeanRate {
		a.Misses = c.misses(0).either()
	}
	if a.Infeasible || a.Misses > mostEmptyMisses*(1-c.Objective.Percentile) {
		a.Remedy = c.remedy(a.LimitedBy)
	}
}

// largest is the limit that most requests miss.
func (m misses) largest() Limit {
	largest, limit := m.ttft, LimitTTFT
	for _, other := range [...]struct {
		share float64
		limit Limit
	}{{m.itl, LimitITL}, {m.kv, LimitKV}, {m.sequences, LimitSequences}} {
		if other.share > largest {
			largest, limit = other.share, other.limit
		}
	}
	return limit
}

const (
	// BelowShare is the part of the rate at which the misses are computed again, for their slope.
	BelowShare = 0.8

	// doubtfulRise is the lowest power of the rate by which the misses rise if the formula is
	// trusted: an error of a quarter in the misses is then at most a tenth in the rate.
	doubtfulRise      = 2.5
	doubtfulMean      = 0.15 // share of the mean rate below which the formula is not trusted
	doubtfulResources = 0.2  // share of the misses that wait for KV cache or a slot
	doubtfulShort     = 0.3  // share of the misses that have short outputs
	doubtfulSlots     = 15   // mean requests that fit; with fewer, bursts make it optimistic
	doubtfulFew       = 5    // the same without bursts
	doubtfulBursts    = 1.5  // index of dispersion from which arrivals count as bursts here
)

// doubtful reports whether the formula is known to be far off.
func (c *cell) doubtful(a Answer, m misses) bool {
	if a.Rate < doubtfulMean*a.MeanRate || a.Rate == 0 {
		return true
	}
	all := m.either()
	if m.kv+m.sequences > doubtfulResources*all || m.short > doubtfulShort*all {
		return true
	}
	for _, r := range c.resources() {
		held := r.used / c.Mix.output // by a request on average
		if r.available < doubtfulFew*held || r.available < doubtfulSlots*held && c.burst.index > doubtfulBursts {
			return true
		}
	}
	return false
}

// remedy names the cause and the remedy if a limit is missed at next to no load.
func (c *cell) remedy(limit Limit) string {
	switch limit {
	case LimitKV:
		return fmt.Sprintf("the KV cache of %.0f tokens is too small for requests of %.0f tokens; give it more memory, "+
			"split the model over more accelerators or limit request lengths", c.Replica.KVTokens, c.Mix.prompt+c.Mix.output)
	case LimitSequences:
		return fmt.Sprintf("max_num_seqs %d is too low; raise it", c.Replica.MaxSequences)
	case LimitITL:
		return c.remedyITL()
	case LimitTTFT:
		return c.remedyTTFT()
	default:
		return "the work of requests fills the engine; use a faster accelerator or shorter prompts and outputs"
	}
}

func (c *cell) remedyITL() string {
	r := c.Replica
	longest := r.Iteration + float64(r.BatchedTokens)*r.PerPromptToken
	switch {
	case r.Iteration >= c.Objective.ITL:
		return fmt.Sprintf("an empty replica needs %s a token; raise itl above %s or use a faster accelerator",
			duration(r.Iteration), duration(r.Iteration))
	case longest > c.Objective.ITL && c.Mix.prompt > 64:
		tokens := (c.Objective.ITL - r.Iteration) / r.PerPromptToken
		return fmt.Sprintf("an iteration full of prompts takes %s; lower max_num_batched_tokens below %.0f, raise itl "+
			"or use a faster accelerator", duration(longest), max(1, tokens))
	default:
		return fmt.Sprintf("an empty replica needs %s a token already; raise itl, lower the percentile or use a faster accelerator",
			duration(r.Iteration))
	}
}

func (c *cell) remedyTTFT() string {
	p := min(c.Objective.Percentile, 0.999)
	tokens, work := c.prefill(c.Mix.prompts.Quantile(p))
	chunks := math.Ceil(tokens / float64(c.Replica.BatchedTokens))
	alone := work + chunks*c.Replica.Iteration
	needs := fmt.Sprintf("an empty replica needs %s for a prompt of %.0f tokens", duration(alone), tokens)
	switch {
	case chunks > 1 && work+c.Replica.Iteration < c.Objective.TTFT:
		return fmt.Sprintf("%s in %.0f chunks; raise max_num_batched_tokens or ttft, or use a faster accelerator", needs, chunks)
	case alone >= c.Objective.TTFT:
		return fmt.Sprintf("%s; raise ttft above %s or use a faster accelerator", needs, duration(alone))
	default:
		return needs + ", and requests that queue need more; raise ttft, lower the percentile or use a faster accelerator"
	}
}

// duration writes seconds with a unit, to three digits.
func duration(seconds float64) string {
	if seconds < 0.9995 {
		return fmt.Sprintf("%.3g ms", 1e3*seconds)
	}
	return fmt.Sprintf("%.3g s", seconds)
}
