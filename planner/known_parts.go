package planner

import (
	"math"
	"slices"
	"time"

	"github.com/wva-project/wva/fleet"
)

// budgetPart is the evidence of one part of the error budget's window.
type budgetPart struct {
	end      time.Time
	replicas int
	requests float64
	missed   float64 // the likely number of those that missed the objective
	// the least and the most, if the bound of the objective lies within a bucket
	fewest, most float64
	// of the headroom: no replica started in it, and the model could have had more replicas
	isEvidence bool
}

// knownParts returns the parts whose requests are known, in the order of time; none if the model
// has no single objective, or its latencies are not known.
func (m *model) knownParts() (parts []budgetPart) {
	objective, single := m.singleObjective()
	if !single || m.latencies().Length <= 0 {
		return nil
	}
	waits, counted := m.gatewayWaits()
	served := m.servedParts(time.Time{})
	known := objective.ITL <= 0 || mostHaveITL(served, objective.ITL)
	for _, row := range served {
		wait, waited := waits[row.End]
		part, seen := evidence(row, wait, objective)
		if part.replicas = m.replicasOf(row.Replicas); seen && known && waited == counted {
			parts = append(parts, part)
		}
	}
	return parts
}

// mostParts is how many parts of the error budget count, the latest ones: no input makes work
// unbounded. It is some times as many as three windows have.
const mostParts = 240

// servedParts returns the parts of the error budget that end after a time, in order, those without
// requests too.
func (m *model) servedParts(from time.Time) (parts []fleet.LatencyPart) {
	known := m.latencies()
	for _, part := range known.Parts {
		inOrder := len(parts) == 0 || part.End.After(parts[len(parts)-1].End)
		if inOrder && part.End.After(from) && !part.End.After(known.Until) && part.Requests >= 0 && part.Requests <= mostRequests {
			parts = append(parts, part)
		}
	}
	return parts
}

// since returns the last parts, those that end after a time.
func since(parts []budgetPart, from time.Time) []budgetPart {
	first := len(parts)
	for first > 0 && parts[first-1].end.After(from) {
		first--
	}
	return parts[first:]
}

// budgetParts returns the known parts that count for the error budget. A part is evidence of the
// headroom unless a replica started in it, or the model had as many replicas as it may have. Parts
// in which replicas started count without being evidence, but for those of requests that came for
// the first time within a window.
func (z *sizedModel) budgetParts(window time.Duration, most int) (parts []budgetPart) {
	d := z.demand
	comesFirst := func(end time.Time) bool {
		past := slices.DeleteFunc(z.servedParts(end.Add(-window)), func(p fleet.LatencyPart) bool { return p.End.After(end) })
		return firstRises(past, d.partLength)[end]
	}
	for _, part := range d.parts {
		starts := d.starting.overlaps(part.end.Add(-d.partLength), part.end)
		part.isEvidence = part.replicas < most && !starts
		if part.isEvidence || starts && !comesFirst(part.end) {
			parts = append(parts, part)
		}
	}
	return parts
}

// singleObjective returns the latency objective that all variants of the model have; false if they
// have several, none, or if prefill and decode are separate, which requests pass one after the
// other.
func (m *model) singleObjective() (o fleet.Objective, single bool) {
	for i, v := range m.variants {
		if i > 0 && v.objective != o {
			return o, false
		}
		o = v.objective
	}
	if !(o.Percentile > 0 && o.Percentile < 1) {
		o.Percentile = defaultPercentile
	}
	return o, (o.TTFT > 0 || o.ITL > 0) && !m.disaggregated()
}

// defaultPercentile is the share of requests of an objective that gives none.
const defaultPercentile = 0.95

// latencies returns those of the model's only name at engines; none if it has several.
func (m *model) latencies() fleet.Latencies {
	if len(m.engine) != 1 {
		return fleet.Latencies{}
	}
	known := m.engine[0].Latencies
	known.Parts = latestParts(known.Parts)
	return known
}

// latestParts returns the parts that count.
func latestParts(parts []fleet.LatencyPart) []fleet.LatencyPart {
	return parts[max(0, len(parts)-mostParts):]
}

// gatewayWaits returns the waits at the gateways in each part, by its end: those of all rows, such
// as of adapters, together. It reports whether gateways count waits at all: those of a part without
// any are not known then.
func (m *model) gatewayWaits() (waits map[time.Time][]fleet.Bucket, counted bool) {
	waits = make(map[time.Time][]fleet.Bucket)
	for _, row := range m.gateway {
		for _, part := range latestParts(row.Latencies.Parts) {
			if len(part.Wait) == 0 {
				continue
			}
			counted = true
			if row.Latencies.Length == m.latencies().Length {
				waits[part.End] = addBuckets(waits[part.End], part.Wait)
			}
		}
	}
	return waits, counted
}

// mostHaveITL reports whether at least half of the requests of the latest parts have a time between
// tokens: if some of a model's engines do not report it, these may be slower. A request ends in a
// later part than it begins in, so that one part alone is no evidence.
func mostHaveITL(parts []fleet.LatencyPart, limit time.Duration) bool {
	const latest = 20
	requests, have := 0.0, 0.0
	for _, part := range parts[max(0, len(parts)-latest):] {
		if _, known := attainedWithin(part.ITL, limit); !known || part.PerToken {
			continue // or it counts tokens
		}
		requests += part.Requests
		for _, b := range part.ITL {
			have += b.Count
		}
	}
	return have >= requests/2
}

// replicasOf returns the number of replicas of so many pods that report: of a group, several may.
// If the variants differ, each pod may be one.
func (m *model) replicasOf(pods int) int {
	each := 0
	for _, v := range m.variants {
		switch {
		case v.reportingPods == 0 || v.reportingPods == each:
		case each > 0:
			return pods
		default:
			each = v.reportingPods
		}
	}
	each = max(1, each)
	return (pods + each - 1) / each
}

// addBuckets adds up two histograms. If their bounds differ, the result is no histogram: it has a
// bound twice.
func addBuckets(a, b []fleet.Bucket) []fleet.Bucket {
	sameBound := func(a, b fleet.Bucket) bool { return a.Upper == b.Upper }
	switch {
	case len(a) == 0:
		return b
	case len(b) == 0:
		return a
	}
	sum := slices.Clone(a)
	if !slices.EqualFunc(a, b, sameBound) {
		return append(sum, a[len(a)-1])
	}
	for i := range sum {
		sum[i].Count += b[i].Count
	}
	return sum
}

// mostReplicas is how many replicas the model can have now, by its maximums and the accelerators;
// zero if no variant can meet the objective. The limits of the past are not known.
func (z *sizedModel) mostReplicas() (most int) {
	for _, c := range z.candidates {
		switch {
		case c.capacity.Infeasible:
		case c.fixed != nil, c.startBlocked:
			most += c.alive()
		default:
			most += max(0, min(c.mostAllowed(), c.mostPlaceable))
		}
	}
	return most
}

// spans are spans of time.
type spans []struct{ from, to time.Time }

func (s spans) overlaps(from, to time.Time) bool {
	for _, span := range s {
		if span.from.Before(to) && span.to.After(from) {
			return true
		}
	}
	return false
}

// slowestStart returns the longest start-up time of the model's variants.
func (m *model) slowestStart() (longest time.Duration) {
	for _, v := range m.variants {
		longest = max(longest, v.startup)
	}
	return longest
}

// startTimes returns when replicas started: as the pods show that exist, and for those that are
// gone the usual start-up time before the part in which they began to report.
func (m *model) startTimes(known fleet.Latencies, now time.Time) (starting spans) {
	for _, v := range m.variants {
		for i := range v.workload.Pods {
			pod := &v.workload.Pods[i]
			to := now
			if pod.Ready {
				to = pod.ReadyAt
			}
			from := pod.Created
			if to.Sub(from) > overdue*v.startup { // it may have waited for a node
				from = pod.StartedAt()
			}
			long := to.Sub(from) > overdue*v.startup // overdue, or ready again
			if !long && to.After(known.Parts[0].End.Add(-time.Duration(known.Length))) {
				starting = append(starting, struct{ from, to time.Time }{from, to})
			}
		}
	}
	before := time.Duration(known.Length) + m.slowestStart()
	for _, part := range known.Parts {
		if part.Started > 0 {
			from := part.End.Add(-before)
			starting = append(starting, struct{ from, to time.Time }{from, part.End})
		}
	}
	return starting
}

// evidence returns how many requests of a part missed the objective; false if that is not known.
// Misses of TTFT and of ITL are taken to be of the same requests, so that the larger share counts;
// at most they are of different ones. The wait at the gateway and the TTFT at the engine are taken
// to miss different ones.
func evidence(row fleet.LatencyPart, wait []fleet.Bucket, o fleet.Objective) (part budgetPart, known bool) {
	ttft, itl := attained{1, 1, 1}, attained{1, 1, 1}
	known = row.Requests > 0
	if o.TTFT > 0 {
		var seen bool
		ttft, seen = attainedWithin(row.TTFT, o.TTFT)
		known = known && seen && countsAgree(row)
		if waited, seen := attainedWithin(wait, o.TTFT); !seen {
			known = known && len(wait) == 0 // no gateway counts waits
		} else {
			ttft = attained{max(0, ttft.likely+waited.likely-1), max(0, ttft.least+waited.least-1), min(ttft.most, waited.most)}
		}
	}
	if o.ITL > 0 {
		var seen bool
		itl, seen = attainedWithin(row.ITL, o.ITL)
		known = known && seen
	}
	return budgetPart{
		end:      row.End,
		requests: row.Requests,
		missed:   row.Requests * (1 - min(ttft.likely, itl.likely)),
		fewest:   row.Requests * (1 - min(ttft.most, itl.most)),
		most:     row.Requests * min(1, 2-ttft.least-itl.least),
	}, known
}

// countsAgree reports whether a histogram of TTFT has about as many requests as were counted.
// Series that count others are no evidence.
func countsAgree(row fleet.LatencyPart) bool {
	total := 0.0
	for _, b := range row.TTFT {
		total += b.Count
	}
	return math.Abs(total-row.Requests) <= float64(mostDisagreement*row.Requests)+1
}

// mostDisagreement is how much of the requests may be missing in the histogram, or in the count.
const mostDisagreement = 0.1

// mostRequests is more than any model serves in a part.
const mostRequests = 1e12
