package queueing

import "math"

// itlMiss is the share of requests whose mean time between tokens is too long.
//
// A request with n = O-1 iterations to go meets a limit S on the mean if they are done within τ = nS. The engine works on its
// iterations and on those of others in turn. So the time they take is the first time t at which t less the work that others
// have brought until t is the request's own: a delay busy period, started by the own work, by what is left of the requests that
// decode already, and by the prompts that queued up behind the own one. Jumps are the work that each later request adds.
func (c *cell) itlMiss(l *load) float64 {
	if c.Objective.ITL == 0 {
		return 0
	}
	b := c.backlogOf(l)
	miss := 0.0
	for j := range c.Mix.outputBins {
		w := &c.Mix.windows[j]
		if w.iterations > 0 {
			miss += c.Mix.outputShare[j] * c.late(l, &b, w)
		}
	}
	return finite(miss)
}

// backlog is the stretch of time before the first token whose arrivals are still to be prefilled afterwards: the wait and the
// own prefill, where it shuts others out.
type backlog struct {
	mean, variance float64 // δ and Vδ
	cut            float64 // iterations at the end of the window whose arrivals are executed in part only
	base           float64
}

func (c *cell) backlogOf(l *load) backlog {
	mean, square := 0.0, 0.0
	for i := range c.Mix.tailCount {
		chunks := math.Ceil(c.tailTokens[i] / l.chunk)
		// The last chunk shuts others out; the earlier ones in part, 0.8, since short prompts may come with them.
		last := min(1, l.chunk/c.tailTokens[i])
		d := 0.8*(chunks-1)*l.base + c.tailWork[i]*(last+0.8*(1-last))
		mean += c.Mix.tailShare[i] * d
		square += c.Mix.tailShare[i] * d * d
	}
	return backlog{
		mean:     l.wait + mean,
		variance: max(0, square-mean*mean) + l.wait*l.wait + l.rate*l.service3/(3*(1-l.rate*l.service)),
		cut:      c.tokens2 / (c.tokens * l.chunk), base: l.base,
	}
}

// late is the share of the requests of one part of the outputs that miss the limit.
func (c *cell) late(l *load, b *backlog, w *window) float64 {
	m, r := c.Mix, c.Replica
	n := w.iterations
	f := passage{deadline: n * c.Objective.ITL, rate: l.rate, count: m.promptBins, shares: &m.promptShare}
	f.own = n * (r.Iteration + r.PerSequence + r.PerContextToken*(m.prompt+n/2))
	if f.own >= f.deadline {
		return 1
	}
	f.delay, f.delayVariance = b.mean-min(b.cut, n)*b.base, b.variance
	for i := range m.promptBins {
		f.jumps[i] = c.promptWork[i] + w.later*(r.PerSequence+r.PerContextToken*(m.promptMean[i]+w.later/2))
	}

	perIteration := r.PerSequence + r.PerContextToken*(m.prompt+w.position/w.sum) // w1
	f.old = l.rate * l.iteration * (r.PerSequence*w.sum + r.PerContextToken*(m.prompt*w.sum+w.position))
	big := max(1, (f.deadline-f.own-f.old)*c.work/c.work2) // J: how many prompts it takes
	scale := max(0, f.delay) + f.own + 0.5*(1-1/big)*(f.deadline-f.own)
	extra, _ := c.burst.at(l.rate * scale)
	f.repeat = extra / (1 + extra)
	_, index := c.burst.at(l.rate * f.deadline)

	f.old += extra * min(n, m.output) * perIteration
	square := perIteration * perIteration
	f.oldVariance = l.rate * l.iteration * ((square+c.squareContext)*w.square + (index-1)*square*w.meanSquare) * l.amplification
	f.oldVariance += l.rate * f.deadline * square * w.later2
	return min(pessimism*f.miss(), c.chunkCap(l, w, &f))
}

// chunkCap bounds the share by what the token budget lets through: in n iterations at most nC tokens of prompts are computed.
func (c *cell) chunkCap(l *load, w *window, f *passage) float64 {
	r, m := c.Replica, c.Mix
	n := w.iterations
	top := m.promptMean[m.promptBins-1]
	work := n * l.chunk * (r.PerPromptToken + r.PerPromptTokenSquared*(2*top-min(n*l.chunk, top)))
	perIteration := r.PerSequence + r.PerContextToken*(m.prompt+w.position/w.sum)
	mean := f.old + n*(l.chunk/c.tokens)*w.later*perIteration
	return gammaTail(f.deadline-f.own-work, mean, f.oldVariance)
}
