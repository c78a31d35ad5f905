package evaluation

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/simulation"
)

const (
	// clairvoyantStep is the time between two looks at the schedule, in seconds.
	clairvoyantStep = 15.0
	// startupMargin is by how many standard deviations of the start-up time replicas are started
	// before they are needed.
	startupMargin = 2.0
)

// clairvoyant knows all requests and runs in advance. Of the schedules that [Bounds] makes for
// several attainments, it takes the cheapest whose run reaches the one it aims at. So it can be
// reached by foresight, while [Bounds] estimates the least cost: the optimum lies between the two,
// but for the reasons that are given there.
func clairvoyant() Policy {
	known := &foresights{}
	return Policy{
		Name:    "clairvoyant",
		Summary: "the cheapest of several schedules that were made and tried in advance, for comparison only",
		Knob: Knob{
			Name:    "attainment",
			Default: func(c Case, _ Choice) float64 { return c.Setup.Objective().Percentile },
			Values:  fixed(0.8, 0.85, 0.9, 0.925, 0.95, 0.965, 0.98, 0.99, 0.995, 0.999),
		},
		Choices: eachVariant,
		Initial: func(c Case, s Setting) map[fleet.VariantID]int {
			tried, err := known.of(c, s.Choice)
			if err != nil {
				return nil // Start returns the error
			}
			return tried.pick(s.Knob).initial()
		},
		Start: func(c Case, s Setting, _ *simulation.Fleet) (Controller, error) {
			tried, err := known.of(c, s.Choice)
			if err != nil {
				return nil, err
			}
			return tried.pick(s.Knob), nil
		},
	}
}

// plannedAttainments are those for which schedules are made and tried. Backlogs make runs worse
// than planned, and spare replicas make them better.
func plannedAttainments() []float64 {
	return []float64{0.7, 0.8, 0.85, 0.9, 0.93, 0.95, 0.965, 0.975, 0.985, 0.99, 0.995, 0.998, 0.9995, 1}
}

// trials are the schedules of a case on one variant, with the outcomes of their runs.
type trials []trial

type trial struct {
	schedule
	outcome Outcome
}

// newTrials tries schedules on a case. One whose attainment cannot even be planned is left out; the
// most that can be planned is among them.
func newTrials(c Case, choice Choice) (trials, error) {
	var tried trials
	t := newTable(c, choice)
	for _, planned := range append(plannedAttainments(), t.highest()) {
		plan, _, err := t.scheduleFor(planned)
		if err != nil {
			continue
		}
		s := newSchedule(c, choice.Variants[0], plan)
		p := Policy{
			Name:    "schedule",
			Initial: func(Case, Setting) map[fleet.VariantID]int { return s.initial() },
			Start:   func(Case, Setting, *simulation.Fleet) (Controller, error) { return s, nil },
		}
		outcome, err := Run(context.Background(), c, p, Setting{Choice: choice})
		if err != nil {
			return nil, err
		}
		tried = append(tried, trial{s, outcome})
	}
	return tried, nil
}

// pick returns the cheapest schedule that reached an attainment, or the one with the highest.
func (t trials) pick(attainment float64) schedule {
	best := t[0]
	for _, other := range t[1:] {
		reached, before := min(other.outcome.Attainment, attainment), min(best.outcome.Attainment, attainment)
		if reached > before || reached == before && other.outcome.CostPerHour < best.outcome.CostPerHour {
			best = other
		}
	}
	return best.schedule
}

// foresights keeps the trials of cases: all values of the knob share them.
type foresights struct {
	mu    sync.Mutex
	known map[foresightKey]func() (trials, error)
}

// foresightKey names a case by its requests, which are not changed.
type foresightKey struct {
	first  *simulation.Request
	choice string
	seed   uint64
	setup  string
}

func (f *foresights) of(c Case, choice Choice) (trials, error) {
	key := foresightKey{&c.Requests[0], choice.Name, c.Seed, fmt.Sprint(c.Setup.Name, c.Setup.Objective(), specOf(c.Setup, choice.Variants[0]).Startup)}
	f.mu.Lock()
	if f.known == nil {
		f.known = map[foresightKey]func() (trials, error){}
	}
	if f.known[key] == nil {
		f.known[key] = sync.OnceValues(func() (trials, error) { return newTrials(c, choice) })
	}
	get := f.known[key]
	f.mu.Unlock()
	return get()
}

// schedule carries out a plan.
type schedule struct {
	variant fleet.VariantID
	plan    []int // replicas that are ready, by minute
	lead    float64
	begin   float64 // of the plan, in the fleet's time
}

func newSchedule(c Case, id fleet.VariantID, plan []int) schedule {
	spec := specOf(c.Setup, id)
	return schedule{variant: id, plan: plan, begin: c.WarmUp, lead: spec.Startup * math.Exp(startupMargin*spec.StartupSpread)}
}

// initial returns the replicas at the beginning.
func (s schedule) initial() map[fleet.VariantID]int {
	return map[fleet.VariantID]int{s.variant: s.at(0)}
}

// at returns the replicas at a time: those of this minute, and of minutes for which they have to
// start now.
func (s schedule) at(now float64) int {
	most := 0
	last := min(int((now+s.lead+clairvoyantStep)/minute), len(s.plan)-1)
	for i := min(int(now/minute), last); i <= last; i++ {
		most = max(most, s.plan[i])
	}
	return most
}

// Step implements [Controller].
func (s schedule) Step(_ context.Context, f *simulation.Fleet) (float64, error) {
	return f.Now() + clairvoyantStep, f.Scale(s.variant, s.at(max(0, f.Now()-s.begin)))
}

// Close implements [Controller].
func (schedule) Close() error { return nil }
