package simulation

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/wva-project/wva/fleet"
)

// Fleet is a fleet of engines in virtual time. Offer adds requests, Scale sets replicas, Advance
// lets time pass. Between two steps, the other methods return the view of the API server, of a
// scrape and of the clients.
type Fleet struct {
	seed     uint64
	epoch    time.Time
	now      float64
	variants []*variant // by identity
	nodes    []*node    // by accelerator, then name
	gateways []*gateway // by model
	byModel  map[fleet.ModelID]*gateway

	offered  []Request // by arrival
	arrived  int       // how many of offered have arrived
	events   eventQueue
	pending  []*pod // the oldest first
	created  int    // replicas so far
	outcomes []Outcome
}

// NewFleet returns a fleet at time 0, or all validation errors of its spec.
func NewFleet(spec FleetSpec) (*Fleet, error) {
	spec, err := spec.resolved()
	if err != nil {
		return nil, fmt.Errorf("fleet: %w", err)
	}
	f := &Fleet{seed: spec.Seed, epoch: spec.Epoch.UTC(), byModel: map[fleet.ModelID]*gateway{}}
	for _, n := range spec.Nodes {
		f.nodes = append(f.nodes, &node{NodeSpec: n})
	}
	for _, v := range spec.Variants {
		f.addVariant(v, spec.Routing)
	}
	for _, m := range spec.Models {
		f.byModel[m.ID].ModelSpec = m
	}
	slices.SortFunc(f.gateways, func(a, b *gateway) int { return a.ID.Compare(b.ID) })
	return f, nil
}

// addVariant adds a variant with its initial replicas, and the gateway of its model if the variant
// is the first of the model.
func (f *Fleet) addVariant(spec VariantSpec, routing Routing) {
	g, known := f.byModel[spec.Model]
	if !known {
		g = &gateway{ModelSpec: ModelSpec{ID: spec.Model}, served: spec.ServedName, routing: routing}
		f.byModel[spec.Model] = g
		f.gateways = append(f.gateways, g)
	}
	g.kvBlocks = max(g.kvBlocks, spec.KVTokens/blockSize)
	v := &variant{VariantSpec: spec, gateway: g, replicas: spec.Initial}
	for _, n := range f.nodes {
		if n.Accelerator == spec.Accelerator {
			v.nodes = append(v.nodes, n)
		}
	}
	f.variants = append(f.variants, v)
	for range spec.Initial {
		p := newPod(f, v)
		if f.bind(p) {
			p.state, p.readyAt = ready, f.now
			g.join(p)
		} else {
			f.pending = append(f.pending, p)
		}
	}
}

// Now returns the virtual time.
func (f *Fleet) Now() float64 { return f.now }

// Time returns the time of day of a virtual time.
func (f *Fleet) Time(t float64) time.Time {
	return f.epoch.Add(time.Duration(math.Round(t * float64(time.Second))))
}

// Offer adds requests that will arrive. They must be sorted by arrival. None may be before the
// present, or before requests that were offered earlier.
func (f *Fleet) Offer(requests []Request) error {
	last := f.now
	if len(f.offered) > 0 {
		last = max(last, f.offered[len(f.offered)-1].Arrival)
	}
	for i, r := range requests {
		switch {
		case !(r.Arrival >= last) || math.IsInf(r.Arrival, 0):
			return fmt.Errorf("request %d of %s arrives at %v s, before %v s; sort them by arrival", i, r.Model, r.Arrival, last)
		case f.byModel[r.Model] == nil:
			return fmt.Errorf("request %d is for model %s, which no variant serves", i, r.Model)
		case r.Prompt < 1 || r.Output < 1:
			return fmt.Errorf("request %d of %s has %d tokens of prompt and %d of output; both must be at least 1", i, r.Model, r.Prompt, r.Output)
		}
		last = r.Arrival
	}
	f.offered = append(f.offered, requests...)
	return nil
}

// Scale sets the number of replicas of a variant, as a write to its scale subresource does. New
// replicas load or stay pending. Surplus ones are chosen as a ReplicaSet does. Those that are ready
// drain: they get no more requests, hand the requests without a token to other ready replicas, and
// finish the others within their grace. Requests that are not finished then are lost.
func (f *Fleet) Scale(id fleet.VariantID, replicas int) error {
	v, ok := f.variant(id)
	if !ok {
		return fmt.Errorf("scaling %s: no such variant", id)
	}
	if replicas < 0 {
		return fmt.Errorf("scaling %s: %d replicas are fewer than 0", id, replicas)
	}
	v.replicas = replicas
	active := v.active()
	for range replicas - len(active) {
		f.pending = append(f.pending, newPod(f, v))
	}
	if len(active) > replicas {
		slices.SortFunc(active, removedBefore)
		f.scaleDown(active[:len(active)-replicas])
	}
	f.schedule()
	return nil
}

// Advance runs all events up to and including a time. A time in the past changes nothing. An
// infinite one runs until no event is left, and the present is then the time of the last event.
func (f *Fleet) Advance(t float64) {
	for {
		arrival := math.Inf(1)
		if f.arrived < len(f.offered) {
			arrival = f.offered[f.arrived].Arrival
		}
		impatient, expiry := f.firstExpiry()
		at := min(arrival, expiry, f.events.first())
		if !(at <= t) || math.IsInf(at, 1) {
			break
		}
		f.now = at
		switch at {
		case f.events.first():
			f.run(f.events[0])
		case expiry:
			f.expire(impatient)
		default:
			f.arrive(f.offered[f.arrived])
		}
	}
	if t > f.now && !math.IsInf(t, 1) {
		f.now = t
	}
}

// run handles the event of a replica.
func (f *Fleet) run(p *pod) {
	switch {
	case p.state == loading:
		f.serve(p)
	case p.state == draining && p.deadline < p.engine.end:
		f.cutOff(p)
	default:
		for _, s := range p.engine.complete() {
			f.answer(p.variant.gateway, s)
		}
		p.engine.begin(f.now)
		f.settle(p)
	}
}

// settle sets the next event of a replica, or removes the replica if its drain is done.
func (f *Fleet) settle(p *pod) {
	if p.state == draining && p.engine.inFlight() == 0 {
		f.remove(p)
		return
	}
	f.events.set(p)
}

// serve makes a replica that has loaded ready. It gets the requests of the gateway's queue first.
func (f *Fleet) serve(p *pod) {
	p.state = ready
	g := p.variant.gateway
	g.join(p)
	f.events.set(p)
	kept := g.queue[:0]
	for _, s := range g.queue {
		if !f.dispatch(g, s) {
			kept = append(kept, s)
		}
	}
	clear(g.queue[len(kept):])
	g.queue = kept
}

func (f *Fleet) arrive(r Request) {
	f.arrived++
	g := f.byModel[r.Model]
	g.arrived++
	s := &sequence{Request: r}
	switch {
	case !g.fits(s):
		f.lose(g, s, TooLong)
	case f.dispatch(g, s):
	case g.full():
		f.lose(g, s, QueueFull)
	default:
		g.queue = append(g.queue, s)
	}
}

// dispatch hands a sequence to a replica that can take it, and reports whether there is one.
func (f *Fleet) dispatch(g *gateway, s *sequence) bool {
	p, ok := g.choose(s)
	if ok {
		p.engine.submit(s, f.now)
		f.events.set(p)
	}
	return ok
}

// firstExpiry returns the gateway at which a request times out next, and the time, which is +Inf if
// none does.
func (f *Fleet) firstExpiry() (*gateway, float64) {
	var first *gateway
	at := math.Inf(1)
	for _, g := range f.gateways {
		if expiry := g.expiry(); expiry < at {
			first, at = g, expiry
		}
	}
	return first, at
}

func (f *Fleet) expire(g *gateway) {
	s := g.queue[0]
	g.queue = g.queue[1:]
	f.lose(g, s, TimedOut)
}

func (f *Fleet) variant(id fleet.VariantID) (*variant, bool) {
	at, found := slices.BinarySearchFunc(f.variants, id, func(v *variant, id fleet.VariantID) int { return v.ID.Compare(id) })
	if !found {
		return nil, false
	}
	return f.variants[at], true
}
