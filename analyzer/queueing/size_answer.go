package queueing

import (
	"fmt"
	"math"
)

// answer finds the highest rate at which the misses stay within what the percentile allows, and says what binds it.
func (c *cell) answer() Answer {
	a := Answer{MeanRate: c.meanRate()}
	start := 0.7 * a.MeanRate
	if start <= 0 {
		start = c.stableRate() * leastShare
	}
	found, check, ok := c.maxRate(start)
	if ok {
		a.Rate = math.Exp(found.at)
	}
	a.Doubtful = c.doubtful(a, found.misses) || check.excess > -doubtfulRise*-math.Log(checkShare)
	c.conclude(&a, found.misses)
	return a
}

// conclude fills in what follows from the rate and the misses there.
func (c *cell) conclude(a *Answer, m misses) {
	a.Binding = m.binding()
	if a.Rate > 0.98*c.stableRate() {
		a.Binding = LimitStability
	}
	a.Infeasible = a.Rate == 0 || a.Rate < infeasibleShare*a.MeanRate
	a.Remedy = ""
	if a.Infeasible {
		a.Remedy = c.remedy(a.Binding)
	}
}

// binding is the limit that most requests miss.
func (m misses) binding() Limit {
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
	checkShare = 0.8 // of the rate that was found: how the misses rise up to there

	// doubtfulRise is the least power of the rate with which the misses rise where the formula is trusted: an error of a third
	// in them is then one of a tenth in the rate.
	doubtfulRise   = 2.5
	doubtfulMean   = 0.15 // share of the mean rate below which the formula is not trusted
	doubtfulCaps   = 0.2  // share of the misses that wait for KV cache or a place
	doubtfulShort  = 0.3  // share of the misses that have short outputs
	doubtfulSlots  = 15   // mean requests that fit, below which bursts make the formula optimistic
	doubtfulFew    = 5    // and without bursts
	doubtfulBursts = 1.5  // index of dispersion from which that matters
)

// doubtful says where the formula is known to be far off.
func (c *cell) doubtful(a Answer, m misses) bool {
	if a.Rate < doubtfulMean*a.MeanRate || a.Rate == 0 {
		return true
	}
	all := m.either()
	if m.kv+m.sequences > doubtfulCaps*all || m.short > doubtfulShort*all {
		return true
	}
	for _, r := range c.caps() {
		if r.room < doubtfulFew*r.held || r.room < doubtfulSlots*r.held && c.burst.index > doubtfulBursts {
			return true
		}
	}
	return false
}

// remedy says what would help where a limit breaks under next to no load.
func (c *cell) remedy(limit Limit) string {
	switch limit {
	case LimitKV:
		return fmt.Sprintf("the KV cache of %.0f tokens holds too few requests of %.0f tokens; give it more memory, spread the model over more "+
			"accelerators, or limit the lengths", c.Replica.KVTokens, c.Mix.prompt+c.Mix.output)
	case LimitSequences:
		return fmt.Sprintf("raise max_num_seqs above %d", c.Replica.MaxSequences)
	case LimitITL:
		return c.remedyITL()
	case LimitTTFT:
		return c.remedyTTFT()
	default:
		return "use a faster accelerator, or shorter prompts and outputs"
	}
}

func (c *cell) remedyITL() string {
	r := c.Replica
	longest := r.Iteration + float64(r.BatchedTokens)*r.PerPromptToken
	switch {
	case r.Iteration >= c.Objective.ITL:
		return fmt.Sprintf("an iteration takes %s without any load; use a faster accelerator, or an ITL above that", milliseconds(r.Iteration))
	case longest > c.Objective.ITL && c.Mix.prompt > 64:
		tokens := (c.Objective.ITL - r.Iteration) / r.PerPromptToken
		return fmt.Sprintf("an iteration full of prompts takes %s; lower max_num_batched_tokens below %.0f, use a faster accelerator, or allow a slower ITL",
			milliseconds(longest), max(1, tokens))
	default:
		return "use a faster accelerator, allow a slower ITL or a lower percentile"
	}
}

func (c *cell) remedyTTFT() string {
	p := min(c.Objective.Percentile, 0.999)
	tokens, work := c.prefill(c.Mix.prompts.Quantile(p))
	chunks := math.Ceil(tokens / float64(c.Replica.BatchedTokens))
	alone := work + chunks*c.Replica.Iteration
	if chunks > 1 && work+c.Replica.Iteration < c.Objective.TTFT {
		return fmt.Sprintf("a prompt of %.0f tokens takes %s in %.0f chunks; raise max_num_batched_tokens, use a faster accelerator, or allow a slower TTFT",
			tokens, milliseconds(alone), chunks)
	}
	return fmt.Sprintf("a prompt of %.0f tokens takes %s without any load; use a faster accelerator, or allow a slower TTFT", tokens, milliseconds(alone))
}

func milliseconds(seconds float64) string { return fmt.Sprintf("%.3g ms", 1e3*seconds) }
