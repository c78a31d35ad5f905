package planner

import (
	"fmt"
	"slices"
	"time"

	"github.com/wva-project/wva/analyzer"
	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/solver"
)

// sizing is one model on its way from demand to targets.
type sizing struct {
	model   *model
	demand  demand
	choices []*choice // the variants that can be decided
	keepOne bool      // idle, but one replica must stay
	needed  bool      // a replica must stay or come
	latest  float64   // what must be covered at once, as a share of the reference
	wanted  float64   // what is covered in the end: more than the latest where that stands already
	frozen  bool      // nothing may shrink
	short   float64   // the share of the reference that stays uncovered
	probe   *choice
}

// choice is one variant, what a replica of it carries, and how many it gets.
type choice struct {
	variant  *variant
	startup  time.Duration // for which a start is paid
	capacity analyzer.Capacity
	share    float64 // of the reference demand; 0 where unknown
	most     int     // what the latest demand needs
	safe     int     // what a demand with a second margin needs
	replicas int     // decided
	delayed  bool    // shrinks later, to aim: the replicas that take over are not ready
	aim      int
}

// newSizing sets a model up for the solver. Variants whose workload was not seen are held: their replicas may exist, and
// what they carry is part of what was observed, so the others are sized for all of the demand.
func newSizing(x *index, m *model, d demand, p Policy) (*sizing, []fleet.Held) {
	sized := &sizing{model: m, demand: d}
	var held []fleet.Held
	for _, v := range m.variants {
		if !v.seen {
			why := *reason(fleet.CodeWorkloadUnknown, "%s was not found; check scaleTargetRef, and that the workload exists", v.Target)
			held = append(held, x.hold(v, why, p))
			continue
		}
		sized.choices = append(sized.choices, &choice{variant: v, startup: v.workload.Startup + p.Settle})
	}
	sized.analyze(x, p)
	sized.want()
	return sized, held
}

// analyze asks what a replica of each variant carries.
func (z *sizing) analyze(x *index, p Policy) {
	m := analyzer.Model{Rate: z.demand.rate, InFlight: z.demand.inFlight, PromptTokens: z.demand.prompt, OutputTokens: z.demand.output}
	for _, c := range z.choices {
		m.Variants = append(m.Variants, analyzer.Variant{
			ID: c.variant.ID, Replicas: c.variant.replicas,
			Speed:    x.accelerators[c.variant.Accelerator].Speed * float64(max(1, c.variant.GPUsPerReplica)),
			KVTokens: c.variant.workload.KVTokens, MaxSequences: c.variant.workload.MaxSequences,
			ITL: c.variant.Objective.ITL,
		})
	}
	for i, capacity := range analyzer.Analyze(m, p.Saturation) {
		c := z.choices[i]
		c.capacity = capacity
		if share, known := capacity.Share.Known(); known && share > 0 {
			c.share = share
		}
		if capacity.Saturated > 0 && z.demand.freeze == "" {
			z.demand.freeze = fleet.CodeSaturated
			z.demand.why = countOf(capacity.Saturated, "replica", "replicas") + " of " + c.variant.ID.Name + " at a saturation threshold"
		}
	}
	if z.demand.freeze == "" {
		z.demand.freeze, z.demand.why = z.missed()
	}
}

// missed returns the freeze of a model whose requests wait for longer than its objective allows. An objective that no load
// meets freezes nothing: more replicas would not meet it either.
func (z *sizing) missed() (code fleet.Code, why string) {
	if z.model.ready() == 0 {
		return "", ""
	}
	for _, c := range z.choices {
		objective := c.variant.Objective
		if itl := z.demand.itl.Or(0); objective.ITL > 0 && itl > objective.ITL.Seconds() && !c.capacity.Infeasible {
			return fleet.CodeObjectiveMissed, fmt.Sprintf("tokens come every %.3g s on average, the objective is %v", itl, objective.ITL)
		}
		if ttft := z.demand.ttft.Or(0); objective.TTFT > 0 && ttft > objective.TTFT.Seconds() {
			return fleet.CodeObjectiveMissed, fmt.Sprintf("the first token takes %.3g s at the 95th percentile, the objective is %v", ttft, objective.TTFT)
		}
	}
	return "", ""
}

// want sets what is to be covered. Up on the latest, down on the highest: between the two, what stands is right.
func (z *sizing) want() {
	z.frozen = z.demand.freeze != ""
	switch nothingAsked := z.demand.latest <= 0 && z.demand.inFlight <= 0 && z.demand.rate.Or(0) <= 0; {
	case z.demand.unused && z.model.spec.ScaleToZero:
		z.latest, z.wanted = 0, 0
	case nothingAsked && z.model.spec.ScaleToZero && z.asleep():
		z.latest, z.wanted = 0, 0
	case nothingAsked:
		z.keepOne, z.needed = true, true
		z.latest, z.wanted = 1, 1
		for _, c := range z.choices { // any one replica of any variant is enough
			c.share = 1
		}
	default:
		z.needed = true
		z.latest = z.demand.latest
		if committed := z.committed(); z.coming() > 0 && committed > 0 {
			// The backlog grows because replicas load. It asks for no more than they will carry, or each cycle would count it again.
			z.latest = max(z.demand.steady, min(z.latest, committed))
		}
		z.wanted = z.latest
		if !z.frozen {
			z.wanted = max(z.latest, min(z.demand.highest, z.committed()))
		}
		z.chooseProbe()
	}
}

// asleep reports whether no replica of the model is asked for.
func (z *sizing) asleep() bool {
	return !slices.ContainsFunc(z.choices, func(c *choice) bool { return c.variant.now > 0 })
}

func (z *sizing) coming() (coming int) {
	for _, c := range z.choices {
		coming += c.variant.coming
	}
	return coming
}

func (z *sizing) overdue() bool {
	return slices.ContainsFunc(z.choices, func(c *choice) bool { return c.variant.overdue > 0 })
}

// committed returns what the replicas carry that are ready or on their way.
func (z *sizing) committed() (share float64) {
	for _, c := range z.choices {
		share += float64(c.share * float64(min(c.variant.now, c.variant.ready+c.variant.coming)))
	}
	return share
}

// chooseProbe picks a variant of unknown capacity that is to have one replica, so that it shows what it carries: where the
// known ones cannot cover the demand, and from zero also where it is the cheapest of all. While it loads, nothing else is
// started for what it may carry.
func (z *sizing) chooseProbe() {
	var room float64
	for _, c := range z.choices {
		room += float64(c.share * float64(z.domain(c).Max))
	}
	best := z.bestProbe()
	waking := best != nil && z.model.ready() == 0 && best == z.cheapest()
	if best == nil || room >= z.wanted && !waking {
		return
	}
	z.probe = best
	if waking && !best.variant.sterile {
		z.latest, z.wanted = 0, 0
	}
}

// bestProbe returns the variant of unknown capacity that is best tried: one that is up already, else the cheapest; one of
// which nothing starts only where there is no other.
func (z *sizing) bestProbe() *choice {
	var best *choice
	rank := func(c *choice) [2]bool { return [2]bool{!c.variant.sterile, c.variant.now > c.variant.idleNumber()} }
	for _, c := range z.choices {
		if c.share > 0 || c.variant.Range.Max < 1 {
			continue
		}
		if best == nil || better(rank(c), rank(best)) || rank(c) == rank(best) && c.variant.Cost < best.variant.Cost {
			best = c
		}
	}
	return best
}

// better compares ranks: the first difference counts.
func better(a, b [2]bool) bool {
	if a[0] != b[0] {
		return a[0]
	}
	return a[1] && !b[1]
}

// cheapest returns the variant with the least price of a replica, of those that may have one and start.
func (z *sizing) cheapest() *choice {
	var cheapest *choice
	for _, c := range z.choices {
		if c.variant.Range.Max >= 1 && !c.variant.sterile && (cheapest == nil || c.variant.Cost < cheapest.variant.Cost) {
			cheapest = c
		}
	}
	return cheapest
}

// ask adds the model to a solver's problem: this much is to be covered, with each variant in the range that limit leaves.
func (z *sizing) ask(problem *solver.Problem, amount float64, limit func(*choice, solver.Option) solver.Option) {
	problem.Demands = append(problem.Demands, solver.Demand{Model: z.model.id, Amount: amount})
	for _, c := range z.choices {
		option := solver.Option{
			Variant: c.variant.ID, Model: z.model.id, Capacity: c.share, Price: c.variant.Cost, Startup: c.startup,
			Range: z.domain(c), Now: c.variant.now,
		}
		problem.Options = append(problem.Options, limit(c, option))
	}
}

// domain returns where a variant's replicas may be.
func (z *sizing) domain(c *choice) fleet.Range {
	v := c.variant
	domain := v.Range
	if v.sterile {
		domain = atMost(domain, v.now)
	}
	switch {
	case z.frozen:
		domain = atLeast(domain, v.now)
	case z.needed:
		domain = atLeast(domain, min(v.now, v.young))
	}
	switch {
	case c == z.probe:
		domain = atLeast(domain, max(1, v.Range.Min))
	case c.share == 0 && v.overdue > 0 && z.needed: // it would be asked for again at once
		domain = atMost(atLeast(domain, v.now), v.now)
	case c.share == 0:
		domain = atMost(domain, v.now)
	}
	return domain
}

// anything leaves an option as it is.
func anything(_ *choice, option solver.Option) solver.Option { return option }

// startsForTheLatest lets a variant grow only as far as the latest demand makes it: nothing is started for a demand that is
// already on its way down. Where no more is needed than stands, a cheaper mix must hold with a second margin: capacities
// are estimates, and a mix that just fits would be taken back with the next one.
func (z *sizing) startsForTheLatest(c *choice, option solver.Option) solver.Option {
	most := c.most
	if !z.keepOne && z.latest <= z.committed() {
		most = min(most, c.safe)
	}
	option.Range = atMost(option.Range, max(c.variant.now, most))
	return option
}

// withoutOverdue counts only the replicas of a variant that carry something: its bounds are lower by those that do not start.
func withoutOverdue(c *choice, option solver.Option) solver.Option {
	if missing := c.variant.overdue; missing > 0 {
		option.Now = c.variant.now - missing
		option.Range = fleet.Range{Min: max(0, option.Range.Min-missing), Max: max(0, option.Range.Max-missing)}
	}
	return option
}

// atLeast returns the range without what lies below n.
func atLeast(r fleet.Range, n int) fleet.Range {
	if r.AllowsIdle && n <= r.Idle {
		return r
	}
	if n > 0 {
		r.AllowsIdle, r.Idle = false, 0
	}
	r.Min = max(r.Min, min(n, r.Max))
	return r
}

// atMost returns the range without what lies above n; the minimum stays.
func atMost(r fleet.Range, n int) fleet.Range {
	r.Max = max(r.Min, min(r.Max, n))
	return r
}
