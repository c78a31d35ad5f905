package collector

import (
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/common/model"
)

// query is one of the cycle's queries.
type query struct {
	name string
	text string
	// step is the distance between the instants that the query is asked about: a multiple of the interval.
	step time.Duration
	// answer is a vector, or a matrix where the query asks for the values of several instants.
	answer model.ValueType
}

// queries returns the queries of one cycle about engines.
func (e expressions) queries() []query {
	interval, long := e.options.Interval, e.options.step(e.options.LongWindow)
	return []query{
		{"gauges", e.gaugesQuery(), interval, model.ValVector},
		{"capacity", e.capacityQuery(), interval, model.ValVector},
		{"window", e.windowQuery(), interval, model.ValVector},
		{"latency", e.latencyQuery(), interval, model.ValVector},
		{"peaks", e.peaksQuery(), interval, model.ValVector},
		{"idle", e.idleQuery(), interval, model.ValVector},
		// Its subquery is evaluated at multiples of its step only, so that asking in between would bring the same.
		{"means", e.meansQuery(), interval, model.ValVector},
		{"mix", e.mixQuery(), long, model.ValVector},
		{"history", e.historyQuery(), long, model.ValVector},
	}
}

func (e expressions) gaugesQuery() string {
	var sampledBy []string
	for _, q := range []quantity{e.engines.running, e.engines.waiting, e.engines.kv} {
		sampledBy = append(sampledBy, e.perPod(q.as(least), sampledAt))
	}
	// The largest of several is not a number where one of them is not: max() alone would hide it.
	usage := fmt.Sprintf("(%s + 0 * %s)", e.perPod(e.engines.kv, itself), e.perPod(e.engines.kv.as(sum), itself))
	return either(
		tagged(running, e.perPod(e.engines.running, itself)),
		tagged(waiting, e.perPod(e.engines.waiting, itself)),
		tagged(kv, usage),
		tagged(sampled, either(sampledBy...)),
	)
}

// capacityQuery has the labels of cache_config_info, which names no model: it is joined by pod.
func (e expressions) capacityQuery() string {
	by := fmt.Sprintf("%s, %s, %s, %s", e.podOnly, engineIndex, blockSize, blockCount)
	var blocks []string
	for _, n := range e.engines.kvBlocks.names {
		blocks = append(blocks, fmt.Sprintf("group by (%s) (%s)", by, n.metric))
	}
	return either(
		tagged(kvBlocks, either(blocks...)),
		tagged(kvTokens, e.perPod(e.engines.kvTokens, itself)),
	)
}

func (e expressions) windowQuery() string {
	window := e.options.Window
	alive := func(metric string) string {
		return fmt.Sprintf("(count_over_time(%[1]s[%[2]s]) and %[1]s)", metric, duration(window))
	}
	grown := func(metric string) string {
		return fmt.Sprintf("((%[1]s - %[1]s offset %[2]s) or (%[1]s unless %[3]s))", metric, duration(window), e.past(metric))
	}
	return either(
		tagged(firstRate, e.firstTokensOfOlder()),
		tagged(firstBorn, e.watched(e.perPod(e.engines.firstTokens, e.bornRate))),
		tagged(resets, "("+e.perPod(e.engines.firstTokens, over("resets", window))+" > 0)"),
		tagged(scrapes, e.perPod(e.engines.running.as(least), alive)),
		tagged(growth, e.perPod(e.engines.waiting, grown)+" / "+seconds(window)),
	)
}

// firstTokensOfOlder is the rate of first tokens, and zero where an engine has not made its counter yet.
func (e expressions) firstTokensOfOlder() string {
	rates := []string{e.perPod(e.engines.firstTokens, e.olderRate)}
	for _, n := range e.engines.firstTokens.names {
		if n.zeroWhile != "" {
			rates = append(rates, fmt.Sprintf("(0 * sum by (%s) (%s) unless sum by (%s) (%s))",
				e.byPod, n.zeroWhile, e.byPod, over("last_over_time", e.options.Window)(n.metric)))
		}
	}
	return either(rates...)
}

func (e expressions) latencyQuery() string {
	rate := over("rate", e.options.Window)
	var quantiles []string
	for _, base := range e.engines.timeToFirstToken {
		// Buckets of different engines have different bounds: they do not add up.
		quantile := fmt.Sprintf("histogram_quantile(0.95, sum by (%s, le) (%s))", e.byModel, rate(base+"_bucket"))
		quantiles = append(quantiles, fmt.Sprintf(`label_replace(%s >= 0, "engine", %q, "", "")`, quantile, base))
	}
	return either(
		tagged(podITL, e.itlOfPods()),
		tagged(modelITL, ratio(
			e.perModel(e.engines.interTokenLatency.series("_sum"), rate),
			e.perModel(e.engines.interTokenLatency.series("_count"), rate))),
		tagged(modelTTFT, fmt.Sprintf("max by (%s) (%s)", e.byModel, either(quantiles...))),
	)
}

// meansQuery averages over the peak window, or over the life of a younger pod: hence no rate() over the whole window.
func (e expressions) meansQuery() string {
	window, step := e.options.PeakWindow, e.options.step(e.options.PeakWindow)
	return either(
		tagged(meanRate, subquery("avg_over_time", e.perPod(e.engines.firstTokens, over("rate", e.options.Window)), window, step)),
		tagged(meanKV, e.perPod(e.engines.kv, over("avg_over_time", window))),
		tagged(meanITL, subquery("avg_over_time", e.itlOfPods(), window, step)),
		tagged(meanRunning, e.perPod(e.engines.running, over("avg_over_time", window))),
		tagged(meanPrefill, e.prefillOfPods(over("rate", window))),
		e.meanLengths(promptRecent, outputRecent, window),
	)
}

// itlOfPods is the mean time between output tokens of each pod, where there were any.
func (e expressions) itlOfPods() string {
	rate := over("rate", e.options.Window)
	var means []string
	for _, base := range e.engines.interTokenLatency {
		means = append(means, ratio(aggregate(sum, e.byPod, rate(base+"_sum")), aggregate(sum, e.byPod, rate(base+"_count"))))
	}
	return either(means...)
}

func (e expressions) meanLengths(prompt, output part, window time.Duration) string {
	rate := over("rate", window)
	return either(
		tagged(prompt, ratio(e.perModel(e.engines.promptTokens, rate), e.perModel(e.engines.prompts, rate))),
		tagged(output, ratio(e.perModel(e.engines.outputTokens, rate), e.perModel(e.engines.outputs, rate))),
	)
}

// prefillOfPods is the mean time that the prefill of a request took, where any finished.
func (e expressions) prefillOfPods(rate func(metric string) string) string {
	h := e.engines.prefillTime
	return ratio(e.perPod(h.series("_sum"), rate), e.perPod(h.series("_count"), rate))
}

// series returns the histogram's series with the suffix as a quantity.
func (h histogram) series(suffix string) quantity {
	q := quantity{over: sum}
	for _, base := range h {
		q.names = append(q.names, name{metric: base + suffix})
	}
	return q
}

func (e expressions) peaksQuery() string {
	window, step := e.options.PeakWindow, e.options.step(e.options.PeakWindow)
	grown := func(metric string) string {
		return fmt.Sprintf("((%[1]s - %[1]s offset %[2]s) or %[1]s)", metric, duration(e.options.Window))
	}
	arrivals := fmt.Sprintf("(%s + clamp_min(%s, 0) / %s)",
		e.perModel(e.engines.firstTokens, over("rate", e.options.Window)), e.perModel(e.engines.waiting, grown), seconds(e.options.Window))
	inFlight := fmt.Sprintf("(%s + %s)", e.perModel(e.engines.running, itself), e.perModel(e.engines.waiting, itself))
	return either(
		tagged(peakArrivals, subquery("max_over_time", arrivals, window, step)),
		tagged(peakInFlight, subquery("max_over_time", inFlight, window, step)),
		tagged(trend, subquery("deriv", arrivals, e.options.TrendWindow, e.options.step(e.options.TrendWindow))),
		tagged(peakCovered, subquery("count_over_time", e.covered(e.engines.running), window+step, step)),
	)
}

// covered has the models with a sample within the gap. An instant selector would take one that is five minutes old.
func (e expressions) covered(q quantity) string {
	return e.anyOf(">= 0", q.each(over("max_over_time", e.options.gap())))
}

func (e expressions) idleQuery() string {
	step := e.options.step(e.options.IdleWindow)
	used := slices.Concat(
		gaugeUsed(e.engines.running, step), gaugeUsed(e.engines.waiting, step),
		e.counterMoved(e.engines.activity, step), e.counterBorn(e.engines.firstTokens, step))
	return e.idle(idleExpression{
		heartbeat: e.engines.running,
		active:    e.anyOf("> 0", used),
		parts:     [3]part{idleKnown, idleHole, lastActive},
	})
}

// idleExpression is what the question for idleness is made of.
type idleExpression struct {
	heartbeat quantity // what is there as long as the model is observed
	active    string   // who is used since the step before
	parts     [3]part  // known, hole, active
}

// idle asks when a model was last used and when its samples last had a hole. The end of the query, not of the step, says
// who is known, so that a model is missed at the steps before its first sample. The steps begin at the very start of the
// window: what is covered from the step after it on is not all of it.
func (e expressions) idle(i idleExpression) string {
	window, step := e.options.IdleWindow, e.options.step(e.options.IdleWindow)
	known := func(modifier string) string {
		return e.anyOf("> 0", i.heartbeat.each(func(metric string) string {
			return fmt.Sprintf("present_over_time(%s[%s]%s)", metric, duration(window), modifier)
		}))
	}
	hole := fmt.Sprintf("((%s unless %s) * time())", known(" @ end()"), e.covered(i.heartbeat))
	return either(
		tagged(i.parts[0], known("")),
		tagged(i.parts[1], subquery("max_over_time", hole, window+step, step)),
		tagged(i.parts[2], subquery("max_over_time", "("+i.active+" * time())", window+step, step)),
	)
}

// gaugeUsed is above zero where the gauge was so at any time since the step before, so that no blip is lost.
func gaugeUsed(q quantity, step time.Duration) []string {
	return q.each(over("max_over_time", step))
}

// counterMoved is above zero where the counter rose since the step before. The range reaches a gap further back, so that
// every two neighbouring samples stand in the range of one step.
func (e expressions) counterMoved(q quantity, step time.Duration) []string {
	return q.each(over("increase", step+e.options.gap()))
}

// counterBorn is above zero where a counter was born above zero since the step before: increase() does not see that.
func (e expressions) counterBorn(q quantity, step time.Duration) []string {
	return q.each(func(metric string) string {
		return fmt.Sprintf("(%[1]s unless %[1]s offset %[2]s)", metric, duration(step+e.options.gap()))
	})
}

func (e expressions) historyQuery() string {
	window, step := e.options.LongWindow, e.options.step(e.options.LongWindow)
	rate := over("rate", e.options.Window)
	rates := e.perPod(e.engines.firstTokens, rate)
	busy := fmt.Sprintf("(%s and %s >= %s)", rates,
		e.perPod(e.engines.waiting, over("min_over_time", e.options.Window)), number(e.options.SaturatedWaiting))
	return either(
		tagged(peakRate, subquery("max_over_time", rates, window, step)),
		tagged(throughput, subquery("max_over_time", busy, window, step)),
		tagged(itlFloor, subquery("min_over_time", e.itlOfPods(), window, step)),
		e.meanLengths(promptLong, outputLong, window),
	)
}
