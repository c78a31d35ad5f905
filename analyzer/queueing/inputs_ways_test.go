package queueing_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"

	"github.com/wva-project/wva/analyzer/queueing"
)

// way is a way to size for lengths that are not known completely.
type way struct {
	name string
	rate func(a *asked) float64
}

// asked is a cell with the question that the product is asked by default, and its answer.
type asked struct {
	*evaluation
	sizer    *queueing.Sizer
	question queueing.Question
	first    queueing.Answer // to the question
	rates    []float64       // by way
	attained []float64       // by way: the share of requests within the limits; of usable cells
}

// askedOf asks about a cell with a truth by each way.
func askedOf(c *cell, known truth, mix *queueing.Mix, ways []way) *asked {
	a := &asked{evaluation: &evaluation{cell: c, truth: known, meanRate: c.meanRate()}, sizer: new(queueing.Sizer), question: c.asked(mix)}
	a.first = a.hybridOf(a.question)
	if !a.usable() {
		return a
	}
	for _, w := range ways {
		rate := w.rate(a)
		a.rates = append(a.rates, rate)
		a.attained = append(a.attained, a.attainment(rate, 2))
	}
	return a
}

// hybridOf is the answer that the product uses.
func (a *asked) hybridOf(q queueing.Question) queueing.Answer {
	_, hybrid := answers(a.sizer, q)
	return hybrid
}

// longer is the rate with contexts that are longer by a factor.
func (a *asked) longer(factor float64) float64 {
	q := a.question
	q.Replica = q.Replica.WithContexts(factor)
	return a.hybridOf(q).Rate
}

// correlationWays are the ways that were tried for prompts and outputs that are correlated. The
// first is sizing by the histograms alone, the second that of the product.
var correlationWays = []way{
	{"histograms alone", func(a *asked) float64 { return a.first.Rate }},
	{"**contexts too, by gauges of one replica**", func(a *asked) float64 { return a.byGauges(a.blended(1)) }},
	{"contexts too, by gauges of three replicas", func(a *asked) float64 { return a.byGauges(a.blended(3)) }},
	{"contexts too, by gauges of one replica and 5 minutes", func(a *asked) float64 { return a.byGauges(a.scraped(0.4*a.meanRate, 1)) }},
	{"contexts, if they were known exactly", func(a *asked) float64 { return a.longer(max(1, a.contexts())) }},
	{"decode calibrated by the observed ITL, exactly", func(a *asked) float64 {
		q := a.question
		_, before := q.Mix.Work(q.Replica.Profile, 1)
		longer := q.Replica.WithContexts(max(1, a.contexts())).Profile
		_, after := q.Mix.Work(longer, 1)
		q.Replica.PerSequence *= after / before
		q.Replica.PerContextToken *= after / before
		return a.hybridOf(q).Rate
	}},
	{"misses of an hour at 67 % of the rate", func(a *asked) float64 { return a.byMisses(0.67) }},
	{"misses of an hour at 85 % of the rate", func(a *asked) float64 { return a.byMisses(0.85) }},
	{"misses of an hour at the rate", func(a *asked) float64 { return a.byMisses(1) }},
}

// byGauges is the rate with the contexts that gauges show.
func (a *asked) byGauges(b queueing.Batch) float64 { return a.longer(a.question.Mix.LongerContexts(b)) }

// blended has the gauges of so many replicas over 5 minutes, and the fewer their requests are than
// 1,000 the more those over 30 minutes.
func (a *asked) blended(replicas int) queueing.Batch {
	recent, long := a.scraped(0.4*a.meanRate, replicas), a.scraped(0.4*a.meanRate, 6*replicas)
	part := min(1, recent.Requests/1000)
	blend := func(recent, long float64) float64 { return part*recent + (1-part)*long }
	return queueing.Batch{
		Tokens: blend(recent.Tokens, long.Tokens/6), Running: blend(recent.Running, long.Running/6),
		Prefilling: blend(recent.Prefilling, long.Prefilling/6), Requests: blend(recent.Requests, long.Requests),
	}
}

// contexts is by how much contexts are longer than those of the same lengths in independent pairs.
func (a *asked) contexts() float64 {
	var together, prompt, decode, decode2 float64
	n := float64(len(a.mix))
	for _, l := range a.mix {
		d := l.output - 1
		together += d * (l.prompt + 1 + d/2) / n
		prompt += l.prompt / n
		decode += d / n
		decode2 += d * d / n
	}
	return together / (decode*(prompt+1) + decode2/2)
}

// byMisses is the rate that is lowered until the formula predicts the misses of an hour at a part
// of it, if these are two standard errors above the predicted ones.
func (a *asked) byMisses(part float64) float64 {
	load := part * a.first.Rate
	if load <= 0 {
		return 0
	}
	predicted := func(factor float64) float64 { return must(a.sizer.Violation(a.question, load*factor)).Either }
	requests := 3600 * load
	missed := math.Round((1-a.attainment(load, 2))*requests) / requests
	p, factor := predicted(1), 1.0
	if missed > p+2*math.Sqrt(p*(1-p)/requests)+2/requests {
		for factor < 2 && predicted(factor) < missed {
			factor *= 1.01
		}
	}
	return a.first.Rate / factor
}

// meansWays are the ways that were tried for lengths of which only the mean is known. The first is
// that of chats, the second that of the product.
var meansWays = []way{
	{"CV 1", func(a *asked) float64 { return a.first.Rate }},
	{"**CV 2 up to the KV cache, at least a tenth of λ_mean**", func(a *asked) float64 { return a.useful(a.unmeasured()) }},
	{"CV 2 up to the KV cache", func(a *asked) float64 { return a.unmeasured().Rate }},
	{"CV 2 up to 131,072 tokens, at least a tenth of λ_mean", func(a *asked) float64 { return a.useful(a.assuming(varied(2), 131_072)) }},
	{"the lower one of CV 1 and CV 2", func(a *asked) float64 {
		return min(a.first.Rate, a.unmeasured().Rate)
	}},
	{"CV 2; if infeasible half of CV 1, ½ or 0", func(a *asked) float64 {
		if heavy := a.unmeasured(); heavy.Remedy == "" {
			return heavy.Rate
		}
		var lighter queueing.Answer
		for _, variation := range []float64{1, 0.5, 0} {
			if lighter = a.assuming(varied(variation), a.kv); lighter.Remedy == "" {
				break
			}
		}
		return lighter.Rate / 2
	}},
	{"CV 3", func(a *asked) float64 { return a.assuming(varied(3), a.kv).Rate }},
}

// assuming is the answer for lengths of a shape with the means of the cell.
func (a *asked) assuming(s shape, longest float64) queueing.Answer {
	return a.answerFor(fmt.Sprint(s.name, longest), func(mean float64) queueing.Lengths {
		return must(queueing.SampledLengths(s.lengths(mean, longest, rand.New(rand.NewPCG(1, 1)))))
	})
}

// unmeasured is the answer for the lengths that the product assumes.
func (a *asked) unmeasured() queueing.Answer {
	return a.answerFor(fmt.Sprint("unmeasured", a.kv), func(mean float64) queueing.Lengths {
		return must(queueing.UnmeasuredLengths(mean, a.kv))
	})
}

// assumedMixes are the mixes of lengths with the means of a use, by name.
var assumedMixes sync.Map

func (a *asked) answerFor(name string, lengths func(mean float64) queueing.Lengths) queueing.Answer {
	mean := meanLengths[a.use]
	known, found := assumedMixes.Load(name + a.use)
	if !found {
		known, _ = assumedMixes.LoadOrStore(name+a.use, newMix(lengths(mean.prompt), lengths(mean.output)))
	}
	q := a.question
	q.Mix = known.(*queueing.Mix)
	return a.hybridOf(q)
}

// useful is the rate of an answer for assumed lengths. If they are all that makes it infeasible, it
// is at least the least useful rate.
func (a *asked) useful(answer queueing.Answer) float64 {
	if answer.Remedy == "" || a.infeasibleByMeans() {
		return answer.Rate
	}
	return max(answer.Rate, queueing.LeastUsefulShare*answer.MeanRate)
}

// infeasibleByMeans reports whether lengths that all are their mean miss the objective.
func (a *asked) infeasibleByMeans() bool { return a.assuming(varied(0), a.kv).Remedy != "" }
