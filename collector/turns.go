package collector

import (
	"hash/fnv"
	"math"
	"time"

	"github.com/wva-project/wva/fleet"
)

// turns are the instants at which the slow readings of models are read: the lengths of their
// requests, and the means that calibrate profiles. Each model has one instant in a period, about
// the peak window, and keeps its readings until the next, unless the latest have changed by more
// than chance. So the noise of a window changes the sizes of a few models in each cycle and not of
// all. The instants are those of the wall clock, shifted by a hash of the model: servers that were
// started at different times read the same.
//
// Queries are sent for whole steps, a few in a period. The models of one step take their turns one
// interval after the other.
type turns struct{ period, step, interval time.Duration }

// stepsOfPeriod is the number of steps in a period, if whole intervals allow it.
const stepsOfPeriod = 5

func (o Options) turns() turns {
	step := roundUp((o.PeakWindow+stepsOfPeriod-1)/stepsOfPeriod, o.Interval)
	return turns{period: roundUp(o.PeakWindow, step), step: step, interval: o.Interval}
}

// roundUp returns the least multiple of the unit that is not below d.
func roundUp(d, unit time.Duration) time.Duration { return (d + unit - 1) / unit * unit }

// of returns the turn of a model.
func (t turns) of(who identity) int {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(who.namespace + "/" + who.model)) // it never fails
	return int(hash.Sum64() % uint64(t.period/t.interval))
}

// instant returns the latest instant of a turn in a cycle.
func (t turns) instant(turn int, cycle time.Time) time.Time {
	inStep := int(t.step / t.interval)
	offset, wait := time.Duration(turn/inStep)*t.step, time.Duration(turn%inStep)*t.interval
	return floorTime(cycle.Add(-wait-offset), t.period).Add(offset)
}

// instants returns those that any model needs of a query with some step in a cycle, the latest
// first.
func (t turns) instants(cycle time.Time, step time.Duration) []time.Time {
	var needed []time.Time
	for at := floorTime(cycle, t.step); at.After(cycle.Add(t.interval - t.period - t.step)); at = at.Add(-t.step) {
		if of := floorTime(at, step); len(needed) == 0 || !needed[len(needed)-1].Equal(of) {
			needed = append(needed, of)
		}
	}
	return needed
}

// rest returns an answer with the rows of those models only that may take it at their turns later.
func (t turns) rest(a answer, step time.Duration) answer {
	var kept rows
	index := make([]int32, len(a.subjects)) // of those that are kept, from 1; below 0: not kept
	for found := range a.all() {
		i := &index[found.subject]
		if *i == 0 {
			if who := a.subjects[found.subject]; t.mayTake(who, a.at, step) {
				kept.subjects = append(kept.subjects, who)
				*i = int32(len(kept.subjects))
			} else {
				*i = -1
			}
		}
		if *i > 0 {
			found.subject = *i - 1
			kept.append(found)
		}
	}
	a.rows = kept
	return a
}

// mayTake reports whether an instant of a subject's turn is in the step that begins then.
func (t turns) mayTake(who identity, at time.Time, step time.Duration) bool {
	offset := time.Duration(t.of(who)/int(t.step/t.interval)) * t.step
	first := floorTime(at.Add(-offset), t.period).Add(offset)
	return first.Equal(at) || first.Add(t.period).Before(at.Add(step))
}

// readings are the readings of models and pods at the instants of their turns.
type readings struct {
	turns
	cycle  time.Time
	models map[identity]*facts
	pods   map[identity]fleet.Means
	turnOf map[identity]int  // by model
	differ map[identity]bool // models whose latest lengths count
	// isWhole is true if the latest lengths and means are of complete answers
	isWhole bool
}

func newReadings(o Options, cycle time.Time) readings {
	return readings{
		turns: o.turns(), cycle: cycle, isWhole: true,
		models: make(map[identity]*facts), pods: make(map[identity]fleet.Means),
		turnOf: make(map[identity]int), differ: make(map[identity]bool),
	}
}

// read reads the rows of those subjects whose instant the answer to a query with some step is
// about.
func (r *readings) read(a answer, step time.Duration) {
	mine := make([]bool, len(a.subjects))
	for i, who := range a.subjects {
		mine[i] = who.namespace != "" && who.model != "" && r.isAbout(a.at, step, who)
	}
	for found := range a.all() {
		if who := a.subjects[found.subject]; mine[found.subject] {
			r.add(who, found)
		}
	}
}

// isAbout reports whether the query is sent for an instant because of the turn of the subject.
func (r *readings) isAbout(at time.Time, step time.Duration, who identity) bool {
	who.pod = ""
	turn, known := r.turnOf[who]
	if !known {
		turn = r.of(who)
		r.turnOf[who] = turn
	}
	return floorTime(r.instant(turn, r.cycle), step).Equal(at)
}

func (r *readings) add(who identity, found row) {
	if found.part.ofPod() {
		means := r.pods[who]
		if reading := meanOf(&means, found.part); reading != nil {
			*reading = fleet.Observed(found.value)
			r.pods[who] = means
		}
		return
	}
	about := r.models[who]
	if about == nil {
		about = newFacts(who)
		r.models[who] = about
	}
	if found.part.ofHistogram() {
		about.addBucket(found.part, bucket{upper: found.bound, below: found.value})
	} else {
		about.add(found.part, found.value)
	}
}

// meanOf returns the reading of a part; nil if it does not calibrate profiles.
func meanOf(means *fleet.Means, p part) *fleet.Reading {
	for _, of := range [...]struct {
		part    part
		reading *fleet.Reading
	}{
		{meanRate, &means.Rate}, {meanKV, &means.KV}, {meanITL, &means.ITL},
		{meanRunning, &means.Running}, {meanPrefill, &means.Prefill},
		{longKV, &means.LongKV}, {longRunning, &means.LongRunning},
	} {
		if of.part == p {
			return of.reading
		}
	}
	return nil
}

// lengthsOf returns the facts with the lengths of a model's requests: those of its turn, or the
// latest if they differ by more than chance, or are of many more requests.
func (r *readings) lengthsOf(who identity, latest *facts, window time.Duration) *facts {
	own := r.models[who]
	if own == nil || r.lengthsDiffer(who, latest, window) {
		return latest
	}
	return own
}

// lengthsDiffer reports whether the latest lengths of a model's requests count: they differ from
// those of its turn by more than chance, are of many more requests, or those are unknown.
func (r *readings) lengthsDiffer(who identity, latest *facts, window time.Duration) bool {
	differ, known := r.differ[who]
	if known || latest == nil {
		return differ
	}
	own, now := r.models[who], latest.requests(window)
	if own == nil {
		differ = now > 0
	} else {
		before := own.requests(window)
		differ = outgrown(before, now, enoughLengths) || r.isWhole && lengthsChanged(own, latest, min(before, now))
	}
	r.differ[who] = differ
	return differ
}

// lengthsChanged reports whether lengths or prefix cache hits of so many requests, at least, have
// changed by more than chance.
func lengthsChanged(own, latest *facts, requests float64) bool {
	before, hitsBefore := own.value(prefixHits)
	now, hitsNow := latest.value(prefixHits)
	return changed(mean(own, promptRecent), mean(latest, promptRecent), requests, lengthDeviation) ||
		changed(mean(own, outputRecent), mean(latest, outputRecent), requests, lengthDeviation) ||
		hitsBefore && hitsNow && math.Abs(before-now) > chance(requests, lengthDeviation)
}

// meansOf returns the means that calibrate the profile of a pod: those of its turn, or its latest
// if its load has changed by more than chance, or if the latest lengths count: all of them have to
// be of the same window. Zero is the latest of a pod without any of its turn.
func (r *readings) meansOf(who identity, latest fleet.Means, ofModel *facts, window time.Duration) fleet.Means {
	own := r.pods[who]
	rate, known := latest.Rate.Known()
	if !known || own.Rate.State == fleet.Absent {
		return own
	}
	before, now := own.Rate.Or(0)*window.Seconds(), rate*window.Seconds()
	if outgrown(before, now, enoughForMeans) || r.isWhole && loadChanged(own, latest, min(before, now)) ||
		r.lengthsDiffer(identity{namespace: who.namespace, model: who.model}, ofModel, window) {
		latest.LongKV, latest.LongRunning = own.LongKV, own.LongRunning
		return latest
	}
	return own
}

// loadChanged reports whether the load of a pod with so many requests, at least, has changed by
// more than chance.
func loadChanged(own, latest fleet.Means, requests float64) bool {
	return changed(own.Rate, latest.Rate, requests, 1) || changed(own.ITL, latest.ITL, requests, 1) ||
		changed(own.Prefill, latest.Prefill, requests, lengthDeviation)
}

// enoughForMeans is the number of requests of a pod from which on its means are kept until its next
// turn.
const enoughForMeans = 100

// outgrown reports whether readings of too few requests are old: the latest are of twice as many.
func outgrown(own, latest, enough float64) bool { return own < enough && latest > 0 && latest >= 2*own }

const (
	// smallChange is the relative difference between two windows that does not count.
	smallChange = 0.05
	// sureDeviations is the number of standard deviations beyond which a difference is no chance.
	sureDeviations = 3
	// lengthDeviation is the standard deviation of lengths over their mean.
	lengthDeviation = 1.5
	// fewRequests is the number below which a window does not show a change.
	fewRequests = 30
)

// chance is the relative difference that chance explains between two windows of so many requests,
// whose values deviate by a part of their mean.
func chance(requests, deviation float64) float64 {
	if !(requests >= fewRequests) {
		return math.Inf(1)
	}
	return smallChange + float64(sureDeviations*deviation*math.Sqrt(2/requests))
}

// changed reports whether a reading has changed by more than chance; not if either is unknown.
func changed(before, now fleet.Reading, requests, deviation float64) bool {
	a, b := before.Or(0), now.Or(0)
	return a > 0 && b > 0 && max(a, b)/min(a, b)-1 > chance(requests, deviation)
}

// requests returns the number of requests that the lengths are of. Of a mean alone it is that of
// first tokens, else as many as are enough.
func (f *facts) requests(window time.Duration) (count float64) {
	for _, p := range []part{promptBuckets, outputBuckets} {
		for _, b := range f.buckets[p] {
			if n := b.below * window.Seconds(); n > count && !math.IsInf(n, 0) {
				count = n
			}
		}
	}
	if count > 0 || !f.has(promptRecent, outputRecent) {
		return count
	}
	if rate, known := f.value(recentRate); known && rate >= 0 && !math.IsInf(rate, 0) {
		return rate * window.Seconds()
	}
	return enoughLengths
}
