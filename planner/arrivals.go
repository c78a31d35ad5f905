package planner

import (
	"math"
	"slices"

	"github.com/wva-project/wva/fleet"
)

// mostSilent is the share of ready replicas that may report nothing: the rest is decided without
// them.
const mostSilent = 0.1

// setArrivals sets the rate of requests over all names of the model, and the ready replicas that
// report nothing. For one name the gateways' rate replaces that of the engines, unless it misses
// requests.
func (m *model) setArrivals(d *demand) {
	for i := range m.served {
		name := &m.served[i]
		rate := m.engineArrivals(*name)
		if name.counted = m.isCountedByGateways(*name, rate.Or(0)); name.counted {
			rate = arrivalsAt(name.gateways)
		}
		if value, known := rate.Known(); known {
			d.arrivals = fleet.Observed(d.arrivals.Or(0) + value)
		}
	}
	if _, known := d.arrivals.Known(); known {
		d.silent = m.silent()
		peak, _ := sum(m.engine, func(l fleet.Load) fleet.Reading { return l.PeakArrivals })
		reporting := max(1, m.reports().all()-d.silent)
		d.silentPeak = float64(d.silent) * max(m.busiest(), peak/float64(reporting))
	}
}

// silent returns the number of ready replicas that report nothing, if they are few enough to decide
// without them; else zero.
func (m *model) silent() int {
	if all := m.reports(); all.fewSilent() {
		return all.missing
	}
	return 0
}

// busiest returns the highest rate of a replica that reports. As demand each silent one has it.
func (m *model) busiest() (highest float64) {
	for _, v := range m.variants {
		for _, r := range v.engines {
			highest = max(highest, r.FirstTokens.Or(0), r.MeanRate.Or(0))
		}
	}
	return highest
}

// fewSilent reports whether some replicas are silent, and so few that the rest is decided without
// them.
func (r reports) fewSilent() bool {
	return r.missing > 0 && float64(r.missing) <= mostSilent*float64(r.all())
}

const (
	// mostPastGateway is the share of the engines' requests that may be missing at the gateways:
	// the two are counted at different times.
	mostPastGateway = 0.5
	// longPastGateway is that share if engines served as many in the mean of the peak window.
	longPastGateway = 0.1
)

// isCountedByGateways reports whether gateways count the requests of a name, of which engines
// have a rate: engines see one when it starts. While a gateway has a queue, and just after,
// engines serve more than arrives. Its highest rate was above theirs then, or it would have
// none. Without either, requests of engines that are missing at the gateways bypassed them, or
// have names that are not known, such as those of adapters.
func (m *model) isCountedByGateways(name served, rate float64) bool {
	now, known := arrivalsAt(name.gateways).Known()
	if !known || now <= 0 && rate > 0 {
		return false
	}
	if queued, _ := sum(name.gateways, func(l fleet.Load) fleet.Reading { return l.Queued }); queued > float64(m.ready()) {
		return true
	}
	mean := 0.0
	for _, v := range m.variants {
		for _, r := range v.engines {
			if v.EngineModel() == name.name {
				mean += r.MeanRate.Or(0)
			}
		}
	}
	peak, _ := sum(name.gateways, func(l fleet.Load) fleet.Reading { return l.PeakArrivals })
	most := max(now, peak)
	return most >= (1-mostPastGateway)*rate && most >= (1-longPastGateway)*min(rate, mean)
}

// arrivalsAt adds up the rates of some rows; absent if none is known.
func arrivalsAt(rows []fleet.Load) fleet.Reading {
	if rate, known := sum(rows, func(l fleet.Load) fleet.Reading { return l.Arrivals }); known {
		return fleet.Observed(rate)
	}
	return fleet.Reading{}
}

// clearBurst is the number of standard errors by which the latest arrivals must exceed the mean of
// the latest window to be a burst. Arrivals of a constant rate exceed it at fewer than one of
// 1,000 instants.
const clearBurst = 3

// burst returns the rate of the requests that arrived in the last half of the latest window, if it
// is clearly above the mean of that window; else 0. One standard error is left out: the rate was
// chosen for being high. Gateways that count all requests have that of the arrivals; engines see a
// request when it starts.
func (m *model) burst(mean float64) float64 {
	var rate, variance float64
	add := func(rows []fleet.Load, part float64) {
		for _, row := range rows {
			value, known := row.RecentArrivals.Known()
			deviation, estimated := row.RecentError.Known()
			if known && estimated {
				rate += float64(part * value)
				variance += float64(part * deviation * part * deviation)
			}
		}
	}
	for _, name := range m.served {
		_, recent := sum(name.gateways, func(l fleet.Load) fleet.Reading { return l.RecentArrivals })
		if recent && name.counted {
			add(name.gateways, 1)
			continue
		}
		add(slices.DeleteFunc(slices.Clone(m.engine), func(l fleet.Load) bool { return l.Model != name.name }), m.fraction(rateOf))
	}
	deviation := math.Sqrt(variance)
	if rate-float64(clearBurst*deviation) <= mean {
		return 0
	}
	return rate - deviation
}

// isRatedByGateway reports whether a gateway tells the rate of requests now. One whose metrics have
// ended still has its row of the longer windows.
func (m *model) isRatedByGateway() bool {
	_, known := sum(m.gateway, func(l fleet.Load) fleet.Reading { return l.Arrivals })
	return known
}

// engineArrivals returns the rate of first tokens over all pods, deleted ones included because
// their requests are part of the demand. It adds the growth of the queues over existing pods only:
// the queue of a deleted pod was not served. Few silent replicas count as much as the busiest one.
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
	few := m.silent() > 0
	for _, v := range m.variants {
		if v.EngineModel() != name.name {
			continue
		}
		for _, r := range v.engines {
			rate += r.WaitingGrowth.Or(0)
		}
		if few {
			rate += float64(float64(v.reports.missing) * m.busiest())
		}
	}
	return fleet.Observed(max(0, rate))
}

// lacksPeak reports whether a source that reports the demand now does not know the highest of the
// peak window. A highest demand of zero contradicts one that is above zero now.
func (m *model) lacksPeak(d *demand, rows []fleet.Load) bool {
	lacks := func(peak fleet.Reading, now float64) bool {
		highest, known := peak.Known()
		return !known || highest <= 0 && now > 0
	}
	for _, name := range m.served {
		for _, row := range rows {
			if row.Model == name.name && (lacks(row.PeakArrivals, m.engineArrivals(name).Or(0)) || lacks(row.PeakInFlight, 0)) {
				return true
			}
		}
	}
	for _, row := range m.gateway {
		if now := row.Arrivals.Or(0); now > 0 && lacks(row.PeakArrivals, now) {
			return true
		}
	}
	inFlight, _ := sum(m.engine, func(l fleet.Load) fleet.Reading { return l.PeakInFlight })
	return inFlight <= 0 && d.running > 0
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
			own = append(own, v.engines...)
		}
	}
	return own
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
