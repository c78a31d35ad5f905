package planner

import (
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
		z.keepOne = true
		z.latest, z.wanted = 1, 1
		for _, c := range z.choices { // any one replica of any variant is enough
			c.share = 1
		}
	default:
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

// chooseProbe picks a variant of unknown capacity that is to have one replica, so that it shows what it carries: the
// cheapest, where the known ones cannot cover the demand and no other unknown one is up already.
func (z *sizing) chooseProbe() {
	var room float64
	for _, c := range z.choices {
		room += float64(c.share * float64(c.variant.Range.Max))
	}
	if room >= z.wanted {
		return
	}
	for _, c := range z.choices {
		switch {
		case c.share > 0 || c.variant.Range.Max < 1:
		case c.variant.now > c.variant.idleNumber() && c.variant.overdue == 0:
			z.probe = c
			return
		case z.probe == nil || c.variant.Cost < z.probe.variant.Cost:
			z.probe = c
		}
	}
}

// ask adds the model to a solver's problem: this much is to be covered, with each variant in the range that limit leaves.
func (z *sizing) ask(problem *solver.Problem, amount float64, limit func(*choice, solver.Option) solver.Option) {
	problem.Demands = append(problem.Demands, solver.Demand{Model: z.model.id, Amount: amount})
	for _, c := range z.choices {
		v := c.variant
		option := solver.Option{
			Variant: v.ID, Model: z.model.id, Capacity: c.share, Price: v.Cost, Startup: c.startup, Range: v.Range, Now: v.now,
		}
		if z.frozen {
			option.Range = atLeast(option.Range, v.now)
		}
		if c == z.probe {
			option.Range = atLeast(option.Range, max(1, v.Range.Min))
		}
		if c.share == 0 && c != z.probe {
			option.Range.Max = max(option.Range.Floor(), min(option.Range.Max, v.now))
		}
		problem.Options = append(problem.Options, limit(c, option))
	}
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

// withoutOverdue takes the replicas away that do not start. A variant of which nothing starts does not grow.
func withoutOverdue(c *choice, option solver.Option) solver.Option {
	if c.variant.overdue > 0 {
		option.Now = c.variant.now - c.variant.overdue
		option.Range = atMost(option.Range, c.reach())
	}
	return option
}

// reach returns how many replicas of a variant with overdue ones may carry something.
func (c *choice) reach() int {
	if c.variant.sterile {
		return max(0, c.variant.now-c.variant.overdue)
	}
	return max(0, c.variant.Range.Max-c.variant.overdue)
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

// atMost returns the range without what lies above n.
func atMost(r fleet.Range, n int) fleet.Range {
	r.Max = min(r.Max, n)
	if r.Min > r.Max {
		r.Min = r.Max
	}
	if r.AllowsIdle && r.Idle >= r.Min {
		r.AllowsIdle, r.Idle = false, 0
	}
	return r
}
