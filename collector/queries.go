package collector

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/wva-project/wva/engine"
)

// query is one of the cycle's queries.
type query struct {
	name string
	text string
	// step is the distance between the instants of the query: a multiple of the interval.
	step time.Duration
	// answer is a vector, or a matrix if the query asks for the values of several instants.
	answer model.ValueType
}

// The queries whose readings are taken at the turns of models.
const (
	meansOfPods  = "means"
	mixOfModels  = "mix"
	olderLengths = "lengths"
)

// isByTurns reports whether answers are needed that are about the instants of turns.
func (q query) isByTurns() bool {
	return q.name == meansOfPods || q.name == mixOfModels || q.name == olderLengths
}

// queries returns the queries of one cycle about engines.
func (e expressions) queries() []query {
	interval, long := e.options.Interval, e.options.step(e.options.LongWindow)
	queries := []query{
		{"gauges", e.gaugesQuery(), interval, model.ValVector},
		{"capacity", e.capacityQuery(), interval, model.ValVector},
		{"window", e.windowQuery(), interval, model.ValVector},
		{"latency", e.latencyQuery(), interval, model.ValVector},
		{"peaks", e.peaksQuery(), interval, model.ValVector},
		{"idle", e.idleQuery(), interval, model.ValVector},
		// Its subquery is evaluated at multiples of its step only: a query in between would have
		// the same answer.
		{meansOfPods, e.meansQuery(), interval, model.ValVector},
		{mixOfModels, e.mixQuery(), e.options.turns().step, model.ValVector},
		{olderLengths, e.lengthsQuery(), e.options.step(6 * e.options.LongWindow), model.ValVector},
		{"history", e.historyQuery(), long, model.ValVector},
	}
	if e.options.shortScaleDown > 0 {
		queries = append(queries, query{"short peaks", e.shortPeaksQuery(), interval, model.ValVector})
	}
	return queries
}

func (e expressions) gaugesQuery() string {
	var sampledBy []string
	for _, q := range []quantity{e.engines[engine.Running], e.engines[engine.Waiting], e.engines[engine.KVUsage]} {
		sampledBy = append(sampledBy, e.perPod(q.as(least), sampledAt))
	}
	// The largest of several is not a number if one of them is not: max() alone would hide it.
	usage := fmt.Sprintf("(%s + 0 * %s)", e.alive(e.engines[engine.KVUsage]), e.alive(e.engines[engine.KVUsage].as(engine.Sum)))
	return either(
		tagged(running, e.alive(e.engines[engine.Running])),
		tagged(waiting, e.alive(e.engines[engine.Waiting])),
		tagged(kv, usage),
		tagged(sampled, either(sampledBy...)),
		tagged(twice, e.scrapedTwice()),
		tagged(reported, e.perPod(e.engines[engine.Running].as(group), over("present_over_time", silentAfter))),
		tagged(asleep, "("+e.perPod(e.engines[engine.Asleep], itself)+" > 0)"),
		tagged(copied, e.copies()),
	)
}

// copies has the pods whose series are copies of engines' series, as a router exposes them, in any
// of the windows in which they may show up without a model.
func (e expressions) copies() string {
	span := max(e.options.IdleWindow, e.options.LongWindow)
	var pods []string
	for _, n := range e.engines[engine.Running].names {
		if n.labels.Copied != "" {
			pods = append(pods, fmt.Sprintf(`group by (%s) (present_over_time(%s{%s!="",%s=""}[%s]))`,
				e.podOnly, n.metric, n.labels.Copied, e.options.ModelLabel, duration(span)))
		}
	}
	return either(pods...)
}

// capacityQuery has the labels of cache_config_info, which names no model: it is joined by pod.
func (e expressions) capacityQuery() string {
	var blocks []string
	for _, n := range e.engines[engine.KVBlocks].names {
		by := strings.Join([]string{e.podOnly, n.labels.Rank, n.labels.BlockSize, n.labels.BlockCount}, ", ")
		blocks = append(blocks, fmt.Sprintf("group by (%s) (%s)", by, n.metric), fmt.Sprintf("group by (%s) (%s)", by, within(e.options.gap(), 0)(n)))
	}
	return either(
		tagged(kvBlocks, either(blocks...)),
		tagged(kvTokens, e.alive(e.engines[engine.KVTokens])),
	)
}

func (e expressions) windowQuery() string {
	window, heartbeat := e.options.Window, e.engines[engine.Running]
	found := e.foundPods(e.engines[engine.FirstTokens])
	counted := func(n name) string { return over("count_over_time", window)(n) }
	current := func(n name) string { return fmt.Sprintf("(%s and %s)", counted(n), n.metric) }
	// of a pod whose last scrape failed
	before := fmt.Sprintf("(%s and %s)", e.perPod(heartbeat.as(least), counted), e.perPod(heartbeat, within(e.options.gap(), 0)))
	queue := e.engines[engine.Waiting]
	now, then := e.alive(queue), either(e.perPod(queue, ago(window)), e.perPod(queue, within(e.options.gap(), window)))
	return either(
		tagged(firstRate, e.firstTokens()),
		tagged(recentRate, e.perModel(e.engines[engine.FirstTokens], over("rate", e.options.recentWindow()))),
		tagged(firstFound, found+" / "+seconds(window)),
		tagged(firstBorn, e.born(found, e.present(heartbeat, e.options.gap()), e.byPod)),
		tagged(resets, "("+e.perPod(e.engines[engine.FirstTokens], over("resets", window))+" > 0)"),
		tagged(scrapes, either(e.perPod(heartbeat.as(least), current), before)),
		tagged(growth, fmt.Sprintf("(%s - %s) / %s", now, then, seconds(window))),
		tagged(growthFound, fmt.Sprintf("(%s unless %s) / %s", now, then, seconds(window))),
		tagged(leastQueue, e.perPod(queue, func(n name) string {
			return fmt.Sprintf("(%s and %s)", over("min_over_time", window)(n), n.metric)
		})),
	)
}

// firstTokens is the rate of first tokens, and zero if an engine has not created its counter yet.
func (e expressions) firstTokens() string {
	window := e.options.Window
	rates := []string{e.perPod(e.engines[engine.FirstTokens], over("rate", window))}
	for _, n := range e.engines[engine.FirstTokens].names {
		if n.zeroWhile != "" {
			gauge := n.labelled(fmt.Sprintf("last_over_time(%s[%s])", n.zeroWhile, duration(e.options.gap())))
			rates = append(rates, fmt.Sprintf("(0 * sum by (%s) (%s) unless sum by (%s) (%s))",
				e.byPod, gauge, e.byPod, n.labelled(over("last_over_time", window)(n))))
		}
	}
	return either(rates...)
}

func (e expressions) latencyQuery() string {
	rate := over("rate", e.options.Window)
	var quantiles []string
	for _, n := range e.engines[engine.TimeToFirstToken].suffixed("_bucket").names {
		// Buckets of different engines have different bounds: they do not add up.
		quantile := fmt.Sprintf("histogram_quantile(0.95, sum by (%s, le) (%s))", e.byModel, n.labelled(rate(n)))
		quantiles = append(quantiles, fmt.Sprintf(`label_replace(%s >= 0, %q, %q, "", "")`, quantile, dialectLabel, n.metric))
	}
	return either(
		tagged(podITL, e.itlOfPods()),
		tagged(modelITL, ratio(
			e.perModel(e.engines[engine.InterTokenLatency].suffixed("_sum"), rate),
			e.perModel(e.engines[engine.InterTokenLatency].suffixed("_count"), rate))),
		tagged(modelTTFT, fmt.Sprintf("max by (%s) (%s)", e.byModel, either(quantiles...))),
	)
}

// meansQuery averages over the peak window, or over the life of a younger pod: hence no rate() over
// the whole window. The gauges of a pod are right from its first sample on, while its rate grows
// until it is older than the window: the two must not be compared before.
func (e expressions) meansQuery() string {
	window, step := e.options.PeakWindow, e.options.step(e.options.PeakWindow)
	return either(
		tagged(meanRate, subquery("avg_over_time", e.wholeRates(), window, step)),
		tagged(meanKV, e.perPod(e.engines[engine.KVUsage], over("avg_over_time", window))),
		tagged(meanITL, subquery("avg_over_time", e.itlOfPods(), window, step)),
		tagged(meanRunning, e.perPod(e.engines[engine.Running], over("avg_over_time", window))),
		tagged(meanPrefill, e.prefillOfPods(over("rate", window))),
	)
}

// wholeRates is the rate of first tokens of each pod that was observed at the start of the window.
func (e expressions) wholeRates() string {
	window := e.options.Window
	return e.perPod(e.engines[engine.FirstTokens], func(n name) string {
		return fmt.Sprintf("(%s and %s)", over("rate", window)(n), ago(window)(n))
	})
}

// progress is the growth of all counters of progress of each pod. Their values at both ends say it
// exactly, whatever was scraped in between. A counter that is new has grown from zero.
func (e expressions) progress(window time.Duration) string {
	var grown []string
	for i, q := range e.engines[engine.Progress].counters() {
		now := e.perPod(q, itself)
		before := fmt.Sprintf("(%s or 0 * %s)", e.perPod(q, ago(window)), now)
		grown = append(grown, fmt.Sprintf(`label_replace(%s - %s, %q, "%d", "", "")`, now, before, dialectLabel, i))
	}
	return aggregate(engine.Sum, e.byPod, either(grown...))
}

// itlOfPods is the mean time between output tokens of each pod, if there were any.
func (e expressions) itlOfPods() string {
	rate := over("rate", e.options.Window)
	sums := e.engines[engine.InterTokenLatency].suffixed("_sum").each(rate)
	counts := e.engines[engine.InterTokenLatency].suffixed("_count").each(rate)
	var means []string
	for i := range sums {
		means = append(means, ratio(aggregate(engine.Sum, e.byPod, sums[i]), aggregate(engine.Sum, e.byPod, counts[i])))
	}
	return either(means...)
}

func (e expressions) meanLengths(prompt, output part, window time.Duration) string {
	rate := over("rate", window)
	return either(
		tagged(prompt, ratio(e.perModel(e.engines[engine.PromptTokens], rate), e.perModel(e.engines[engine.Prompts], rate))),
		tagged(output, ratio(e.perModel(e.engines[engine.OutputTokens], rate), e.perModel(e.engines[engine.Outputs], rate))),
	)
}

// prefillOfPods is the mean time of the prefill of a request, if any finished.
func (e expressions) prefillOfPods(rate func(n name) string) string {
	h := e.engines[engine.PrefillTime]
	return ratio(e.perPod(h.suffixed("_sum"), rate), e.perPod(h.suffixed("_count"), rate))
}

// arrivals is the rate of first tokens, with the growth of the queues.
func (e expressions) arrivals() string {
	// of each pod, because the labels of its series may have changed
	queue, before := e.perPod(e.engines[engine.Waiting], itself), e.perPod(e.engines[engine.Waiting], ago(e.options.Window))
	grown := aggregate(engine.Sum, e.byModel, fmt.Sprintf("(%[1]s - %[2]s or %[1]s)", queue, before))
	return fmt.Sprintf("(%s + clamp_min(%s, 0) / %s)",
		aggregate(engine.Sum, e.byModel, e.firstTokens()), grown, seconds(e.options.Window))
}

func (e expressions) peaksQuery() string {
	window, step := e.options.scaleDown, e.options.step(e.options.scaleDown)
	inFlight := fmt.Sprintf("(%s + %s)", e.perModel(e.engines[engine.Running], itself), e.perModel(e.engines[engine.Waiting], itself))
	return either(
		tagged(peakArrivals, subquery("max_over_time", e.arrivals(), window, step)),
		tagged(peakInFlight, subquery("max_over_time", inFlight, window, step)),
		tagged(peakCovered, subquery("count_over_time", e.covered(e.engines[engine.Running]), window+step, step)),
		tagged(progressed, e.progress(window)),
		tagged(observedAgo, e.perPod(e.engines[engine.Running].as(group), ago(window))),
	)
}

// shortPeaksQuery asks for the highest rates of the short scale-down window. It is a query of its
// own: servers limit the length of a query.
func (e expressions) shortPeaksQuery() string {
	return tagged(shortPeak, e.shortPeak(e.arrivals()))
}

// shortPeak is the highest value of an expression in the short scale-down window.
func (e expressions) shortPeak(expression string) string {
	window := e.options.shortScaleDown
	return subquery("max_over_time", expression, window, e.options.step(window))
}

// covered has the models with a sample within the gap. An instant selector would take one that is
// five minutes old.
func (e expressions) covered(q quantity) string {
	return e.anyOf(">= 0", q.each(over("max_over_time", e.options.gap())))
}

func (e expressions) idleQuery() string {
	step := e.options.step(e.options.IdleWindow)
	used := slices.Concat(
		gaugeUsed(e.engines[engine.Running], step), gaugeUsed(e.engines[engine.Waiting], step),
		e.counterMoved(e.engines[engine.Activity], step), e.counterBorn(e.engines[engine.FirstTokens], step))
	return e.idle(idleExpression{
		heartbeat: e.engines[engine.Running],
		active:    e.anyOf("> 0", used),
		parts:     [3]part{idleKnown, idleGap, lastActive},
	})
}

// idleExpression is the parts of a query for idleness.
type idleExpression struct {
	heartbeat quantity // present as long as the model is observed
	active    string   // the models that were used since the step before
	parts     [3]part  // known, gap, active
}

// idle asks when a model was last used and when its samples last had a gap. The models that are
// known are those at the end of the query, not of the step, so that a model is missing at the steps
// before its first sample. The steps begin at the very start of the window: samples from the step
// after it on do not cover all of it.
func (e expressions) idle(i idleExpression) string {
	window, step := e.options.IdleWindow, e.options.step(e.options.IdleWindow)
	known := func(modifier string) string {
		return e.anyOf("> 0", i.heartbeat.each(func(n name) string {
			return fmt.Sprintf("present_over_time(%s[%s]%s)", n.metric, duration(window), modifier)
		}))
	}
	gap := fmt.Sprintf("((%s unless %s) * time())", known(" @ end()"), e.covered(i.heartbeat))
	return either(
		tagged(i.parts[0], known("")),
		tagged(i.parts[1], subquery("max_over_time", gap, window+step, step)),
		tagged(i.parts[2], subquery("max_over_time", "("+i.active+" * time())", window+step, step)),
	)
}

// gaugeUsed is above zero if the gauge was at any time since the step before.
func gaugeUsed(q quantity, step time.Duration) []string {
	return q.each(over("max_over_time", step))
}

// counterMoved is above zero if the counter rose since the step before. The range reaches a gap
// further back, so that every two neighboring samples are in the range of one step.
func (e expressions) counterMoved(q quantity, step time.Duration) []string {
	return q.each(over("increase", step+e.options.gap()))
}

// counterBorn is above zero if a counter was born above zero since the step before: increase() does
// not see that.
func (e expressions) counterBorn(q quantity, step time.Duration) []string {
	return q.each(func(n name) string {
		return fmt.Sprintf("(%[1]s unless %[1]s offset %[2]s)", n.metric, duration(step+e.options.gap()))
	})
}

func (e expressions) historyQuery() string {
	window, step := e.options.LongWindow, e.options.step(e.options.LongWindow)
	rates := e.wholeRates()
	busy := fmt.Sprintf("(%s and %s >= %s)", rates,
		e.perPod(e.engines[engine.Waiting], over("min_over_time", e.options.Window)), number(e.options.SaturatedWaiting))
	return either(
		tagged(peakRate, subquery("max_over_time", rates, window, step)),
		tagged(throughput, subquery("max_over_time", busy, window, step)),
		tagged(itlFloor, subquery("min_over_time", e.itlOfPods(), window, step)),
	)
}
