package evaluation

import (
	"context"
	"errors"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
)

// SweepOptions are the inputs of a sweep.
type SweepOptions struct {
	Entries  []Entry
	Policies []Policy
	// Knobs replace the settings of policies: these values alone are run, by the policy's name.
	Knobs map[string][]float64
	// Sweep runs all values of the knobs of the other policies, instead of their defaults.
	Sweep bool
	// Seeds is the number of seeds, 1 and up. Default 1.
	Seeds int
	// Jobs is how many runs go on at the same time. Default 1.
	Jobs int
	// Progress is called after each run, one call at a time. Default: not called.
	Progress func(done, all int)
}

// Entry is a load with the fleet that it comes to.
type Entry struct {
	Load  Load
	Setup Setup
}

// task is one run of a sweep.
type task struct {
	newCase func() (Case, error)
	policy  Policy
	setting Setting
}

// Sweep runs every policy on every entry and seed. Outcomes are in the order of the entries,
// policies, settings and seeds, whatever the number of jobs. If the context ends before, they are
// those of the runs that are done, and the error has its cause.
func Sweep(ctx context.Context, o SweepOptions) ([]Outcome, error) {
	tasks, err := o.tasks()
	if err != nil {
		return nil, err
	}
	var (
		progress sync.Mutex
		done     int
		outcomes = make([]*Outcome, len(tasks))
	)
	group, running := errgroup.WithContext(ctx)
	group.SetLimit(max(1, o.Jobs))
	for i := range tasks {
		group.Go(func() error {
			if running.Err() != nil {
				return nil
			}
			outcome, err := tasks[i].run(running)
			tasks[i] = task{} // the case is not needed any more
			if err != nil {
				return err
			}
			progress.Lock()
			defer progress.Unlock()
			outcomes[i] = &outcome
			done++
			if o.Progress != nil {
				o.Progress(done, len(outcomes))
			}
			return nil
		})
	}
	err = group.Wait()
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return found(outcomes), err
}

func found(outcomes []*Outcome) (found []Outcome) {
	for _, outcome := range outcomes {
		if outcome != nil {
			found = append(found, *outcome)
		}
	}
	return found
}

// tasks returns all runs. The settings of an entry are those of its first seed for all seeds, so
// that their outcomes have a mean.
func (o SweepOptions) tasks() ([]task, error) {
	var tasks []task
	for _, entry := range o.Entries {
		var cases []func() (Case, error)
		for seed := range uint64(max(1, o.Seeds)) {
			cases = append(cases, sync.OnceValues(func() (Case, error) { return NewCase(entry.Load, entry.Setup, seed+1) }))
		}
		first, err := cases[0]()
		if err != nil {
			return nil, err
		}
		for _, policy := range o.Policies {
			for _, setting := range o.settings(policy, first) {
				for _, newCase := range cases {
					tasks = append(tasks, task{newCase: newCase, policy: policy, setting: setting})
				}
			}
		}
	}
	return tasks, nil
}

// settings returns the settings of a policy on an entry.
func (o SweepOptions) settings(p Policy, c Case) []Setting {
	values, replaced := o.Knobs[p.Name]
	if !replaced {
		return p.settings(c, o.Sweep)
	}
	var settings []Setting
	for _, usual := range p.settings(c, false) {
		for _, value := range slices.Sorted(slices.Values(values)) {
			settings = append(settings, Setting{Knob: value, Default: value == usual.Knob, Choice: usual.Choice})
		}
	}
	return settings
}

func (t task) run(ctx context.Context) (Outcome, error) {
	c, err := t.newCase()
	if err != nil {
		return Outcome{}, err
	}
	if len(c.Requests) == 0 {
		return Outcome{}, errors.New("load " + c.Load + " has no requests; raise its rate")
	}
	return Run(ctx, c, t.policy, t.setting)
}
