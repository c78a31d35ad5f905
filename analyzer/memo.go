package analyzer

import (
	"encoding/binary"
	"math"
	"sync"

	"github.com/wva-project/wva/analyzer/queueing"
	"github.com/wva-project/wva/fleet"
)

// Memo caches answers of the queueing model, so that they are not computed again in each cycle. It
// changes no result: an answer is a function of its question. It is safe for concurrent use.
type Memo struct {
	sizer queueing.Sizer

	mutex   sync.Mutex
	mixes   map[string]*queueing.Mix
	answers map[queueing.Question]queueing.Answer // by formula
	curves  map[queueing.Question]curve
}

// Bounds on the memory of a memo: a mix takes 70 kB, an answer some hundred bytes.
const (
	maxMixes   = 2048
	maxAnswers = 1 << 16
)

// answered is an answer of the queueing model with the question that it is about.
type answered struct {
	queueing.Answer
	question queueing.Question
	formula  float64 // the rate by the formula
}

// maxRate asks for the highest rate within the objective, of the formula or, if that is doubtful,
// of a simulation.
func (k *Memo) maxRate(q queueing.Question, simulations *Simulations) (a answered, err error) {
	a.question = q
	if a.Answer, err = k.formula(q); err != nil {
		return a, err
	}
	a.formula = a.Rate
	if a.Doubtful && simulations.Left() {
		a.Answer, err = k.sizer.Simulate(q)
		simulations.Count--
		simulations.Iterations -= a.Iterations
	}
	return a, err
}

// misses returns a function that returns the share of requests that miss the objective at a rate.
// It is interpolated on a curve over the highest rate, which is valid for the answer of a
// simulation too, and which the first call looks up. The function is not safe for concurrent use.
func (k *Memo) misses(a answered) func(rate float64) float64 {
	var c *curve
	return func(rate float64) float64 {
		if !(a.Rate > 0) {
			return 1
		}
		if c == nil {
			c = new(k.curve(a))
		}
		return c.at(rate / a.Rate)
	}
}

// at returns the share of requests that miss at a part of the highest rate.
func (c *curve) at(part float64) float64 {
	for i := 1; i < len(c); i++ {
		if part <= curveAt[i] {
			return c[i-1] + (c[i]-c[i-1])*(part-curveAt[i-1])/(curveAt[i]-curveAt[i-1])
		}
	}
	return 1
}

// curve is the share of requests that miss, at parts of the highest rate. It never falls.
type curve [len(curveAt)]float64

// curveAt are the parts of the highest rate at which a curve is computed; beyond the last, all
// requests count as misses.
var curveAt = [...]float64{0, 0.6, 0.8, 0.9, 1, 1.1, 1.2, 1.35, 1.5, 1.75, 2}

func (k *Memo) curve(a answered) curve {
	k.mutex.Lock()
	c, kept := k.curves[a.question]
	k.mutex.Unlock()
	if kept {
		return c
	}
	for i := 1; i < len(c); i++ {
		violation, err := k.sizer.Violation(a.question, curveAt[i]*a.formula)
		if c[i] = max(c[i-1], violation.Either); err != nil {
			c[i] = 1
		}
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.curves == nil || len(k.curves) >= maxAnswers {
		k.curves = make(map[queueing.Question]curve)
	}
	k.curves[a.question] = c
	return c
}

// formula returns the answer of the formula, cached or computed.
func (k *Memo) formula(q queueing.Question) (queueing.Answer, error) {
	k.mutex.Lock()
	answer, kept := k.answers[q]
	k.mutex.Unlock()
	if kept {
		return answer, nil
	}
	answer, err := k.sizer.MaxRate(q)
	if err != nil {
		return answer, err
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.answers == nil || len(k.answers) >= maxAnswers {
		k.answers = make(map[queueing.Question]queueing.Answer)
	}
	k.answers[q] = answer
	return answer, nil
}

// mix returns the lengths of a model's requests as a variant of the role serves them; nil and the
// reason if they are unknown.
func (m Model) mix(role fleet.Role, memo *Memo) (mix *queueing.Mix, why string) {
	prompt, output := m.PromptTokens.Or(0), m.OutputTokens.Or(0)
	if !(prompt > 0) || !(output > 0) {
		return nil, "prompt and output lengths are not known yet, so the objective is not used for sizing"
	}
	prompts, outputs := coarse(m.Prompts), coarse(m.Outputs)
	prompt, output = steps(prompt, coarseMean), steps(output, coarseMean)
	key := keyOf(role, prompts, outputs, prompt, output)
	memo.mutex.Lock()
	kept := memo.mixes[key]
	memo.mutex.Unlock()
	if kept != nil {
		return kept, ""
	}
	mix, err := newMix(lengths{prompts, prompt}, lengths{outputs, output})
	if err != nil {
		return nil, "prompt and output lengths are invalid: " + err.Error()
	}
	if role == fleet.RolePrefill {
		mix = mix.PrefillOnly()
	}
	memo.mutex.Lock()
	defer memo.mutex.Unlock()
	if kept := memo.mixes[key]; kept != nil { // another goroutine was faster
		return kept, ""
	}
	if memo.mixes == nil || len(memo.mixes) >= maxMixes {
		memo.mixes = make(map[string]*queueing.Mix)
		clear(memo.answers) // they hold mixes
		clear(memo.curves)
	}
	memo.mixes[key] = mix
	return mix, ""
}

// lengths is a histogram, which may be empty, and its mean.
type lengths struct {
	buckets []queueing.LengthBucket
	mean    float64
}

func newMix(prompts, outputs lengths) (*queueing.Mix, error) {
	prompt, err := prompts.distribution()
	if err != nil {
		return nil, err
	}
	output, err := outputs.distribution()
	if err != nil {
		return nil, err
	}
	return queueing.NewMix(prompt, output)
}

func (l lengths) distribution() (queueing.Lengths, error) {
	if len(l.buckets) == 0 {
		return queueing.AssumedLengths(l.mean)
	}
	return queueing.BucketedLengths(l.buckets, l.mean)
}

// Lengths are rounded to steps, so that the noise of a window neither changes the plan nor misses
// the cache: a step is 3 % in a mean, 9 % in the share of a bucket.
const (
	coarseMean  = 24 // steps to a factor of two
	coarseShare = 8
)

// coarse returns the shares of the buckets, rounded to steps.
func coarse(buckets []fleet.Bucket) []queueing.LengthBucket {
	var total float64
	for _, b := range buckets {
		total += max(b.Count, 0)
	}
	if !(total > 0) || math.IsInf(total, 0) {
		return nil
	}
	shares := make([]queueing.LengthBucket, len(buckets))
	for i, b := range buckets {
		shares[i] = queueing.LengthBucket{Upper: b.Upper}
		if share := b.Count / total; share >= 1e-4 {
			shares[i].Count = steps(share, coarseShare)
		}
	}
	return shares
}

// steps rounds a number above zero to one of perOctave steps in each factor of two.
func steps(value float64, perOctave float64) float64 {
	return math.Exp2(math.Round(math.Log2(value)*perOctave) / perOctave)
}

// rounded rounds a share down to a twentieth.
func rounded(share float64) float64 { return math.Floor(share*20+tiny) / 20 }

// tiny is a difference that counts as a rounding error.
const tiny = 1e-9

// keyOf encodes the input of a mix.
func keyOf(role fleet.Role, prompts, outputs []queueing.LengthBucket, means ...float64) string {
	key := append([]byte(nil), role...)
	number := func(value float64) { key = binary.LittleEndian.AppendUint64(key, math.Float64bits(value)) }
	for _, mean := range means {
		number(mean)
	}
	for _, buckets := range [][]queueing.LengthBucket{prompts, outputs} {
		number(float64(len(buckets)))
		for _, b := range buckets {
			number(b.Upper)
			number(b.Count)
		}
	}
	return string(key)
}
