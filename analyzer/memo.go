package analyzer

import (
	"encoding/binary"
	"math"
	"slices"
	"sync"

	"github.com/wva-project/wva/analyzer/queueing"
	"github.com/wva-project/wva/fleet"
)

// Memo caches answers of the queueing model, so that they are not computed again in each cycle. It
// changes no result: an answer is a function of its question. It is safe for concurrent use.
type Memo struct {
	sizer queueing.Sizer

	mutex   sync.Mutex
	cycle   int
	mixes   recent[string, *queueing.Mix]
	answers recent[queueing.Question, *answers]
}

// answers are those to one question with several indices of dispersion, for pools of several sizes.
type answers []*knownAnswer

// knownAnswer is an answer by formula, with the simulated answer and the points of the curve that
// were used.
type knownAnswer struct {
	queueing.Answer
	dispersion float64
	simulated  *queueing.Answer
	curve      curve
}

// Bounds on the memory of a memo: a mix takes 5 kB, an answer 300 bytes. A fleet that is larger is
// sized in part anew in each cycle.
const (
	maxMixes   = 1 << 15
	maxAnswers = 1 << 16 // questions without their dispersion
	// maxDispersions is the number of answers to one of them that are kept.
	maxDispersions = 12
	// keptCycles is the number of cycles after its last use for which an answer is kept: the noise
	// of a window brings lengths back that it had before.
	keptCycles = 40
)

// NextCycle begins a cycle, and forgets the answers that no cycle used lately. A memo whose cycles
// never begin keeps the latest answers up to its bounds.
func (k *Memo) NextCycle() {
	if k == nil {
		return
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.cycle++
	k.mixes.forget(k.cycle - keptCycles)
	k.answers.forget(k.cycle - keptCycles)
}

// answersTo returns the known answers to a question, whatever its dispersion.
func (k *Memo) answersTo(q queueing.Question) *answers {
	q.Dispersion = 0
	k.mutex.Lock()
	defer k.mutex.Unlock()
	known, found := k.answers.get(q, k.cycle)
	if !found {
		return new(answers) // kept once it has an answer: a question that is invalid has none
	}
	return known
}

// answered is an answer of the queueing model with the question that it is about.
type answered struct {
	queueing.Answer
	question queueing.Question
	known    *knownAnswer // by the formula
}

// maxRate asks for the highest rate within the objective, of the formula or, if that is doubtful,
// of a simulation. It adds the answer to those that are known.
func (k *Memo) maxRate(q queueing.Question, of *answers, simulations *Simulations) (a answered, err error) {
	known, err := k.formula(q, of)
	if err != nil {
		return a, err
	}
	a = answered{Answer: known.Answer, question: q, known: known}
	if a.Doubtful && simulations.Left() {
		a.Answer, err = k.simulate(q, known)
		simulations.Count--
		simulations.Iterations -= a.Iterations
	}
	return a, err
}

// simulate returns the answer of a simulation, cached or computed.
func (k *Memo) simulate(q queueing.Question, known *knownAnswer) (answer queueing.Answer, err error) {
	k.mutex.Lock()
	simulated := known.simulated
	k.mutex.Unlock()
	if simulated == nil {
		if answer, err = k.sizer.Simulate(q); err != nil {
			return answer, err
		}
		simulated = &answer
		k.mutex.Lock()
		known.simulated = simulated
		k.mutex.Unlock()
	}
	return *simulated, nil
}

// misses returns a function that returns the share of requests that miss the objective at a rate.
// It is interpolated on a curve over the highest rate, which is valid for the answer of a
// simulation too. The function is not safe for concurrent use.
func (k *Memo) misses(a answered) func(rate float64) float64 {
	var points *curve // read when they are first used: those of most variants are not
	point := func(i int) float64 {
		if points[i] == unknownPoint {
			points[i] = k.point(a, i)
		}
		return points[i]
	}
	return func(rate float64) float64 {
		if !(a.Rate > 0) {
			return 1
		}
		if points == nil {
			points = new(k.pointsOf(a.known))
		}
		part := rate / a.Rate
		for i := 1; i < len(points); i++ {
			if part <= curveAt[i] {
				low := point(i - 1)
				high := max(low, point(i))
				return low + (high-low)*(part-curveAt[i-1])/(curveAt[i]-curveAt[i-1])
			}
		}
		return 1
	}
}

// curve is the share of requests that miss, at parts of the highest rate. A point is computed when
// it is first used: most are not.
type curve [len(curveAt)]float64

const unknownPoint = -1

// curveAt are the parts of the highest rate at which a curve is computed; beyond the last, all
// requests count as misses, and at the first none.
var curveAt = [...]float64{0, 0.6, 0.8, 0.9, 1, 1.1, 1.2, 1.35, 1.5, 1.75, 2}

// newCurve returns a curve with the points that the search for the highest rate knows.
func newCurve(a queueing.Answer) (c curve) {
	for i := 1; i < len(c); i++ {
		switch curveAt[i] {
		case 1:
			c[i] = a.MissesAtRate
		case queueing.BelowShare:
			c[i] = a.MissesBelow
		default:
			c[i] = unknownPoint
		}
	}
	return c
}

func (k *Memo) pointsOf(known *knownAnswer) curve {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return known.curve
}

// point computes a point of a curve.
func (k *Memo) point(a answered, i int) float64 {
	violation, err := k.sizer.Violation(a.question, curveAt[i]*a.known.Rate)
	share := violation.Either
	if err != nil {
		share = 1
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	a.known.curve[i] = share
	return share
}

// formula returns the answer of the formula, known or computed.
func (k *Memo) formula(q queueing.Question, of *answers) (*knownAnswer, error) {
	k.mutex.Lock()
	known := of.at(q.Dispersion)
	k.mutex.Unlock()
	if known != nil {
		return known, nil
	}
	answer, err := k.sizer.MaxRate(q)
	if err != nil {
		return nil, err
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if known := of.at(q.Dispersion); known != nil { // another goroutine was faster
		return known, nil
	}
	known = &knownAnswer{Answer: answer, dispersion: q.Dispersion, curve: newCurve(answer)}
	if len(*of) == 0 {
		q.Dispersion = 0
		k.answers.put(q, of, k.cycle, maxAnswers)
	}
	if len(*of) >= maxDispersions {
		*of = slices.Delete(*of, 0, 1)
	}
	*of = append(*of, known)
	return known, nil
}

// at returns the answer for an index of dispersion; nil if it is not known.
func (a *answers) at(dispersion float64) *knownAnswer {
	for _, known := range *a {
		if known.dispersion == dispersion {
			return known
		}
	}
	return nil
}

// mix returns the lengths of a model's requests as a variant of the role serves them; nil and the
// reason if they are unknown. Lengths of which only the mean is measured are taken to be up to the
// longest; zero is no limit.
func (m Model) mix(role fleet.Role, longest float64, memo *Memo) (mix *queueing.Mix, why string) {
	prompt, output := m.PromptTokens.Or(0), m.OutputTokens.Or(0)
	if !(prompt > 0) || !(output > 0) {
		return nil, "prompt and output lengths are not known yet, so the objective is not used for sizing"
	}
	prompts, outputs := coarse(m.Prompts), coarse(m.Outputs)
	prompt, output = steps(prompt, coarseMean), steps(output, coarseMean)
	key := keyOf(role, prompts, outputs, prompt, output, longest)
	memo.mutex.Lock()
	known, found := memo.mixes.get(key, memo.cycle)
	memo.mutex.Unlock()
	if found {
		return known, ""
	}
	mix, err := newMix(lengths{prompts, prompt, longest}, lengths{outputs, output, longest})
	if err != nil {
		return nil, "prompt and output lengths are invalid: " + err.Error()
	}
	if role == fleet.RolePrefill {
		mix = mix.PrefillOnly()
	}
	memo.mutex.Lock()
	defer memo.mutex.Unlock()
	if known, found := memo.mixes.get(key, memo.cycle); found { // another goroutine was faster
		return known, ""
	}
	memo.mixes.put(key, mix, memo.cycle, maxMixes)
	return mix, ""
}

// lengths is a histogram, which may be empty, its mean, and the longest length that is possible.
type lengths struct {
	buckets       []queueing.LengthBucket
	mean, longest float64
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
		return queueing.UnmeasuredLengths(l.mean, l.longest)
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
	total := requestsOf(buckets)
	if total == 0 {
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

// requestsOf returns the number of requests in a histogram; 0 if it is empty or not finite.
func requestsOf(buckets []fleet.Bucket) (total float64) {
	for _, b := range buckets {
		total += max(b.Count, 0)
	}
	if !(total > 0) || math.IsInf(total, 0) {
		return 0
	}
	return total
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
