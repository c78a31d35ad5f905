package analyzer

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

// A replica that is simulated iteration by iteration, with the very time of experts, meets the
// objective at the rate that its tangent gives, and not at a tenth more.
func TestExpertsAreSizedAsTheEngineServes(t *testing.T) {
	for name, cost := range map[string]fleet.EngineCost{
		"made up":               withExperts(32).Cost,
		"a catalogue row of 16": {Alpha: 10.72, Beta: 0.0869, Gamma: 0.005084, Prefill: 0.0397, PrefillSquared: 0.4378, Experts: 8.845, Sparsity: 16},
		"a catalogue row of 48": {Alpha: 6.78, Beta: 0.09182, Prefill: 0.01666, Experts: 16.99, Sparsity: 48},
	} {
		for _, itl := range []time.Duration{25, 40, 60} {
			o := slo(2*time.Second, itl*time.Millisecond)
			m := chat(1, Variant{Profile: &fleet.Profile{Cost: cost}, Objective: o})
			m.Outputs = nil
			m.Prompts = []fleet.Bucket{{Upper: shortPrompt - 1, Count: 0}, {Upper: shortPrompt + 1, Count: 1}, {Upper: longPrompt - 1, Count: 0}, {Upper: longPrompt + 1, Count: 1}}
			rate := latencies(m, Options{Memo: &Memo{}})[0].rate
			if at, above := missed(cost, rate, o), missed(cost, 1.1*rate, o); at > 0.065 || above < 0.05 {
				t.Errorf("%s, ITL %d ms: %.1f %% of requests miss at %.3g/s, and %.1f %% at a tenth more, want 5 %%", name, itl, 100*at, rate, 100*above)
			}
		}
	}
}

const shortPrompt, longPrompt = 355, 1955 // tokens, with the mean of the chat

// served is a request on its way. Times are in seconds.
type served struct{ at, first, last, prompt, output, done float64 }

// poisson returns requests with exponential outputs, at a rate per second.
func poisson(rate float64) []*served {
	random := rand.New(rand.NewPCG(7, 9))
	requests, at := make([]*served, 12_000), 0.0
	for i := range requests {
		at += random.ExpFloat64() / rate
		requests[i] = &served{at: at, prompt: []float64{shortPrompt, longPrompt}[random.IntN(2)], output: 1 + math.Ceil(210*random.ExpFloat64())}
	}
	return requests
}

// missed returns the share of requests that miss the limits on TTFT and on the mean time between
// tokens.
func missed(cost fleet.EngineCost, rate float64, o fleet.Objective) float64 {
	all := poisson(rate)
	e := simulatedEngine{EngineCost: cost, waiting: all}
	for len(e.waiting)+len(e.running) > 0 {
		e.step()
	}
	misses, counted := 0.0, all[500:]
	for _, r := range counted {
		if r.first-r.at > o.TTFT.Seconds() || (r.last-r.first)/max(1, r.output-1) > o.ITL.Seconds() {
			misses++
		}
	}
	return misses / float64(len(counted))
}

// simulatedEngine serves requests first come, first served.
type simulatedEngine struct {
	fleet.EngineCost
	waiting, running []*served
	computed         float64 // tokens of the prompt at the head
	now              float64
}

// step is one iteration: a token for each request in decode, and prompts for the rest of the
// budget.
func (e *simulatedEngine) step() {
	if len(e.running) == 0 {
		e.now = max(e.now, e.waiting[0].at)
	}
	n, contexts := float64(len(e.running)), 0.0
	for _, r := range e.running {
		contexts += r.prompt + r.done
	}
	took := e.Alpha + e.Experts*e.Touched(n) + e.Beta*n + e.Gamma*contexts/1000
	begun := len(e.running)
	for left := DefaultBatchedTokens - n; left > 0 && len(e.waiting) > 0 && e.waiting[0].at <= e.now; {
		head := e.waiting[0]
		chunk := min(left, head.prompt-e.computed)
		took += e.Prefill*chunk + e.PrefillSquared*chunk*(2*e.computed+chunk)/1e6
		left -= chunk
		if e.computed += chunk; e.computed == head.prompt {
			e.running, e.waiting, e.computed = append(e.running, head), e.waiting[1:], 0
		}
	}
	e.now += took / 1e3
	for _, r := range e.running[begun:] {
		r.first = e.now
	}
	still := e.running[:0]
	for _, r := range e.running {
		if r.done++; r.done < r.output {
			still = append(still, r)
		} else {
			r.last = e.now
		}
	}
	e.running = still
}
