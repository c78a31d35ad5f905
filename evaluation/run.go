package evaluation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/wva-project/wva/simulation"
)

// Case is the input that all policies of a comparison have in common.
type Case struct {
	Load  string // its name
	Setup Setup
	// Seed is the randomness of start-up times and engines. The requests are drawn from it too.
	Seed     uint64
	Requests []simulation.Request // sorted by arrival
	// Until is the end of the load, in seconds. Cost and replicas are measured until then. Policies
	// go on until all requests have ended.
	Until float64
	// WarmUp is how many seconds a fleet runs before the load, at most Until. The fleet's time
	// begins with it; all other times of a case and an outcome begin with the load.
	WarmUp float64
}

// end is the end of the load in the fleet's time.
func (c Case) end() float64 { return c.WarmUp + c.Until }

// offered returns the requests of the warm-up and of the load, by the fleet's time. Those of the
// warm-up are the first of the load in reverse order, so that the rate goes on as it is.
func (c Case) offered() []simulation.Request {
	if c.WarmUp <= 0 {
		return c.Requests
	}
	first, _ := slices.BinarySearchFunc(c.Requests, c.WarmUp, func(q simulation.Request, t float64) int { return cmp.Compare(q.Arrival, t) })
	all := make([]simulation.Request, 0, first+len(c.Requests))
	for _, q := range slices.Backward(c.Requests[:first]) {
		q.Arrival = min(c.WarmUp-q.Arrival, math.Nextafter(c.WarmUp, 0))
		all = append(all, q)
	}
	for _, q := range c.Requests {
		q.Arrival += c.WarmUp
		all = append(all, q)
	}
	return all
}

// maxDrain is how long a run continues after the end of the load for requests that may never end,
// in seconds.
const maxDrain = 1800.0

// Run runs a policy on a case. If the context ends before, the error has its cause.
func Run(ctx context.Context, c Case, p Policy, s Setting) (Outcome, error) {
	outcome, err := run(ctx, c, p, s)
	if err != nil {
		return Outcome{}, fmt.Errorf("policy %s on %s with seed %d: %w", p.Name, c.Load, c.Seed, err)
	}
	return outcome, nil
}

func run(ctx context.Context, c Case, p Policy, s Setting) (_ Outcome, err error) {
	f, err := newFleet(c, p, s)
	if err != nil {
		return Outcome{}, err
	}
	var controller Controller = idle{}
	if p.Start != nil {
		if controller, err = p.Start(c, s, f); err != nil {
			return Outcome{}, err
		}
	}
	defer func() { err = errors.Join(err, controller.Close()) }()
	r := newRecorder(c)
	next := 0.0
	for next < c.WarmUp {
		f.Advance(next)
		if next, err = step(ctx, controller, f); err != nil {
			return Outcome{}, err
		}
	}
	f.Advance(c.WarmUp)
	r.begin(f)
	for next <= c.end() {
		f.Advance(next)
		if next, err = step(ctx, controller, f); err != nil {
			return Outcome{}, err
		}
		r.observe(f)
	}
	f.Advance(c.end())
	r.end(f)
	for next <= c.end()+maxDrain && open(f) > 0 {
		f.Advance(next)
		if next, err = step(ctx, controller, f); err != nil {
			return Outcome{}, err
		}
	}
	f.Advance(c.end() + maxDrain)
	return r.outcome(f, p, s), nil
}

func step(ctx context.Context, controller Controller, f *simulation.Fleet) (float64, error) {
	if err := context.Cause(ctx); err != nil {
		return 0, err
	}
	next, err := controller.Step(ctx, f)
	if err == nil && !(next > f.Now()) {
		err = fmt.Errorf("the next step after %v s is at %v s", f.Now(), next)
	}
	return next, err
}

// newFleet returns the fleet of a case with the policy's initial replicas.
func newFleet(c Case, p Policy, s Setting) (*simulation.Fleet, error) {
	spec := c.Setup.Fleet
	spec.Seed = c.Seed
	spec.Variants = slices.Clone(spec.Variants)
	if p.Initial != nil {
		initial := p.Initial(c, s)
		for i := range spec.Variants {
			spec.Variants[i].Initial = initial[spec.Variants[i].ID]
		}
	}
	f, err := simulation.NewFleet(spec)
	if err != nil {
		return nil, err
	}
	return f, f.Offer(c.offered())
}

// open returns the number of requests that have arrived and not ended.
func open(f *simulation.Fleet) (open int) {
	for _, t := range f.Tallies() {
		open += t.Queued + t.InFlight
	}
	return open
}

// idle never acts.
type idle struct{}

func (idle) Step(context.Context, *simulation.Fleet) (float64, error) { return math.Inf(1), nil }
func (idle) Close() error                                             { return nil }
