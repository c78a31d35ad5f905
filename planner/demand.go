package planner

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/wva-project/wva/fleet"
)

// demand is the demand of a model, measured against a reference. Shares of the analyzer are shares
// of the reference.
type demand struct {
	rate     fleet.Reading // the reference in requests per second; absent if no rate is known
	inFlight float64       // the reference in requests in flight
	burst    float64       // requests per second that arrive now, if that is clearly more; else 0
	peak     float64       // highest requests per second of the peak window, in the same way
	latest   float64       // demand now, with backlog, over the reference
	steady   float64       // the same without the backlog
	highest  float64       // highest demand of the peak window plus headroom, for a scale-down
	arrivals fleet.Reading // requests per second
	backlog  float64       // requests waiting at engines and gateway
	queued   float64       // the part of the backlog at the gateway
	running  float64
	drain    float64 // seconds in which the backlog is to be served
	constant constantRate
	rising   risingRate
	silent   int // ready replicas that report nothing, few enough to decide without them
	// their part of the highest rate: each as much as the busiest, or the mean of the peak
	silentPeak  float64
	parts       []budgetPart  // of the error budget; none if it is not known
	partLength  time.Duration // of each
	starting    spans         // when replicas started
	recurring   float64       // requests per second that came back, if they count; else 0
	recurs      bool          // they are the highest demand
	littleSpent bool          // of the error budget
	// the same for the misses that a longer scale-down window could have spared
	littleSparable bool
	shortened      bool          // the highest demand is that of the short scale-down window
	steadyFor      time.Duration // that the rate has been as it is; 0: unknown
	evenlyFor      time.Duration // the same, without bursts
	covered        bool          // samples cover the peak window
	peakless       bool          // the highest demand of the peak window is not known
	idle           idleness      // whether the model may scale to zero
	since          time.Time     // last use; zero if it was not used within the idle window
	prompt         fleet.Reading
	output         fleet.Reading
	shorter        bool          // prompts or outputs are clearly shorter than in the past
	stepTokens     fleet.Reading // output tokens for each measured time between tokens
	prompts        []fleet.Bucket
	outputs        []fleet.Bucket
	hits           fleet.Reading // share of prompts that the prefix cache holds
	bursts         fleet.Reading // index of dispersion of the arrivals
	ttft, itl      fleet.Reading
}

// measureDemand calculates the demand of the model, or returns why it is unknown.
func (x *view) measureDemand(m *model) (demand, *fleet.Reason) {
	if why, unknown := x.unobserved(m); unknown {
		return demand{}, &why
	}
	d := demand{}
	m.setArrivals(&d)
	for _, v := range m.variants {
		for _, r := range v.engines {
			d.running += r.Running.Or(0)
			d.backlog += r.Waiting.Or(0)
		}
	}
	for _, row := range m.gateway {
		d.queued += row.Queued.Or(0)
	}
	d.backlog += d.queued
	if m.ready() == 0 && d.arrivals.State == fleet.Absent {
		// no engine that could serve, and no gateway that reports a rate
		d.arrivals = fleet.Observed(0)
	}
	rows := m.peakRows()
	d.covered = len(rows) > 0 && !slices.ContainsFunc(rows, func(row fleet.Load) bool { return !row.PeakCovered })
	d.peakless = m.lacksPeak(&d, rows)
	m.describeRequests(&d)
	if d.parts = m.knownParts(); len(d.parts) > 0 {
		latencies := m.latencies()
		d.partLength, d.starting = time.Duration(latencies.Length), m.startTimes(latencies, x.now)
		objective, _ := m.singleObjective()
		d.recurring = m.recurring(&d, x.policy, x.now)
		d.littleSpent, d.littleSparable = d.hasSpentLittle(x.policy, x.now, objective.Percentile,
			m.servedParts(x.now.Add(-x.policy.BudgetWindow)))
	}
	d.steadyFor = d.lasted(x.now)
	x.measure(m, &d)
	d.evenlyFor = d.lastedEvenly(x.now)
	d.idle = x.idleness(m, &d)
	return d, nil
}

// unobserved returns why the model's demand is unknown; false if it is known. A model without a
// ready replica has no engine metrics, which is not missing data, unless queries failed.
func (x *view) unobserved(m *model) (why fleet.Reason, unknown bool) {
	if m.collision != nil {
		return reason(fleet.CodeInvalidDefinition, "same name in the engines' metrics as model %s; their load cannot be told apart", m.collision.id).
			With(fleet.DetailRemedy, "give each model a servedModelName of its own"), true
	}
	if m.mixed {
		return reason(fleet.CodeInvalidDefinition, "some variants of the model have the role prefill or decode, and some have none").
			With(fleet.DetailRemedy, "give all of them a role, or serve the others under a model of their own"), true
	}
	for _, v := range m.variants {
		if v.Hidden != "" {
			return reason(fleet.CodeTargetUnreadable, "%s cannot be read, so the load that it serves is not known", v.Target).
				With(fleet.DetailCause, v.Hidden), true
		}
	}
	if m.allStuck {
		return reason(fleet.CodeReplicaStuck, "every ready replica has a queue and made no progress for the whole peak window").
			With(fleet.DetailRemedy, "look at the logs of the replicas, and restart them if they do not recover"), true
	}
	all := m.reports()
	switch {
	case all.good > 0: // even if no rate is known: a queue is
		return fleet.Reason{}, false
	case all.invalid > 0:
		return reason(fleet.CodeMetricsInvalid, "%s NaN or an infinite value", countOf(all.invalid, "ready replica reports", "ready replicas report")).
			With(fleet.DetailCause, x.failures()).With(fleet.DetailRemedy, "look at the engine's /metrics page"), true
	case all.stale > 0:
		return reason(fleet.CodeMetricsStale, "%s too old to act on", countOf(all.stale, "ready replica has samples", "ready replicas have samples")).
			With(fleet.DetailCause, x.failures()).With(fleet.DetailRemedy, "check that Prometheus scrapes them"), true
	case all.missing > 0:
		return reason(fleet.CodeMetricsMissing, "%s no metrics for model name %s", countOf(all.missing, "ready replica has", "ready replicas have"), fewNames(m.servedNames())).
			With(fleet.DetailCause, x.failures()).With(fleet.DetailRemedy, "check that Prometheus scrapes them, and servedModelName"), true
	case len(m.gateway) == 0 && slices.ContainsFunc(x.missing, func(row fleet.Missing) bool { return row.Hides == fleet.SourceGateway }):
		return reason(fleet.CodeMetricsMissing, "demand not known: metrics of the gateway are missing").
			With(fleet.DetailCause, x.failures()), true
	}
	return fleet.Reason{}, false
}

// reports adds up the reports of the model's variants.
func (m *model) reports() (all reports) {
	for _, v := range m.variants {
		all.good += v.reports.good
		all.missing += v.reports.missing
		all.stale += v.reports.stale
		all.invalid += v.reports.invalid
		all.tooShort += v.reports.tooShort
		all.noRate += v.reports.noRate
	}
	return all
}

// failures returns the first failure to observe metrics, and the number of the others; empty if
// there is none.
func (x *view) failures() string {
	if len(x.missing) == 0 {
		return ""
	}
	var texts []string
	for _, row := range x.missing { // a failure may hide several sources of load
		texts = append(texts, row.Source+": "+row.Reason)
	}
	slices.Sort(texts)
	texts = slices.Compact(texts)
	if more := len(texts) - 1; more > 0 {
		return fmt.Sprintf("%s (and %d more)", texts[0], more)
	}
	return texts[0]
}

// silentFor is the time after which a reason names a silent replica. The collector has rows of all
// pods that reported within it.
const silentFor = 10 * time.Minute

// measure sets the reference and the demand in parts of it: the latest demand for a scale-up, the
// highest for a scale-down. If no rate is known, it counts requests in flight.
func (x *view) measure(m *model, d *demand) {
	inFlight := d.running + d.backlog
	peak, _ := sum(m.engine, func(l fleet.Load) fleet.Reading { return l.PeakInFlight })
	headroom := 1 + m.headroom(x.policy)
	highest := headroom * max(inFlight, peak*m.fraction(runningOf))
	if d.inFlight = highest; highest > 0 {
		d.latest, d.steady, d.highest = inFlight/highest, d.running/highest, 1
	}
	arrivals, known := d.arrivals.Known()
	if !known {
		return
	}
	d.burst = m.burst(arrivals)
	arrivals = max(arrivals, d.burst)
	if d.setRisingRate(m.ready(), x.now); d.rising.slope <= 0 {
		m.setConstantRate(d, x.now)
	}
	if d.constant.mean > 0 {
		arrivals = d.constant.mean
	}
	d.drain = m.drainTime(x.policy).Seconds()
	latest := arrivals + d.backlog/d.drain
	highestOf := func(short bool) float64 {
		if d.constant.peak {
			return arrivals
		}
		return max(arrivals, (steadyPeak(m.engine, short)+d.silentPeak)*m.fraction(rateOf), steadyPeak(m.gateway, short))
	}
	whole := highestOf(false)
	peak = whole
	if short := highestOf(true); d.littleSpent || d.littleSparable && d.isClearFall(whole, short) {
		peak = short
	}
	d.shortened = max(peak, d.recurring) < whole
	if peak > clearPeak*arrivals {
		d.peak = peak
	}
	d.recurs = d.recurring > peak
	highest = headroom * max(peak, d.recurring)
	reference := max(latest, highest)
	if reference <= 0 {
		return
	}
	d.rate = fleet.Observed(reference)
	d.latest, d.steady, d.highest = latest/reference, arrivals/reference, highest/reference
	// a variant known by its KV cache size only is asked for the same part of both
	if d.latest > 0 && inFlight > 0 {
		d.inFlight = inFlight / d.latest
	}
}

// clearPeak is by how much the highest demand of the peak window is above the latest to be part of
// a reason.
const clearPeak = 1.1

// steadyPeak returns the highest rate of the scale-down window, or of the short one as far as it is
// known, without one standard error: it was chosen for being high. Of a few requests, at least half
// of it counts.
func steadyPeak(rows []fleet.Load, short bool) float64 {
	peak, deviation := highestRate(rows, short)
	return max(peak-deviation, peak/2)
}

// highestRate returns that rate and its standard error.
func highestRate(rows []fleet.Load, short bool) (peak, deviation float64) {
	variance := 0.0
	for _, row := range rows {
		rate, deviation := row.PeakArrivals.Or(0), row.PeakError.Or(0)
		square := float64(deviation * deviation)
		if shorter, known := row.ShortPeak.Known(); short && known && shorter >= 0 && shorter < rate {
			rate, square = shorter, square*shorter/rate // as of Poisson arrivals
		}
		peak += rate
		variance += square
	}
	return peak, math.Sqrt(variance)
}

// headroom is that of a scale-down: half of the policy's if all variants are sized for a
// percentile, which has a margin of its own.
func (m *model) headroom(p Policy) float64 {
	sized := func(v *variant) bool { return v.profile != nil && (v.objective.TTFT > 0 || v.objective.ITL > 0) }
	if p.SaturationAlone || slices.ContainsFunc(m.variants, func(v *variant) bool { return !sized(v) }) {
		return p.ScaleDownHeadroom
	}
	return p.ScaleDownHeadroom / 2
}

// describeRequests copies the lengths, latencies and burstiness of requests for the analyzer, the
// objectives and the API. If a model is served under several names, the busiest one stands for all:
// a mixture of lengths would be that of no name.
func (m *model) describeRequests(d *demand) {
	rows := slices.SortedStableFunc(slices.Values(m.engine), func(a, b fleet.Load) int {
		return -cmp.Compare(a.PeakArrivals.Or(0), b.PeakArrivals.Or(0))
	})
	var pastPrompt, pastOutput fleet.Reading
	for _, row := range rows {
		if d.prompt.State != fleet.Present || d.output.State != fleet.Present {
			if d.prompt.State != fleet.Present {
				pastPrompt = row.PastPromptTokens
			}
			if d.output.State != fleet.Present {
				pastOutput = row.PastOutputTokens
			}
			d.prompt, d.output = first(d.prompt, row.PromptTokens), first(d.output, row.OutputTokens)
			d.prompts, d.outputs, d.hits = row.PromptLengths, row.OutputLengths, row.PrefixHits
			d.stepTokens = row.StepTokens
		}
		d.ttft, d.itl = first(d.ttft, row.TTFT), first(d.itl, row.ITL)
		d.bursts = first(d.bursts, row.Dispersion)
	}
	d.shorter = d.arrivals.Or(0)*lengthsWindow.Seconds() >= enoughLengths &&
		(isShorter(d.prompt, pastPrompt) || isShorter(d.output, pastOutput))
	busiest := 0.0
	for _, row := range m.gateway { // it sees arrivals, engines only starts
		if rate := row.Arrivals.Or(0); row.Dispersion.State == fleet.Present && rate >= busiest {
			d.bursts, busiest = row.Dispersion, rate
		}
	}
	m.withoutPrefill(d)
}

const (
	// shorterBy is the part by which mean lengths of now are below those of the past, of half an
	// hour, if they are not expected to last: a replica serves more requests, and fewer as soon as
	// these are as before.
	shorterBy = 0.15
	// lengthsWindow is the usual window of the lengths of now, and enoughLengths the requests of it
	// whose mean is not shorter by chance.
	lengthsWindow = 5 * time.Minute
	enoughLengths = 300
)

// isShorter reports whether a mean length is clearly below that of the past.
func isShorter(now, past fleet.Reading) bool {
	length, known := now.Known()
	before, knownBefore := past.Known()
	return known && knownBefore && length < (1-shorterBy)*before
}

// none reports whether there is no demand at all. The peak window may be longer than the retention,
// and then it still has demand when the model may scale to zero.
func (d demand) none() bool {
	return d.idle == mayScaleToZero || d.latest <= 0 && d.inFlight <= 0 && d.rate.Or(0) <= 0
}
