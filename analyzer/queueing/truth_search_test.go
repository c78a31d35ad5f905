package queueing_test

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
)

// effort is the size of a simulation: replicates with requests of their own, each with the same
// requests at every rate. More replicates are run, up to most, while the standard error is above
// uncertain.
type effort struct{ replicates, most, counted int }

var (
	full   = effort{replicates: 5, most: 20, counted: 30_000}
	seeded = effort{replicates: 4, most: 4, counted: 30_000} // of each seed of the grid
	small  = effort{replicates: 3, most: 3, counted: 8_000}
)

const (
	// warming requests fill the engine before the first that counts, and as many follow the last,
	// so that the counted ones meet an engine in steady state. It is several times the batch of any
	// engine of the grid.
	warming   = 3_000
	precision = 0.004 // of the rate, by bisection
	uncertain = 0.02  // of the rate
)

// lengthPair is a request's prompt and output in tokens.
type lengthPair struct{ prompt, output float64 }

// question is one cell: engine, requests and objective.
type question struct {
	name string
	engine
	objective
	effort
	mix       []lengthPair
	variation float64 // squared coefficient of variation of the gaps
	seed      uint64  // of the random numbers, with the name
}

// arrivals are requests with gamma distributed gaps of mean one and lengths drawn from the mix with
// replacement.
func (q *question) arrivals(n int, source *rand.Rand) []request {
	requests := make([]request, n)
	var at float64
	for i := range requests {
		at += gammaOf(1/q.variation, source) * q.variation
		l := q.mix[source.IntN(len(q.mix))]
		requests[i] = request{at: at, prompt: l.prompt, output: l.output}
	}
	return requests
}

// gammaOf draws from the gamma distribution of a shape and scale one (Marsaglia and Tsang, 2000).
func gammaOf(shape float64, source *rand.Rand) float64 {
	if shape == 1 {
		return source.ExpFloat64()
	}
	if shape < 1 {
		return gammaOf(shape+1, source) * math.Pow(1-source.Float64(), 1/shape)
	}
	d := shape - 1.0/3
	for {
		x := source.NormFloat64()
		v := 1 + x/math.Sqrt(9*d)
		if v <= 0 {
			continue
		}
		v *= v * v
		if math.Log(1-source.Float64()) < x*x/2+d-d*v+d*math.Log(v) {
			return d * v
		}
	}
}

// replay is one replicate of the question.
func (q *question) replay(replicate int) *replay {
	h := fnv.New64a()
	h.Write([]byte(q.name))
	source := rand.New(rand.NewPCG(h.Sum64(), q.seed<<32+uint64(replicate)))
	requests := q.arrivals(warming+q.counted+warming, source)
	return newReplay(q.engine, q.objective, requests, warming, warming+q.counted)
}

// meanRate is λ_mean: the rate at which an iteration of the mean batch takes as long as the limit
// on TPOT, or at which the mean batch fills the sequences or the KV cache.
func (q *question) meanRate() float64 {
	n := float64(len(q.mix))
	var work, outputs, kvUse float64
	for _, l := range q.mix {
		computed := l.prompt * (1 - q.hits)
		work += (computed*(q.b+q.c*(2*q.hits*l.prompt+computed)) + l.output*(q.beta+q.gamma*(l.prompt+l.output/2))) / n
		outputs += l.output / n
		kvUse += l.output * (l.prompt + l.output/2) / n
	}
	batch := float64(q.sequences)
	if q.kv > 0 {
		batch = min(batch, q.kv*outputs/kvUse)
	}
	return min((1-q.alpha/q.tpot)/work, batch/(outputs*q.alpha+batch*work))
}

// truth is the highest rate that meets the objective.
type truth struct {
	Rate  float64
	Error float64 // standard error of Rate
}

func (q *question) truth() truth {
	var rates []float64
	for {
		start := 0.6 * q.meanRate()
		if len(rates) > 0 && rates[0] > 0 {
			start = rates[0]
		}
		rates = append(rates, q.replay(len(rates)).maxRate(start, q.meanRate()))
		if len(rates) < q.replicates {
			continue
		}
		mean, deviation := moments(rates)
		found := truth{Rate: mean, Error: deviation / math.Sqrt(float64(len(rates)))}
		if len(rates) >= q.most || found.Error <= uncertain*mean || mean < 0.05*q.meanRate() {
			return found
		}
	}
}

func moments(values []float64) (mean, deviation float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		deviation += (v - mean) * (v - mean) / float64(len(values)-1)
	}
	return mean, math.Sqrt(deviation)
}

// maxRate is the highest rate that meets the objective, found from start on; zero if a hundredth of
// the mean rate does not. Below a tenth of the mean rate, which is not usable, a precision of 5 %
// is enough.
func (r *replay) maxRate(start, mean float64) float64 {
	allowed := int(math.Floor((1-r.level)*float64(r.to-r.from) + 1e-9))
	keeps := func(rate float64) bool { return r.run(rate, allowed).either <= allowed }
	low, high, factor := start, start, 1.08
	if keeps(start) {
		for high = factor * low; keeps(high); high = factor * low {
			low, factor = high, min(2, factor*factor)
		}
	} else {
		for low = high / factor; !keeps(low); low = high / factor {
			if low < 0.01*mean {
				return 0
			}
			high, factor = low, min(2, factor*factor)
		}
	}
	step := 1 + precision
	if high < 0.1*mean {
		step = 1.05
	}
	for high > step*low {
		if middle := math.Sqrt(low * high); keeps(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return math.Sqrt(low * high)
}

// attainment is the share of requests that meet both limits at a rate, over several replicates.
func (q *question) attainment(rate float64, replicates int) float64 {
	if rate <= 0 {
		return 1
	}
	var missed int
	for i := range replicates {
		missed += q.replay(i).run(rate, math.MaxInt).either
	}
	return 1 - float64(missed)/float64(replicates*q.counted)
}
