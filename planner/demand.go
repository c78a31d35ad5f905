package planner

import (
	"fmt"
	"slices"
	"time"

	"github.com/wva-project/wva/fleet"
)

// demand is the demand of a model, measured against a reference. Shares of the analyzer are shares
// of the reference.
type demand struct {
	rate      fleet.Reading // the reference in requests per second; absent if no rate is known
	inFlight  float64       // the reference in requests in flight
	latest    float64       // demand now, with backlog and expected rise, over the reference
	steady    float64       // the same without the backlog
	highest   float64       // highest demand of the window plus headroom, for a scale-down
	ahead     float64       // expected rise of the rate until a replica that starts now is ready
	arrivals  fleet.Reading // requests per second
	backlog   float64       // requests waiting at engines and gateway
	queued    float64       // the part of the backlog at the gateway
	running   float64
	idle      bool       // nothing arrives, runs or waits
	since     time.Time  // last use of the model; zero if it was not used within the idle window
	unused    bool       // idle for the whole retention period, and samples prove it
	blocked   fleet.Code // why scale-down is blocked; empty if it is not
	why       string     // the text of that reason
	cause     string     // the failure behind it; empty if there is none
	prompt    fleet.Reading
	output    fleet.Reading
	prompts   []fleet.Bucket
	outputs   []fleet.Bucket
	hits      fleet.Reading // share of prompts that the prefix cache holds
	bursts    fleet.Reading // index of dispersion of the arrivals
	ttft, itl fleet.Reading
}

// demand calculates the demand of the model, or returns why it is unknown.
func (m *model) demand(x *index, p Policy) (demand, *fleet.Reason) {
	if why, unknown := m.unobserved(x); unknown {
		return demand{}, &why
	}
	d := demand{arrivals: m.arrivals()}
	for _, v := range m.variants {
		for _, r := range v.replicas {
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
	d.idle = d.arrivals.State != fleet.Absent && d.arrivals.Or(0) <= 0 && d.backlog <= 0 && d.running <= 0
	m.describeRequests(&d)
	m.measure(&d, p)
	d.unused = d.idle && m.unused(&d, x.now, p)
	d.blocked, d.why, d.cause = m.scaleDownBlock(d, x)
	return d, nil
}

// unobserved returns why the model's demand is unknown; false if it is known. A model without a
// ready replica has no engine metrics, which is not missing data, unless queries failed.
func (m *model) unobserved(x *index) (why fleet.Reason, unknown bool) {
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
	var all reports
	for _, v := range m.variants {
		all.good += v.reports.good
		all.missing += v.reports.missing
		all.stale += v.reports.stale
		all.invalid += v.reports.invalid
		all.tooShort += v.reports.tooShort
	}
	switch {
	case all.good > 0 && all.tooShort < all.good:
		return fleet.Reason{}, false
	case all.good > 0:
		return reason(fleet.CodeWindowTooShort, "fewer than 4 scrapes of each replica in the rate window, so no rate is known").
			With(fleet.DetailCause, x.failures()).
			With(fleet.DetailRemedy, "scrape more often or raise prometheus.windows.latest; right after an outage this passes by itself"), true
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

// failures returns the first failure to observe metrics, and the number of the others; empty if
// there is none.
func (x *index) failures() string {
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

// arrivals returns the rate of requests over all names of the model. For one name the gateway's
// rate replaces that of the engines, unless the gateway counts nothing while the engines serve.
func (m *model) arrivals() (arrivals fleet.Reading) {
	for _, name := range m.served {
		rate := m.engineArrivals(name)
		if atGateway, known := name.gateway.Known(); known && (atGateway > 0 || rate.Or(0) == 0) {
			rate = name.gateway
		}
		if value, known := rate.Known(); known {
			arrivals = fleet.Observed(arrivals.Or(0) + value)
		}
	}
	return arrivals
}

// engineArrivals returns the rate of first tokens over all pods, deleted ones included because
// their requests are part of the demand. It adds the growth of the queues over existing pods only:
// the queue of a deleted pod was not served.
func (m *model) engineArrivals(name served) fleet.Reading {
	var tokens fleet.Reading
	for _, row := range m.usagesOf(name) {
		if rate, known := row.FirstTokens.Known(); known {
			tokens = fleet.Observed(tokens.Or(0) + rate)
		}
	}
	rate, known := tokens.Known()
	if !known {
		return fleet.Reading{}
	}
	for _, v := range m.variants {
		for _, r := range v.replicas {
			if v.EngineModel() == name.name {
				rate += r.WaitingGrowth.Or(0)
			}
		}
	}
	return fleet.Observed(max(0, rate))
}

// usagesOf returns the rows that count for the model's arrivals. If prefill and decode are
// disaggregated, the role of a deleted pod is unknown, so only existing pods count.
func (m *model) usagesOf(name served) []*fleet.Usage {
	if !m.disaggregated() {
		return name.usages
	}
	var own []*fleet.Usage
	for _, v := range m.variants {
		if v.EngineModel() == name.name {
			own = append(own, v.replicas...)
		}
	}
	return own
}

// measure sets the reference and the demand in parts of it: the latest demand for a scale-up, the
// highest for a scale-down. If no rate is known, it counts requests in flight.
func (m *model) measure(d *demand, p Policy) {
	inFlight := d.running + d.backlog
	peak, _ := sum(m.engine, func(l fleet.Load) fleet.Reading { return l.PeakInFlight })
	margin := 1 + m.margin(p)
	highest := margin * max(inFlight, peak*m.fraction(runningOf))
	if d.inFlight = highest; highest > 0 {
		d.latest, d.steady, d.highest = inFlight/highest, d.running/highest, 1
	}
	arrivals, known := d.arrivals.Known()
	if !known {
		return
	}
	d.ahead = m.ahead(arrivals, p)
	latest := arrivals + d.ahead + d.backlog/p.DrainWithin.Seconds()
	peak, _ = sum(m.engine, func(l fleet.Load) fleet.Reading { return l.PeakArrivals })
	peak *= m.fraction(rateOf)
	gatewayPeak, _ := sum(m.gateway, func(l fleet.Load) fleet.Reading { return l.PeakArrivals })
	highest = margin * max(arrivals, peak, gatewayPeak)
	reference := max(latest, highest)
	if reference <= 0 {
		return
	}
	d.rate = fleet.Observed(reference)
	d.latest, d.steady, d.highest = latest/reference, (arrivals+d.ahead)/reference, highest/reference
	// a variant known by its KV cache size only is asked for the same part of both
	if d.latest > 0 && inFlight > 0 {
		d.inFlight = inFlight / d.latest
	}
}

// ahead returns the expected rise of the rate until a replica that starts now is ready. A trend may
// not last: it counts for at most half of the current arrivals.
func (m *model) ahead(arrivals float64, p Policy) float64 {
	trend, known := sum(m.gateway, func(l fleet.Load) fleet.Reading { return l.Trend })
	if !known {
		trend, _ = sum(m.engine, func(l fleet.Load) fleet.Reading { return l.Trend })
		trend *= m.fraction(rateOf)
	}
	var startup time.Duration
	for _, v := range m.variants {
		startup = max(startup, v.workload.Startup)
	}
	return max(0, min(trend*(startup+p.Reaction).Seconds(), maxAhead*arrivals))
}

// maxAhead is the largest rise by a trend, as a share of the current arrivals.
const maxAhead = 0.5

// unused reports whether samples prove that the model was not used for its whole retention period.
func (m *model) unused(d *demand, now time.Time, p Policy) bool {
	retention := m.spec.Retention
	if retention <= 0 {
		retention = p.Retention
	}
	rows := m.engine
	if m.ready() == 0 && len(rows) == 0 {
		rows = m.gateway
	}
	for _, row := range append(append([]fleet.Load(nil), rows...), m.gateway...) {
		if row.LastActive.After(d.since) {
			d.since = row.LastActive
		}
	}
	covered := len(rows) > 0
	for _, row := range rows {
		covered = covered && row.IdleCovered >= retention
	}
	return covered && now.Sub(d.since) >= retention
}

// scaleDownBlock returns why scale-down of the model is blocked, "" if it is not, and the failure
// behind it. Scale-up goes on.
func (m *model) scaleDownBlock(d demand, x *index) (code fleet.Code, why, cause string) {
	var incomplete int
	for _, v := range m.variants {
		incomplete += v.reports.missing + v.reports.stale + v.reports.invalid + v.reports.tooShort
	}
	switch {
	case incomplete > 0:
		return fleet.CodeMetricsMissing, countOf(incomplete, "ready replica reports", "ready replicas report") + " incompletely", ""
	case len(x.missing) > 0:
		return fleet.CodeMetricsMissing, "metrics are missing", x.failures()
	case m.ready() == 0:
		return "", "", ""
	case d.arrivals.State == fleet.Absent:
		return fleet.CodeMetricsMissing, "request rate not known", ""
	}
	covered := len(m.engine) > 0
	for _, row := range m.engine {
		covered = covered && row.PeakCovered
	}
	if !covered {
		return fleet.CodeWindowNotCovered, "samples do not cover the peak window yet", ""
	}
	return "", "", ""
}

func (m *model) ready() (ready int) {
	for _, v := range m.variants {
		ready += v.ready
	}
	return ready
}

// sum adds up one reading over loads, and reports whether any was known.
func sum(rows []fleet.Load, reading func(fleet.Load) fleet.Reading) (total float64, known bool) {
	for _, row := range rows {
		if value, ok := reading(row).Known(); ok {
			total += value
			known = true
		}
	}
	return total, known
}

// first returns the first of two readings that is known, else the first that is present.
func first(a, b fleet.Reading) fleet.Reading {
	if _, known := b.Known(); known && a.State != fleet.Present || a.State == fleet.Absent {
		return b
	}
	return a
}

func countOf(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
