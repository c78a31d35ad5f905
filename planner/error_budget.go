package planner

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wva-project/wva/analyzer"
	"github.com/wva-project/wva/fleet"
)

// The error budget corrects the headroom slowly, within bounds, by the share of requests that met
// the objective in its window.
const (
	leastHeadroom, mostHeadroom = 0.7, 1.5
	// budgetPerMinute is the largest change of the factor in a minute of the parts. The parts that
	// count move on too, which changes the result by as much at most: 2 % a minute together.
	budgetPerMinute = 0.01
	// leastBudgetRequests is the number of requests of a window below which nothing is corrected.
	leastBudgetRequests = 200
	// budgetGain is by how much the target of the factor changes if twice as many requests miss the
	// objective.
	budgetGain = 0.15
	// budgetPrior is the number of misses, of those allowed, that are added to both sides of a
	// comparison: few requests prove little.
	budgetPrior = 2
)

// correction is the result of the error budget.
type correction struct {
	factor float64 // of the headroom; 1 corrects nothing
	window budgetPart
	// requests enough to correct anything; the share of those of the window that met the objective
	// is known then
	known bool
}

// correct returns the correction by the parts that count: a function of those alone, so that every
// server has the same. A window has so many of them. The factor begins neutral one window of
// evidence ago and follows the target of each part that is evidence, which is that of the evidence
// of the window before it; a window with few requests leaves it as it is. Misses while replicas
// started are no reason for more headroom, but they have spent the budget that less of it would
// spend: a target below 1 is at least that of all parts of the window.
func correct(parts []budgetPart, window int, length time.Duration, percentile float64) correction {
	c := correction{factor: 1}
	step := math.Pow(1+budgetPerMinute, length.Minutes())
	evidence := slices.DeleteFunc(slices.Clone(parts), func(p budgetPart) bool { return !p.isEvidence })
	begin, seen := len(evidence)-window, 0
	for k, part := range parts {
		if !part.isEvidence {
			continue
		}
		if seen++; seen <= begin {
			continue
		}
		c.window = sumOfParts(lastParts(evidence[:seen], window))
		if c.known = c.window.requests >= leastBudgetRequests; c.known {
			all := sumOfParts(lastParts(parts[:k+1], window))
			target := max(headroomTarget(c.window, percentile), min(headroomTarget(all, percentile), 1))
			c.factor = max(c.factor/step, min(target, c.factor*step))
		}
	}
	return c
}

func lastParts(parts []budgetPart, n int) []budgetPart { return parts[max(0, len(parts)-n):] }

func sumOfParts(parts []budgetPart) (sum budgetPart) {
	for _, p := range parts {
		sum.requests += p.requests
		sum.missed += p.missed
		sum.fewest += p.fewest
		sum.most += p.most
	}
	return sum
}

// headroomTarget returns the factor for a window: 1 if as many requests missed the objective as
// may, more if more did.
func headroomTarget(window budgetPart, percentile float64) float64 {
	allowed := float64(window.requests * (1 - percentile))
	used := (window.missed + budgetPrior) / (allowed + budgetPrior)
	return max(leastHeadroom, min(1+float64(budgetGain*math.Log2(used)), mostHeadroom))
}

// budgetWindow returns the requests of the error budget's window, those while replicas start
// included; false if they are few, or if nothing is known of the latest part.
func (d *demand) budgetWindow(p Policy, now time.Time) (window budgetPart, known bool) {
	if !d.hasRecentParts(now) {
		return window, false
	}
	window = sumOfParts(since(d.parts, now.Add(-p.BudgetWindow)))
	return window, window.requests >= leastBudgetRequests
}

// hasRecentParts reports whether the known parts of the error budget go on until about now.
func (d *demand) hasRecentParts(now time.Time) bool {
	last := len(d.parts) - 1
	return last >= 0 && now.Sub(d.parts[last].end) <= 2*d.partLength
}

// meets reports whether no more requests missed the objective than a share of those that may.
func (p budgetPart) meets(percentile, share float64) bool {
	return p.missed <= float64(share*(1-percentile))*p.requests
}

// correctHeadroom applies the error budget to the demand of a model.
func (z *sizedModel) correctHeadroom(x *view) {
	z.correction = correction{factor: 1}
	if x.policy.BudgetOff {
		return
	}
	if most := z.mostReplicas(); len(z.demand.parts) > 0 {
		z.correction = z.correctionWithin(most, x.policy)
		limits := func(p budgetPart) bool { return p.replicas >= most }
		if most > 0 && slices.ContainsFunc(z.demand.parts, limits) {
			if kept := z.correctionWithin(math.MaxInt, x.policy); kept.factor > max(1, z.correction.factor) {
				z.kept = kept
			}
		}
	}
	if _, rated := z.demand.rate.Known(); rated {
		z.applyCorrection(z.shortPeaksAbove(x.now))
	}
}

// correctionWithin returns the correction if the model may have so many replicas.
func (z *sizedModel) correctionWithin(most int, p Policy) correction {
	parts, length := z.budgetParts(p.BudgetWindow, most), z.demand.partLength
	if len(parts) == 0 {
		return correction{factor: 1}
	}
	objective, _ := z.singleObjective()
	return correct(parts, int(p.BudgetWindow/length), length, objective.Percentile)
}

// applyCorrection corrects the headroom of the demand. Demand above a mean counts less, by
// peakShare times as much as the correction saves of the mean; none does if that is not known. For
// a scale-down the mean keeps half of its headroom, too, and a headroom that misses have raised is
// kept if the limits of now, such as accelerators that others took, leave the past no evidence.
func (z *sizedModel) applyCorrection(mean float64, known bool) {
	d, factor := &z.demand, headroomFactor(z.correction.factor)
	down := z.scaleDownFactor(factor)
	if z.kept.factor > 0 {
		z.keptDemand = float64(d.highest * headroomFactor(z.kept.factor))
	}
	backlog, steady, highest := d.latest-d.steady, float64(d.steady*factor), float64(d.highest*down)
	if known {
		high := max(d.steady, mean)
		now := min(steady, max(float64(mean*factor), steady-float64(peakShare*(1-factor)*mean)))
		before := min(highest, max(float64(high*(1+float64(z.headroom/2))*down), highest-float64(peakShare*(1-down)*high)))
		z.sparesPeaks = now < steady*(1-tiny) || before < highest*(1-tiny)
		steady, highest = now, before
	}
	d.latest, d.steady, d.highest = steady+backlog, steady, highest
}

// shortPeaksAbove returns the mean demand of the latest two parts of the error budget, of the
// higher one, if the budget pays for short peaks above it: some of it is left, the latest part met
// the objective, and all requests are counted and none of a rise. Only replicas that latency limits
// can serve a peak, a little later: beyond the throughput of one a queue grows that stays.
func (z *sizedModel) shortPeaksAbove(now time.Time) (mean float64, known bool) {
	d, last := z.demand, len(z.demand.parts)-1
	if z.correction.factor >= 1 || d.rising.slope > 0 || d.silent > 0 || z.missesNow() || !z.latencyLimits() ||
		last < 1 || d.partLength > longestPart || !d.hasRecentParts(now) {
		return 0, false
	}
	latest, before := d.parts[last], d.parts[last-1]
	objective, _ := z.singleObjective()
	requests := max(latest.requests, before.requests)
	if latest.end.Sub(before.end) > d.partLength || !latest.meets(objective.Percentile, 1) || requests < leastBudgetRequests {
		return 0, false
	}
	rate, _ := d.rate.Known()
	mean = z.pool.required(requests / d.partLength.Seconds() / rate)
	return mean, mean < math.MaxFloat64 // neither infinite nor NaN
}

// latencyLimits reports whether TTFT or ITL limits the replicas of each variant that has some.
func (z *sizedModel) latencyLimits() bool {
	alive := 0
	for _, c := range z.candidates {
		if c.alive() == 0 {
			continue
		}
		if alive++; c.share <= 0 || c.capacity.LimitedBy != analyzer.LimitITL && c.capacity.LimitedBy != analyzer.LimitTTFT {
			return false
		}
	}
	return alive > 0
}

// quickStart is the start-up time up to which a lowered headroom counts for a scale-down in full.
const quickStart = time.Minute

// scaleDownFactor returns the factor on the highest demand. If replicas start slowly, a headroom
// that the error budget has lowered counts less for a scale-down: requests that miss the objective
// until a replica is back cost more than it saves.
func (z *sizedModel) scaleDownFactor(factor float64) float64 {
	startup := quickStart
	for _, c := range z.candidates {
		if c.share > 0 && c.alive() > 0 {
			startup = max(startup, c.startup)
		}
	}
	if factor >= 1 {
		return factor
	}
	return 1 - float64((1-factor)*quickStart.Seconds()/startup.Seconds())
}

const (
	// capacityUse is to which part of its mean capacity a replica is used if it is sized for an
	// objective: the rest is headroom.
	capacityUse = 2.0 / 3
	// peakShare is the most that is left out of a short peak above a mean demand, over the part of
	// the mean that a lowered headroom saves.
	peakShare = 1.25
	// longestPart is the length of a part from which on a peak of it is not short.
	longestPart = 5 * time.Minute
)

// headroomFactor is the factor on the required capacity of a model for a correction: of the demand
// and the headroom over it, the error budget corrects the headroom alone.
func headroomFactor(correction float64) float64 {
	const headroom = 1/capacityUse - 1
	return (1 + float64(headroom*correction)) / (1 + headroom)
}

// budgetText returns the error budget as text; "" if it is not known.
func (z *sizedModel) budgetText(p Policy) string {
	w := z.correction.window
	factor := func() string {
		text := fmt.Sprintf("headroom ×%.2f", z.correction.factor)
		if z.sparesPeaks {
			text += ", short peaks count less"
		}
		return text
	}
	var texts []string
	switch {
	case z.correction.known:
		objective, _ := z.singleObjective()
		texts = append(texts, fmt.Sprintf("%s within SLO over %s%s, objective %s: %s",
			shareRange(w), hoursText(p.BudgetWindow), z.withStartsText(p), percentText(objective.Percentile), factor()))
	case w.requests > 0:
		texts = append(texts, fmt.Sprintf("%.0f of %d requests over %s that a correction needs: %s",
			w.requests, leastBudgetRequests, hoursText(p.BudgetWindow), factor()))
	}
	if z.keeps() > z.wanted*(1+tiny) {
		texts = append(texts, fmt.Sprintf("misses within %s keep headroom ×%.2f for a scale-down", hoursText(p.BudgetWindow), z.kept.factor))
	}
	if d := z.demand; d.shortened {
		apart := ""
		if !d.littleSpent {
			apart = ", apart from the first rise"
		}
		texts = append(texts, "little of the error budget is spent"+apart+": short scale-down window")
	}
	if d := z.demand; d.recurs && z.wanted > z.latest*(1+tiny) { // replicas are kept for it
		texts = append(texts, fmt.Sprintf("%s req/s came back within %s and keep their replicas", rateNumber(d.recurring), hoursText(p.BudgetWindow)))
	}
	if proven := z.provenText(); proven != "" {
		texts = append(texts, proven)
	}
	return strings.Join(texts, "; ")
}

// withStartsText returns the share of all requests within the objective, if it is a point lower:
// those of the time in which replicas started are no evidence of the headroom.
func (z *sizedModel) withStartsText(p Policy) string {
	if len(z.demand.parts) == 0 {
		return ""
	}
	all := sumOfParts(since(z.demand.parts, z.latencies().Until.Add(-p.BudgetWindow)))
	share, counted := 1-all.missed/all.requests, 1-z.correction.window.missed/z.correction.window.requests
	if !(share < counted-0.01) {
		return ""
	}
	return fmt.Sprintf(" (with starts %s)", percentText(share))
}

// shareRange returns the share of requests within the objective, with its range if that is wide.
func shareRange(w budgetPart) string {
	const wide = 0.01
	text := percentText(1 - w.missed/w.requests)
	if w.most-w.fewest > wide*w.requests {
		text += fmt.Sprintf(" (%s to %s)", percentText(1-w.most/w.requests), percentText(1-w.fewest/w.requests))
	}
	return text
}

// percentText returns a share as a percentage of up to one digit after the point.
func percentText(share float64) string {
	return strconv.FormatFloat(math.Round(share*1000)/10, 'f', -1, 64) + " %"
}

// hoursText returns a duration in hours, or in minutes if those are not whole.
func hoursText(d time.Duration) string {
	if d%time.Hour == 0 {
		return fmt.Sprintf("%d h", d/time.Hour)
	}
	return fmt.Sprintf("%.0f min", d.Minutes())
}

// attainment returns the share of the window's requests that met the objective.
func (c correction) attainment() fleet.Reading {
	if !c.known {
		return fleet.Reading{}
	}
	return fleet.Observed(1 - c.window.missed/c.window.requests)
}
