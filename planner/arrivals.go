package planner

import (
	"math"

	"github.com/wva-project/wva/fleet"
)

// mostSilent is the share of ready replicas that may report nothing: the rest is decided without
// them.
const mostSilent = 0.1

// addSilent counts the ready replicas that report nothing. As demand each counts with the highest
// rate of a replica that reports.
func (m *model) addSilent(d *demand) {
	all := m.reports()
	rate, known := d.arrivals.Known()
	if !all.fewSilent() || !known {
		return
	}
	highest := 0.0
	for _, v := range m.variants {
		for _, r := range v.engines {
			highest = max(highest, r.FirstTokens.Or(0), r.MeanRate.Or(0))
		}
	}
	peak, _ := sum(m.engine, func(l fleet.Load) fleet.Reading { return l.PeakArrivals })
	d.silent = all.missing
	d.silentPeak = float64(all.missing) * max(highest, peak/float64(max(1, all.all()-all.missing)))
	d.arrivals = fleet.Observed(rate + float64(float64(all.missing)*highest))
}

// fewSilent reports whether some replicas are silent, and so few that the rest is decided without
// them.
func (r reports) fewSilent() bool {
	return r.missing > 0 && float64(r.missing) <= mostSilent*float64(r.all())
}

// mostPastGateway is the share of the engines' requests that may be missing at the gateway: the two
// count at different times. If more are missing, they bypassed the gateway or have names that are
// not known, such as those of adapters.
const mostPastGateway = 0.5

// arrivals returns the rate of requests over all names of the model. For one name the gateway's
// rate replaces that of the engines, unless it misses requests. While the gateway has a queue, and
// just after, the engines serve more than arrives: its peak tells.
func (m *model) arrivals() (arrivals fleet.Reading) {
	queued, _ := sum(m.gateway, func(l fleet.Load) fleet.Reading { return l.Queued })
	for _, name := range m.served {
		rate := m.engineArrivals(name)
		atGateway, known := name.gateway.Known()
		most := max(atGateway, name.gatewayPeak.Or(0))
		misses := atGateway <= 0 && rate.Or(0) > 0 || queued <= 0 && most < (1-mostPastGateway)*rate.Or(0)
		if known && !misses {
			rate = name.gateway
		}
		if value, known := rate.Known(); known {
			arrivals = fleet.Observed(arrivals.Or(0) + value)
		}
	}
	return arrivals
}

// clearBurst is the number of standard errors by which the latest arrivals must exceed the mean of
// the latest window to be a burst. Arrivals of a constant rate exceed it at fewer than one of
// 1,000 instants.
const clearBurst = 3

// burst returns the rate of the requests that arrived in the last half of the latest window, if it
// is clearly above the mean of that window; else 0. One standard error is left out: the rate was
// chosen for being high. The gateway's is that of the arrivals; engines see a request when it
// starts.
func (m *model) burst(mean float64) float64 {
	rows, part := m.gateway, 1.0
	if _, known := sum(rows, func(l fleet.Load) fleet.Reading { return l.RecentArrivals }); !known {
		rows, part = m.engine, m.fraction(rateOf)
	}
	var rate, variance float64
	for _, row := range rows {
		value, known := row.RecentArrivals.Known()
		deviation, estimated := row.RecentError.Known()
		if known && estimated {
			rate += float64(part * value)
			variance += float64(part * deviation * part * deviation)
		}
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
		for _, r := range v.engines {
			if v.EngineModel() == name.name {
				rate += r.WaitingGrowth.Or(0)
			}
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
