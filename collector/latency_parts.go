package collector

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/wva-project/wva/engine"
	"github.com/wva-project/wva/fleet"
)

// latencyParts is the name of the query for the requests of the error budget by their latency.
const latencyParts = "latency parts"

// budgetSpan is the time that the parts cover: the correction at each instant of one window looks
// back over another one, and parts that say nothing may make up a third.
func (o Options) budgetSpan() time.Duration { return 3 * o.BudgetWindow }

// budgetStep returns the length of a part: one that has enough scrapes for its increases.
func (o Options) budgetStep() time.Duration {
	return max(o.step(o.budgetSpan()), (o.Window+o.Interval-1)/o.Interval*o.Interval)
}

// hasObjectives reports whether any variant has a latency objective.
func (o Options) hasObjectives() bool { return len(o.ttft)+len(o.itl) > 0 }

// latencyPartsQuery asks for the requests of each part of the window by their latency, in the few
// buckets beside the objectives. The answer is a matrix, and the same throughout a part.
func (e expressions) latencyPartsQuery(g gatewayExpressions) query {
	step := e.options.budgetStep()
	running, before := e.engines[engine.Running], e.reportedBefore(step)
	started := fmt.Sprintf("(%s unless %s)", e.perPod(running.as(group), over("present_over_time", step)), e.perPod(running.as(group), before))
	scraped := func(n name) string {
		return fmt.Sprintf("(%s and %s and %s)", over("count_over_time", step)(n), n.metric, before(n))
	}
	parts := []string{
		tagged(partRequests, e.perModel(e.engines[engine.FirstTokens], over("increase", step))),
		tagged(partReplicas, aggregate(count, e.byModel, e.perPod(running.as(group), itself))),
		tagged(partStarted, aggregate(count, e.byModel, started)),
		tagged(partScrapes, aggregate(least, e.byModel, e.perPod(running.as(least), scraped))),
	}
	if len(e.options.ttft) > 0 {
		beside := besideLimits(e.options.ttft, step)
		parts = append(parts, tagged(partTTFT, e.histogramOf(e.engines[engine.TimeToFirstToken], beside)), tagged(partWait, g.waits(beside)))
	}
	if len(e.options.itl) > 0 {
		beside := besideLimits(e.options.itl, step)
		perRequest := e.engines[engine.RequestITL]
		lacking := fmt.Sprintf("(%s unless %s)", e.perPod(running.as(group), itself), e.perPod(perRequest.suffixed("_count").as(group), itself))
		parts = append(parts, tagged(partRequestITL, fmt.Sprintf("(%s unless on (%s) %s)", e.histogramOf(perRequest, beside), e.byModel, lacking)),
			tagged(partITL, e.histogramOf(e.engines[engine.InterTokenLatency], beside)))
	}
	text := fmt.Sprintf("%s[%s:%s]", either(parts...), duration(e.options.budgetSpan()-time.Millisecond), duration(step))
	return query{latencyParts, text, step, model.ValMatrix}
}

// reportedBefore has the series that had a sample just before a part.
func (e expressions) reportedBefore(step time.Duration) func(n name) string {
	return func(n name) string {
		return fmt.Sprintf("present_over_time(%s[%s] offset %s)", n.metric, duration(e.options.Window), duration(step))
	}
}

// waits has the buckets of the time that the requests of each model waited at its gateways.
func (e gatewayExpressions) waits(series func(n name) string) string {
	var names []string
	for _, n := range e.gateways[engine.GatewayWait].suffixed("_bucket").names {
		ofGateway := e.labelled(aggregate(engine.Sum, e.byGateway()+", "+bucketBound, series(n)))
		names = append(names, aggregate(engine.Sum, e.byPod+", "+bucketBound, ofGateway))
	}
	return aggregate(engine.Sum, e.byModel+", "+bucketBound, either(names...))
}

// besideLimits is the increase of a histogram's series in a part, of its buckets only in those with
// a bound beside a limit, and in the last.
func besideLimits(limits []time.Duration, step time.Duration) func(n name) string {
	return func(n name) string {
		metric := n.metric
		if family, _, _ := strings.Cut(metric, "{"); strings.HasSuffix(family, "_bucket") {
			metric = selected(metric, fmt.Sprintf("%s=~%q", bucketBound, boundsBeside(n.bounds, limits)))
		}
		return fmt.Sprintf("increase(%s[%s])", metric, duration(step))
	}
}

// boundsBeside returns a regular expression of the bounds beside limits: the limit itself, or else
// the next ones below and above. Clients write whole numbers with and without a fraction.
func boundsBeside(bounds []float64, limits []time.Duration) string {
	var chosen []float64
	for _, limit := range limits {
		at, exact := slices.BinarySearch(bounds, limit.Seconds())
		if !exact && at > 0 {
			chosen = append(chosen, bounds[at-1])
		}
		if at < len(bounds) {
			chosen = append(chosen, bounds[at])
		}
	}
	slices.Sort(chosen)
	var texts []string
	for _, bound := range slices.Compact(chosen) {
		whole, fraction, hasFraction := strings.Cut(strconv.FormatFloat(bound, 'f', -1, 64), ".")
		if hasFraction {
			texts = append(texts, whole+"[.]"+fraction)
		} else {
			texts = append(texts, whole+"([.]0)?")
		}
	}
	return strings.Join(append(texts, "[+]Inf"), "|")
}

// readLatencies reads the answer to the query, if it is complete and not older than the window.
func (t *tables) readLatencies(a answer) {
	if a.at.IsZero() || t.at.Sub(a.at) > t.options.BudgetWindow {
		return
	}
	t.partsUntil = a.at
	t.readRows(a.rows)
}

// ofParts returns the tables with the parts of a namespace's models: those of the longest of its
// windows, so that gateways have the same parts as engines, of adapters too.
func (t *tables) ofParts(namespace string) *tables {
	for _, other := range t.all {
		if other.options.Window == t.scrapes.longest[namespace] {
			return other
		}
	}
	return t
}

// latencies returns the requests of a model in parts, as engines count them.
func (t *tables) latencies(who identity) fleet.Latencies {
	about, known := t.facts[who]
	if !known {
		return fleet.Latencies{}
	}
	requests, replicas := t.inParts(about.streams[partRequests]), t.inParts(about.streams[partReplicas])
	started, scrapes := t.inParts(about.streams[partStarted]), t.inParts(about.streams[partScrapes])
	ttft, itl, perToken := t.bucketsInParts(about, partTTFT), t.bucketsInParts(about, partRequestITL), t.bucketsInParts(about, partITL)
	enough := t.scrapesOfPart(who.namespace, who.model)
	l := fleet.Latencies{Until: t.partsUntil, Length: fleet.Duration(t.options.budgetStep())}
	for i, n := range requests {
		begun := started[i] > 0
		if !(n >= 0 && replicas[i] > 0) || !(begun || scrapes[i] >= enough) {
			continue // also NaN
		}
		part := fleet.LatencyPart{End: t.endOfPart(i), Requests: n, Replicas: wholeCount(replicas[i]), TTFT: lengths(ttft[i]), ITL: lengths(itl[i])}
		if begun {
			part.Started = wholeCount(started[i])
		}
		if part.ITL == nil {
			part.ITL = lengths(perToken[i])
			part.PerToken = part.ITL != nil
		}
		l.Parts = append(l.Parts, part)
	}
	if len(l.Parts) == 0 {
		return fleet.Latencies{}
	}
	return l
}

// waits returns the waits of a model's requests in parts, as gateways count them.
func (t *tables) waits(who identity) fleet.Latencies {
	about, known := t.facts[who]
	if !known {
		return fleet.Latencies{}
	}
	l := fleet.Latencies{Until: t.partsUntil, Length: fleet.Duration(t.options.budgetStep())}
	for i, buckets := range t.bucketsInParts(about, partWait) {
		if waits := lengths(buckets); waits != nil {
			l.Parts = append(l.Parts, fleet.LatencyPart{End: t.endOfPart(i), Wait: waits})
		}
	}
	if len(l.Parts) == 0 {
		return fleet.Latencies{}
	}
	return l
}

// wholeCount returns a number of replicas, which no fleet has more of.
func wholeCount(n float64) int { return int(min(n, 1e6)) }

// scrapesOfPart is how many samples a replica must have in a part: three quarters of those of an
// undisturbed one.
func (t *tables) scrapesOfPart(namespace, model string) float64 {
	interval, known := t.scrapes.of[scraped{fleet.SourceEngine, namespace, model}]
	if !known {
		return minScrapes
	}
	return max(minScrapes, 0.75*t.options.budgetStep().Seconds()/interval.Seconds())
}
