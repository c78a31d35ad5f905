package simulation

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

var (
	fast  = fleet.VariantID{Namespace: "chat", Name: "llama-8b-h100"}
	cheap = fleet.VariantID{Namespace: "chat", Name: "llama-8b-l40s"}
)

// swing is a run of a model with two variants: ten minutes of calm, ten of load, twenty of calm.
func swing(t *testing.T) Run {
	t.Helper()
	spec := FleetSpec{Seed: 1}
	for _, v := range []struct {
		id          fleet.VariantID
		accelerator fleet.Accelerator
		cost        float64
	}{{fast, "H100", 10}, {cheap, "L40S", 3}} {
		profile, ok := ProfileOf("Llama-3.1-8B", v.accelerator)
		if !ok {
			t.Fatalf("no profile of %s", v.accelerator)
		}
		spec.Variants = append(spec.Variants, VariantSpec{
			ID: v.id, Model: chat, Profile: profile, Cost: v.cost, MaxSequences: 64, Initial: 9,
			Target: fleet.TargetID{Namespace: v.id.Namespace, APIVersion: "apps/v1", Kind: "Deployment", Name: v.id.Name},
		})
	}
	return Run{
		Fleet: spec,
		Until: 2400,
		Requests: generate(t, Stream{
			Model: chat, Rate: Steps(Point{0, 1}, Point{600, 16}, Point{1200, 1}), Until: 2300, Seed: 1,
			Prompt: Lengths{Mean: 1155, P99: 4142, Max: 16000}, Output: Lengths{Mean: 211, P99: 601, Max: 4000},
		}),
		Promises: []Promise{{chat, fleet.Objective{TTFT: 2 * time.Second, ITL: 100 * time.Millisecond}}},
	}
}

func runRival(t *testing.T, run Run, rival Rival) Result {
	t.Helper()
	result, err := RunRival(run, rival)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func TestStaticRivalKeepsItsReplicas(t *testing.T) {
	run := swing(t)
	result := runRival(t, run, Rival{Rows: []RivalRow{{Variant: cheap, Replicas: 12}}})
	if result.PeakReplicas != 12 || result.EndReplicas != 12 || result.Reversals != 0 {
		t.Errorf("got %+v", result)
	}
	if result.Requests != len(run.Requests) || result.Served != result.Requests || result.Lost != 0 {
		t.Errorf("of %d requests: %+v", len(run.Requests), result)
	}
	near(t, "cost", result.Cost, 12*3*2.0/3, 1e-9)
	near(t, "GPU-hours", result.Expenses[1].GPUSeconds/3600, 8, 1e-9)
	if result.Expenses[0].Variant != fast || result.Expenses[0].Cost != 0 {
		t.Errorf("the variant without a row cost %+v", result.Expenses[0])
	}
}

func TestQueueRivalFollowsTheQueueUpAndDown(t *testing.T) {
	run := swing(t)
	rival := Rival{Rows: []RivalRow{{Variant: cheap, Replicas: 1, Queue: &QueueRule{Min: 1, Max: 20}}}}
	result := runRival(t, run, rival)
	if result.PeakReplicas < 4 || result.PeakReplicas > 20 || result.EndReplicas != 1 || result.Reversals == 0 {
		t.Errorf("got %+v", result)
	}
	if result.Served != len(run.Requests) {
		t.Errorf("served %d of %d", result.Served, len(run.Requests))
	}
	if again := runRival(t, run, rival); !reflect.DeepEqual(result, again) {
		t.Errorf("two runs of one seed: %+v and %+v", result, again)
	}
	rival.Rows[0].Queue.Threshold = 1e6
	if patient := runRival(t, run, rival); patient.PeakReplicas != 1 {
		t.Errorf("a threshold that is never reached: %+v", patient)
	}
}

func TestRivalsSeeTheSameArrivals(t *testing.T) {
	run := swing(t)
	run.Until = 700 // in the middle of the load
	few := runRival(t, run, Rival{Rows: []RivalRow{{Variant: cheap, Replicas: 1}}})
	many := runRival(t, run, Rival{Rows: []RivalRow{{Variant: fast, Replicas: 9}}})
	if few.Requests != many.Requests || few.Requests >= len(run.Requests) {
		t.Errorf("%d and %d requests arrived of %d", few.Requests, many.Requests, len(run.Requests))
	}
	if few.Served+few.Lost >= few.Requests || few.Attainment >= float64(few.Served)/float64(few.Requests) || few.Attainment >= many.Attainment {
		t.Errorf("what is not finished counts as attained: %+v and %+v", few, many)
	}
}

func TestStaticPeakIsTheLeastThatKeepsThePromise(t *testing.T) {
	run := swing(t)
	rival, err := StaticPeak(run, []fleet.VariantID{cheap}, 0.95, 16)
	if err != nil {
		t.Fatal(err)
	}
	if result := runRival(t, run, rival); result.Attainment < 0.95 {
		t.Errorf("%d replicas attain %v", rival.Rows[0].Replicas, result.Attainment)
	}
	fewer := Rival{Rows: []RivalRow{{Variant: cheap, Replicas: rival.Rows[0].Replicas - 1}}}
	if result := runRival(t, run, fewer); result.Attainment >= 0.95 {
		t.Errorf("%d replicas attain %v already", fewer.Rows[0].Replicas, result.Attainment)
	}
	rival, err = StaticPeak(run, []fleet.VariantID{cheap}, 1, 2)
	if err != nil || rival.Rows[0].Replicas != 2 {
		t.Errorf("where no number is enough: %+v, %v", rival, err)
	}
}

func TestRunRivalReportsWhatCannotBeRun(t *testing.T) {
	run := swing(t)
	other := fleet.VariantID{Namespace: "chat", Name: "other"}
	for _, c := range []struct {
		name  string
		rival Rival
		until float64
		want  string
	}{
		{"no rows", Rival{}, 10, "no variant of model chat/llama-8b has a row"},
		{"unknown", Rival{Rows: []RivalRow{{Variant: other}}}, 10, "variant chat/other is not in the fleet"},
		{"twice", Rival{Rows: []RivalRow{{Variant: fast}, {Variant: fast}}}, 10, "has two rows"},
		{"negative", Rival{Rows: []RivalRow{{Variant: fast, Replicas: -1}}}, 10, "Initial -1"},
		{"to zero", Rival{Rows: []RivalRow{{Variant: fast, Replicas: 1, Queue: &QueueRule{Max: 3}}}}, 10, "replicas 0 to 3"},
		{"endless", Rival{Rows: []RivalRow{{Variant: fast, Replicas: 1}}}, math.Inf(1), "ends at +Inf"},
	} {
		run.Until = c.until
		if _, err := RunRival(run, c.rival); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if _, err := StaticPeak(run, []fleet.VariantID{other}, 0.9, 3); err == nil {
		t.Error("a static fleet of an unknown variant was sized")
	}
}

func TestRecorderCountsReversalsOfEachVariant(t *testing.T) {
	run := swing(t)
	f, err := NewFleet(run.Fleet)
	if err != nil {
		t.Fatal(err)
	}
	recorder := &Recorder{}
	recorder.Observe(f)
	for second, step := range []struct{ fast, cheap int }{{9, 9}, {9, 10}, {10, 10}, {10, 11}, {12, 11}, {11, 11}, {11, 8}, {11, 8}, {12, 8}} {
		f.Advance(float64(second))
		if err := errors.Join(f.Scale(fast, step.fast), f.Scale(cheap, step.cheap)); err != nil {
			t.Fatal(err)
		}
		recorder.Observe(f)
	}
	got := recorder.Result(f, nil)
	// Fast goes up, up, down, up; cheap goes up, up, down.
	if got.Reversals != 3 || got.PeakReplicas != 23 || got.EndReplicas != 20 || got.Attainment != 1 {
		t.Errorf("got %+v", got)
	}
}
