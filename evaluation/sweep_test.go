package evaluation_test

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/wva-project/wva/evaluation"
)

// smallSweep is a sweep of a few seconds.
func smallSweep(t *testing.T, jobs int) evaluation.SweepOptions {
	t.Helper()
	return evaluation.SweepOptions{
		Entries: []evaluation.Entry{
			{Load: mustLoad(t, "step:low=2,high=25,minutes=6"), Setup: newSetup(t, "chat", evaluation.SetupOptions{})},
			{Load: mustLoad(t, "constant:rate=3,minutes=3"), Setup: newSetup(t, "chat-h100", evaluation.SetupOptions{})},
		},
		Policies: []evaluation.Policy{mustPolicy(t, "wva"), mustPolicy(t, "static"), mustPolicy(t, "hpa-rate")},
		Knobs:    map[string][]float64{"static": {2, 1}},
		Seeds:    2, Jobs: jobs,
	}
}

func TestOutcomesAreTheSameWithAnyNumberOfJobs(t *testing.T) {
	t.Parallel()
	var calls []int
	o := smallSweep(t, 1)
	o.Progress = func(done, all int) { calls = append(calls, done, all) }
	first, err := evaluation.Sweep(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	second, err := evaluation.Sweep(context.Background(), smallSweep(t, 5))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(first, second) {
		t.Error("outcomes with one job and with five differ")
	}
	// On two variants: WVA, two numbers of five static mixes, and an HPA on each. On one: one, two
	// and one. Each with two seeds.
	const want = 2 * (1 + 2*5 + 2 + 1 + 2 + 1)
	if len(first) != want || len(calls) != 2*want || calls[2*want-2] != want || calls[1] != want {
		t.Errorf("%d outcomes after progress %v, want %d", len(first), calls, want)
	}
	if first[0].Policy != "wva" || first[0].Seed != 1 || first[1].Seed != 2 || first[0].Attainment == first[1].Attainment && first[0].Requests == first[1].Requests {
		t.Errorf("the first outcomes are %+v and %+v, want WVA with two seeds that differ", first[0], first[1])
	}
	if first[2].Policy != "static" || first[2].Knob != 1 || first[4].Knob != 2 {
		t.Errorf("outcomes 2 and 4 are %+v and %+v, want the knobs of static in order", first[2], first[4])
	}
}

func TestAnInterruptedSweepHasTheOutcomesThatAreDone(t *testing.T) {
	t.Parallel()
	why := errors.New("enough")
	ctx, end := context.WithCancelCause(context.Background())
	o := smallSweep(t, 1)
	o.Entries = o.Entries[1:] // the cheaper one
	o.Progress = func(done, _ int) {
		if done == 3 {
			end(why)
		}
	}
	outcomes, err := evaluation.Sweep(ctx, o)
	if !errors.Is(err, why) || len(outcomes) != 3 {
		t.Errorf("%d outcomes and %v, want three and the cause", len(outcomes), err)
	}
}

func TestALoadWithoutRequestsIsAnError(t *testing.T) {
	t.Parallel()
	o := smallSweep(t, 1)
	o.Entries = []evaluation.Entry{{Load: mustLoad(t, "constant:rate=0.000001,minutes=1"), Setup: newSetup(t, "chat-h100", evaluation.SetupOptions{})}}
	if _, err := evaluation.Sweep(context.Background(), o); err == nil {
		t.Error("no error for a load without requests")
	}
}
