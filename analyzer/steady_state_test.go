package analyzer

import (
	"cmp"
	"math"
	"math/rand/v2"
	"time"

	"github.com/wva-project/wva/fleet"
)

// trueEngine is an engine whose cost is known. An iteration with n sequences takes
// T(n) = alpha + n·sequence, and a prompt adds its own time. Seconds.
type trueEngine struct {
	alpha, sequence, prompt float64
	// Tokens of a request: generated, and in the KV cache on average.
	outputs, context float64
	kvTokens         float64
	maxSequences     int
	gpus             int
	// The ITL objective allows a mean of objective·alpha; 0 means no objective.
	objective float64
}

// state is an engine's state at a constant rate.
type state struct{ rate, itl, running, kv float64 }

// work returns the seconds that a request adds to iterations.
func (e trueEngine) work() float64 { return e.outputs*e.sequence + e.prompt }

// at returns the state at a rate. Requests that decode for R seconds come to n = rate·R (Little's
// law), so that T = alpha/(1-rate·work).
func (e trueEngine) at(rate float64) state {
	itl := e.alpha / (1 - min(rate*e.work(), 0.98))
	running := rate * e.outputs * itl
	return state{rate: rate, itl: itl, running: running, kv: min(1, running*e.context/e.kvTokens)}
}

// rateOf returns the rate at which an engine has a number of requests in flight.
func (e trueEngine) rateOf(running float64) float64 {
	return running / (e.outputs*e.alpha + running*e.work())
}

// capacity returns the highest rate within the default limits of the saturation analysis.
func (e trueEngine) capacity() float64 {
	s := Saturation{}.withDefaults()
	running := min(s.kvTarget()*e.kvTokens/e.context, float64(e.maxSequences))
	return min(e.rateOf(running), (1-1/cmp.Or(e.objective, s.MaxITLStretch))/e.work())
}

// split returns the rate of a replica of each engine at a total load. The gateway gives every
// replica the same number of requests in flight.
func split(load float64, engines []trueEngine, replicas []int) []float64 {
	rates := make([]float64, len(engines))
	low, high := 0.0, 1e5 // requests in flight of each replica
	for range 60 {
		middle, total := (low+high)/2, 0.0
		for i, e := range engines {
			rates[i] = e.rateOf(middle)
			total += rates[i] * float64(replicas[i])
		}
		if total < load {
			low = middle
		} else {
			high = middle
		}
	}
	return rates
}

// seen is the history of a variant's replicas before the state that they report.
type seen struct {
	peak  float64 // highest rate of a replica in the long window; 0: that of the state
	floor float64 // lowest load that a window had; 0: that of the state
}

// report returns the rows of replicas in a state. Noise is the standard deviation of a mean over
// five minutes; readings of one minute and of one instant deviate more.
func (e trueEngine) report(n int, now state, past seen, noise float64, random *rand.Rand) []*fleet.Usage {
	vary := func(value, times float64) fleet.Reading {
		return fleet.Observed(max(0, value*(1+times*noise*random.NormFloat64())))
	}
	floor := e.at(now.rate).itl
	if past.floor > 0 {
		floor = e.at(past.floor).itl
	}
	rows := make([]*fleet.Usage, n)
	for i := range rows {
		rows[i] = &fleet.Usage{
			Running: vary(now.running, 3), Waiting: fleet.Observed(0), KV: vary(now.kv, 3), KVTokens: fleet.Observed(e.kvTokens),
			FirstTokens: vary(now.rate, 2), ITL: vary(now.itl, 0.5), WaitingGrowth: fleet.Observed(0), Scrapes: MinScrapes,
			MeanRate: vary(now.rate, 1), MeanKV: vary(now.kv, 1), MeanITL: vary(now.itl, 0.2), MeanRunning: vary(now.running, 1),
			// An hour has many windows: its lowest and highest deviate in one direction.
			ITLFloor: fleet.Observed(floor * (1 - 0.5*noise)), PeakRate: fleet.Observed(max(past.peak, now.rate) * (1 + 2*noise)),
		}
	}
	return rows
}

// steady returns a model with a load on some replicas of each engine, the catalogue's throughput of
// each, and the rate of a replica of each.
func steady(load float64, engines []trueEngine, replicas []int, speeds []float64, past []seen, noise float64, random *rand.Rand) (Model, []float64) {
	rates := split(load, engines, replicas)
	m := Model{Rate: fleet.Observed(load), PromptTokens: fleet.Observed(1000), OutputTokens: fleet.Observed(engines[0].outputs)}
	for i, e := range engines {
		now := e.at(rates[i])
		m.InFlight += now.running * float64(replicas[i])
		m.Variants = append(m.Variants, Variant{
			Replicas: e.report(replicas[i], now, past[i], noise, random), Speed: speeds[i],
			KVTokens: e.kvTokens, MaxSequences: e.maxSequences,
			Objective: fleet.Objective{ITL: time.Duration(e.objective * e.alpha / Saturation{}.withDefaults().MaxITLShare * float64(time.Second))},
		})
	}
	return m, rates
}

// randomEngine returns an engine of any size: from one that is limited by memory to one whose fixed
// time of an iteration hides its work.
func randomEngine(random *rand.Rand) trueEngine {
	between := func(low, high float64) float64 { return low * math.Pow(high/low, random.Float64()) }
	return trueEngine{
		alpha: between(0.003, 0.040), sequence: between(10e-6, 150e-6), prompt: between(0.004, 0.080),
		outputs: between(50, 500), context: between(400, 4000), kvTokens: between(50_000, 1_500_000),
		maxSequences: []int{64, 128, 256, 1024}[random.IntN(4)], gpus: []int{1, 1, 2, 4, 8}[random.IntN(5)],
		objective: float64(random.IntN(2)) * between(1.02, 4),
	}
}
