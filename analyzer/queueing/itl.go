package queueing

import "math"

// itlMiss is the share of requests whose mean time between tokens is too long, and the part of it
// that has short outputs.
//
// A request with n = O-1 iterations to go meets a limit S on the mean if they are done within τ =
// nS. The engine works on its iterations and on those of others in turn. So they are done at the
// first time t at which t, less the work that others brought until t, equals the request's own
// work: a delay busy period. It starts with the own work, the remaining work of requests that
// decode already, and the prompts that queued up behind the own one. Jumps are the work that each
// later request adds.
func (c *cell) itlMiss(l *load) (miss, short float64) {
	if c.Objective.ITL == 0 {
		return 0, 0
	}
	b := c.backlogOf(l)
	last := 0.0
	for j := range c.Mix.outputBins {
		w := &c.Mix.windows[j]
		if c.Mix.lateShare[j] == 0 || l.rate <= c.safe[j] {
			continue
		}
		if c.starts[j].rate == 0 {
			c.starts[j].eta = last // the saddle of the neighbour is near
		}
		late := c.Mix.lateShare[j] * c.late(l, &b, j)
		last = c.starts[j].eta
		if late < negligible*(1-c.Objective.Percentile) {
			c.safe[j] = l.rate
		}
		miss += late
		if w.iterations < shortOutput {
			short += late
		}
	}
	return finite(miss), finite(short)
}

// negligible is a share of the allowed misses. A cause with fewer, a part of the outputs or the
// limit on TTFT, is not computed again at lower rates, as it has even fewer there.
const negligible = 1e-4

// shortOutput is the number of iterations below which an output is too short to treat time as
// continuous.
const shortOutput = 6

// backlog is the time before the first token whose arrivals are still to be prefilled afterwards:
// the wait, and the part of the own prefill that excludes others.
type backlog struct {
	mean, variance float64
	along          float64 // share of those behind that fit into the last iteration
	chunks         float64 // κ: chunks of the prompt that a random token belongs to
}

const (
	shutOut   = 0.8 // part of a prompt's earlier chunks that excludes others
	alongWait = 0.8 // part of those that fit beside it that do, of arrivals during the wait
	alongOwn  = 0.2 // the same, of arrivals in the own batch
)

func (c *cell) backlogOf(l *load) backlog {
	early, early2, last, last2 := 0.0, 0.0, 0.0, 0.0
	for i, share := range c.Mix.tailShare[:c.Mix.tailCount] {
		part := min(1, l.chunk/c.tailTokens[i])
		e := shutOut * ((math.Ceil(c.tailTokens[i]/l.chunk)-1)*l.base + c.tailWork[i]*(1-part))
		f := c.tailWork[i] * part
		early += share * e
		early2 += share * e * e
		last += share * f
		last2 += share * f * f
	}
	// Tokens behind: none, or exponential. Budget that the own last chunk leaves: uniform.
	behind := l.rate * (l.wait + early)
	size := behind * c.tokens / -math.Expm1(-behind)
	along := 1 + size/l.chunk*math.Expm1(-l.chunk/size)
	keep := 1 - alongWait*along*(1-l.prefillShare)
	return backlog{
		mean:     keep*(l.wait+early) + last,
		variance: keep*keep*(max(0, early2-early*early)+l.waitVariance) + max(0, last2-last*last),
		along:    along,
		chunks:   max(1, c.tokens2/(c.tokens*l.chunk)),
	}
}

// lost is the number of iterations at the end of a window of n in which arrivals are not prefilled
// completely: not at all in the last one, and only some of their chunks in those before.
func (b *backlog) lost(n float64) float64 {
	if n <= b.chunks {
		return n - n*(n-1)/(2*b.chunks)
	}
	return (b.chunks + 1) / 2
}

// pessimism multiplies the tails: Lugannani and Rice's formula was up to a fifth below a Monte
// Carlo simulation of the same model.
const pessimism = 1.15

// late is the share of the requests of one part of the outputs that miss the limit.
func (c *cell) late(l *load, b *backlog, part int) float64 {
	m, r, w := c.Mix, c.Replica, &c.Mix.windows[part]
	n := w.iterations
	f := passage{deadline: n * c.Objective.ITL, rate: l.rate, count: m.promptBins, shares: &m.promptShare, start: c.starts[part].expect(l.rate)}
	f.own = n * (r.Iteration + r.PerSequence + r.PerContextToken*(m.prompt+n/2))
	if f.own >= f.deadline {
		return 1
	}
	f.delay = max(0, b.mean-b.lost(n)*l.base)
	f.delayVariance = b.variance * f.delay / b.mean
	for i := range m.promptBins {
		f.jumps[i] = c.promptWork[i] + w.later[1]*(r.PerSequence+r.PerContextToken*m.promptMean[i]) + r.PerContextToken*w.later[2]/2
	}
	c.older(l, b, w, &f)
	smooth := c.smoothed(l, f)
	miss := pessimism * smooth.miss()
	f.start = smooth.start
	c.starts[part].note(l.rate, f.start)
	if miss < 1e-9 {
		return miss
	}
	return min(1, miss) * c.chunksSuffice(l, w, &f)
}

// older fills in the work of requests that decode already, and the clumping of later ones.
func (c *cell) older(l *load, b *backlog, w *window, f *passage) {
	m, r := c.Mix, c.Replica
	n := w.iterations
	// mo
	f.old = l.rate * l.iteration * (r.PerSequence*w.sum + r.PerContextToken*(m.prompt*w.sum+w.position))
	prompts := 1.0 // J: the number of prompts that make it late
	if c.work2 > 0 {
		prompts = max(1, (f.deadline-f.own-f.old)*c.work/c.work2)
	}
	scale := b.mean + f.own + 0.5*(1-1/prompts)*(f.deadline-f.own)
	extra, _ := c.burst.at(l.rate * scale)
	f.repeat = extra / (1 + extra)
	own := extra * (1 - alongOwn*b.along)
	f.behind = own / (1 + own)

	_, index := c.burst.at(l.rate * f.deadline)
	perIteration := c.perIteration(w)
	f.old += extra * min(n, m.output) * perIteration
	older, later := c.decodeSquares(w)
	f.oldVariance = l.amplification*l.rate*l.iteration*(older+(index-1)*perIteration*perIteration*w.meanSquare) +
		l.rate*f.deadline*later // vo
}

// decodeSquares is E∫x² of the work x that a request that decodes already does in a window, and the
// variance of that of a later one. A long output has a long context as well.
func (c *cell) decodeSquares(w *window) (older, later float64) {
	growth := c.Replica.PerContextToken
	first := c.Replica.PerSequence + growth*c.Mix.prompt
	older = (first*first+c.contextVariance)*w.square[0] + 2*first*growth*w.square[1] + growth*growth*w.square[2]
	k := &w.later
	later = (first*first+c.contextVariance)*(k[2]-k[1]*k[1]) + first*growth*(k[3]-k[1]*k[2]) + growth*growth/4*(k[4]-k[2]*k[2])
	return older, max(0, later)
}

// perIteration is w1: the cost of one iteration of another request.
func (c *cell) perIteration(w *window) float64 {
	return c.Replica.PerSequence + c.Replica.PerContextToken*(c.Mix.prompt+w.position/w.sum)
}

// chunksSuffice is the probability that as many chunks of prompts as fit into the window's
// iterations make it late. The next prompt begins with the window, so its position, and with it its
// work, is known.
func (c *cell) chunksSuffice(l *load, w *window, f *passage) float64 {
	r, m := c.Replica, c.Mix
	tokens := w.iterations * l.chunk
	position, square := c.wholePosition, c.wholeSquare
	if tokens+l.chunk < c.tailTokens[m.tailCount-1] {
		position, square = c.positions(tokens + l.chunk)
	}
	perToken := 2 * r.PerPromptTokenSquared * tokens
	mean := tokens*r.PerPromptToken + perToken*position + f.old + tokens/c.tokens*w.later[1]*c.perIteration(w)
	variance := perToken * perToken * max(0, square-position*position)
	return gammaTail(f.deadline-f.own, mean, f.oldVariance+variance)
}

// smoothed returns the passage for arrivals that are smoother than Poisson's: a part of their work
// comes evenly, and only the rest as a compound Poisson process, so that the variance of the work
// is that of arrivals with the index of dispersion I: Var v + I·(E v)².
func (c *cell) smoothed(l *load, f passage) passage {
	if c.burst.index >= 1 {
		return f
	}
	f.rate *= l.others
	mean, square := 0.0, 0.0
	for i, share := range f.shares[:f.count] {
		mean += share * f.jumps[i]
		square += share * f.jumps[i] * f.jumps[i]
	}
	evenly := (1 - c.burst.index) * mean * mean / square
	drift := evenly * f.rate * mean
	left := 1 - drift
	f.own += drift * f.delay
	f.delay *= left
	f.delayVariance *= left * left
	f.deadline *= left
	f.rate *= (1 - evenly) / left
	return f
}
