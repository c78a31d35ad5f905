package analyzer

import (
	"math"
	"strconv"

	"github.com/wva-project/wva/analyzer/queueing"
	"github.com/wva-project/wva/fleet"
)

// work is the mean work of a request on an engine.
type work struct {
	mix      *queueing.Mix
	hits     float64 // share of each prompt that is found in the prefix cache
	chunks   float64 // iterations that a prompt is computed in; 0 if all of it is cached
	contexts float64 // by how much contexts are longer than those of the mix; >= 1
	steps    float64 // times between tokens of a request; 0 if unknown
}

// newWork returns the mean work of a mix of requests on an engine.
func newWork(mix *queueing.Mix, r queueing.Replica) work {
	return work{mix: mix, hits: r.PrefixHits, chunks: chunksOf(mix.MeanPrompt(), r), contexts: 1}
}

// chunksOf returns the iterations that a prompt is computed in; 0 if all of it is cached.
func chunksOf(prompt float64, r queueing.Replica) float64 {
	if tokens := prompt * (1 - r.PrefixHits); tokens > 0 {
		return max(1, tokens/float64(r.BatchedTokens)+0.5)
	}
	return 0
}

// decodes reports whether requests have more tokens than the first.
func (w work) decodes() bool { return w.mix.MeanOutput() > 1 }

// correction holds the factors that make a profile agree with the metrics of the replicas: on the
// time of an empty iteration, on the time that decoding adds, and on the time that prompts add.
type correction struct {
	iteration, decode, prefill float64
	replicas                   int // in the estimate; 0 means no correction
}

// Standard deviations of a profile and of a window. A profile often comes from another version of
// an engine, or from kernel timings alone: it is off by a third, mostly by the same factor in all
// parameters. A window of one minute or five minutes deviates less.
const (
	profileDeviation = 0.3
	profileCommon    = 0.7 // part of the variance that all parameters share
	windowDeviation  = 0.07
	prefillDeviation = 0.15
	mostCorrection   = 2.0
	// requestsForWindow is the number of requests with which windows deviate 1.4 times as much.
	requestsForWindow = 30.0
	// leastForCorrection is the rate of requests, per second, of all replicas of a variant, from
	// which on they correct its profile: five in the usual window of five minutes.
	leastForCorrection = 1.0 / 60
	// fillsUp is the part of the requests that would run at the rate of a window and the time that
	// they stay: below it the batch fills up, and more requests begin than end.
	fillsUp = 0.75
	// fewHits is the share of prompts in the prefix cache up to which the KV cache in use is what
	// requests read: blocks that several share count once.
	fewHits = 0.1
)

// calibrate returns the correction of a profile by the metrics of the variant's replicas. In an
// iteration of T seconds a replica that serves λ requests/s does the work of λT requests. T is the
// mean time between tokens, so that
//
//	1 = iteration/T + λ·decode + λ·prefill
//
// The prefill of a request takes the iterations of its chunks, its own work and that of other
// prompts in the same iterations. Both equations are linear in the corrections. These are estimated
// by least squares with the profile as the prior. The result is a pure function of the windows in
// the snapshot.
func calibrate(p queueing.Profile, w work, v Variant) correction {
	e := newEstimate()
	for _, r := range v.Replicas {
		e.add(p, w, r, r.KVTokens.Or(v.KVTokens))
	}
	c := correction{iteration: 1, decode: 1, prefill: 1}
	if e.replicas > 0 && e.rate >= leastForCorrection {
		c = e.solve()
		// No iteration is shorter than that of an empty batch.
		if floor := v.shortestITL(); floor > 0 {
			c.iteration = min(c.iteration, steps(max(1/mostCorrection, floor/shortest(p, v)), coarseMean))
		}
	}
	return c
}

// shortest returns the time of an iteration with next to no requests, in seconds.
func shortest(p queueing.Profile, v Variant) float64 {
	if v.Profile == nil || v.Profile.Cost.Experts == 0 {
		return p.Iteration
	}
	cost := v.Profile.Cost
	return (cost.Alpha + float64(cost.Experts*cost.Touched(1))) / 1e3
}

// applied returns the corrected profile.
func (c correction) applied(p queueing.Profile) queueing.Profile {
	p.Iteration *= c.iteration
	p.PerSequence *= c.decode
	p.PerContextToken *= c.decode
	p.PerPromptToken *= c.prefill
	p.PerPromptTokenSquared *= c.prefill
	return p
}

// estimate is a least-squares problem in the deviations of three factors from 1.
type estimate struct {
	normal   [3][3]float64 // its lower triangle
	right    [3]float64
	replicas int
	rate     float64 // requests per second that are evidence
}

// newEstimate returns the prior: each deviation has the same variance v, and every two of them the
// covariance c·v. The inverse of that matrix is (I - c/(1+2c)·J)/(v·(1-c)), J with ones only.
func newEstimate() (e estimate) {
	const (
		own    = 1 / (profileDeviation * profileDeviation * (1 - profileCommon))
		shared = profileCommon / (1 + 2*profileCommon)
	)
	for i := range e.normal {
		for j := range i {
			e.normal[i][j] = -own * shared
		}
		e.normal[i][i] = own * (1 - shared)
	}
	return e
}

// add adds the metrics of one replica over the peak window, with a KV cache of so many tokens.
func (e *estimate) add(p queueing.Profile, w work, r *fleet.Usage, tokens float64) {
	means := r.Calibrating()
	rate, rated := means.Rate.Known()
	itl, timed := means.ITL.Known()
	if r.Scrapes < MinScrapes || !rated || rate <= 0 {
		return
	}
	noise := math.Sqrt(1 + requestsForWindow/(rate*peakSeconds))
	longer := p
	longer.PerContextToken *= w.contexts
	prefill, decode := w.mix.Work(longer, w.hits)
	timed = timed && itl > 0 && w.decodes()
	decoding := rate * decode // seconds of work a second
	running, used := means.Running.Or(0), tokens*means.KV.Or(0)
	stay := float64(w.steps * itl)
	filling := stay > turnover && running > 0 && running < fillsUp*rate*stay
	if timed && used > 0 && w.hits <= fewHits && (filling || running > longTurnover*rate) {
		decoding = (float64(p.PerSequence*running) + float64(p.PerContextToken*used)) / itl
	}
	if timed {
		e.observe(windowDeviation*noise, p.Iteration/itl, decoding, rate*prefill)
	} else { // it only prefills
		itl = p.Iteration / max(0.1, 1-rate*prefill)
	}
	first, seen := means.Prefill.Known()
	seen = seen && first > 0 && w.chunks > 0
	if seen {
		e.observe(prefillDeviation*noise, w.chunks*p.Iteration/first,
			w.chunks*decoding*itl/first, prefill*(1+rate*itl)/first)
	}
	if timed || seen {
		e.replicas++
	}
	if timed || seen && !w.decodes() { // the first token says nothing about the others
		e.rate += rate
	}
}

// peakSeconds is the length of the window of a replica's means.
const peakSeconds = 300

// observe adds a row: the parts add up to 1 within a deviation.
func (e *estimate) observe(deviation, iteration, decode, prefill float64) {
	row := [3]float64{iteration, decode, prefill}
	weight := 1 / (deviation * deviation)
	left := 1 - (iteration + decode + prefill)
	for i := range row {
		for j := range i + 1 {
			e.normal[i][j] += weight * row[i] * row[j]
		}
		e.right[i] += weight * left * row[i]
	}
}

// solve returns the factors, bounded and rounded to steps.
func (e *estimate) solve() correction {
	deviations, ok := e.deviations()
	if !ok {
		return correction{iteration: 1, decode: 1, prefill: 1}
	}
	factor := func(deviation float64) float64 {
		return steps(max(1/mostCorrection, min(1+deviation, mostCorrection)), coarseMean)
	}
	return correction{iteration: factor(deviations[0]), decode: factor(deviations[1]), prefill: factor(deviations[2]), replicas: e.replicas}
}

// deviations solves the problem by Cholesky's method; false if the numbers do not allow that.
func (e *estimate) deviations() (x [3]float64, ok bool) {
	l := e.normal
	for i := range l {
		x[i] = e.right[i]
		for j := range i {
			for k := range j {
				l[i][j] -= l[i][k] * l[j][k]
			}
			l[i][j] /= l[j][j]
			l[i][i] -= l[i][j] * l[i][j]
			x[i] -= l[i][j] * x[j]
		}
		if !(l[i][i] > 0) || math.IsInf(l[i][i], 1) {
			return x, false
		}
		l[i][i] = math.Sqrt(l[i][i])
		x[i] /= l[i][i]
	}
	for i := len(l) - 1; i >= 0; i-- {
		for k := i + 1; k < len(l); k++ {
			x[i] -= l[k][i] * x[k]
		}
		if x[i] /= l[i][i]; math.IsNaN(x[i]) {
			return x, false
		}
	}
	return x, true
}

// basis returns the basis of a capacity that is computed from the corrected profile.
func (c correction) basis() Basis {
	if c.replicas > 0 {
		return BasisCalibrated
	}
	return BasisProfile
}

// String returns the corrections for a reason; "" if there are none.
func (c correction) String() string {
	if c.replicas == 0 {
		return ""
	}
	// without fmt: large fleets have thousands of these in a cycle
	text := make([]byte, 0, 64)
	for _, part := range [...]struct {
		name   string
		factor float64
	}{{"iteration ×", c.iteration}, {", decode ×", c.decode}, {", prefill ×", c.prefill}} {
		text = strconv.AppendFloat(append(text, part.name...), part.factor, 'f', 2, 64)
	}
	return string(text)
}
