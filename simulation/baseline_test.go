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

// highLoad is a run of a model with two variants: ten minutes of low load, ten of high load, twenty
// of low load.
func highLoad(t *testing.T) Run {
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
			Model: chat, Rate: steps(Point{0, 1}, Point{600, 16}, Point{1200, 1}), Until: 2300, Seed: 1,
			Prompt: Lengths{Mean: 1155, P99: 4142, Max: 16000}, Output: Lengths{Mean: 211, P99: 601, Max: 4000},
		}),
		Objectives: []ModelObjective{{chat, fleet.Objective{TTFT: 2 * time.Second, ITL: 100 * time.Millisecond}}},
	}
}

func runBaseline(t *testing.T, run Run, baseline Baseline) Result {
	t.Helper()
	result, err := RunBaseline(run, baseline)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func TestStaticBaselineKeepsItsReplicas(t *testing.T) {
	run := highLoad(t)
	result := runBaseline(t, run, Baseline{Rows: []BaselineRow{{Variant: cheap, Replicas: 12}}})
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

func TestQueueBaselineFollowsTheQueueUpAndDown(t *testing.T) {
	run := highLoad(t)
	baseline := Baseline{Rows: []BaselineRow{{Variant: cheap, Replicas: 1, Queue: &QueueRule{Min: 1, Max: 20}}}}
	result := runBaseline(t, run, baseline)
	if result.PeakReplicas < 4 || result.PeakReplicas > 20 || result.EndReplicas != 1 || result.Reversals == 0 {
		t.Errorf("got %+v", result)
	}
	if result.Served != len(run.Requests) {
		t.Errorf("served %d of %d", result.Served, len(run.Requests))
	}
	if again := runBaseline(t, run, baseline); !reflect.DeepEqual(result, again) {
		t.Errorf("two runs of one seed: %+v and %+v", result, again)
	}
	baseline.Rows[0].Queue.Threshold = 1e6
	if patient := runBaseline(t, run, baseline); patient.PeakReplicas != 1 {
		t.Errorf("a threshold that is never reached: %+v", patient)
	}
}

func TestBaselinesSeeTheSameArrivals(t *testing.T) {
	run := highLoad(t)
	run.Until = 700 // during the high load
	few := runBaseline(t, run, Baseline{Rows: []BaselineRow{{Variant: cheap, Replicas: 1}}})
	many := runBaseline(t, run, Baseline{Rows: []BaselineRow{{Variant: fast, Replicas: 9}}})
	if few.Requests != many.Requests || few.Requests >= len(run.Requests) {
		t.Errorf("%d and %d requests arrived of %d", few.Requests, many.Requests, len(run.Requests))
	}
	if few.Served+few.Lost >= few.Requests || few.Attainment >= float64(few.Served)/float64(few.Requests) || few.Attainment >= many.Attainment {
		t.Errorf("unfinished requests count as attained: %+v and %+v", few, many)
	}
}

func TestRunBaselineReportsInvalidRuns(t *testing.T) {
	run := highLoad(t)
	other := fleet.VariantID{Namespace: "chat", Name: "other"}
	for _, c := range []struct {
		name     string
		baseline Baseline
		until    float64
		want     string
	}{
		{"no rows", Baseline{}, 10, "no variant of model chat/llama-8b has a row"},
		{"unknown", Baseline{Rows: []BaselineRow{{Variant: other}}}, 10, "variant chat/other is not in the fleet"},
		{"twice", Baseline{Rows: []BaselineRow{{Variant: fast}, {Variant: fast}}}, 10, "has two rows"},
		{"negative", Baseline{Rows: []BaselineRow{{Variant: fast, Replicas: -1}}}, 10, "Initial -1"},
		{"to zero", Baseline{Rows: []BaselineRow{{Variant: fast, Replicas: 1, Queue: &QueueRule{Max: 3}}}}, 10, "replicas 0 to 3"},
		{"endless", Baseline{Rows: []BaselineRow{{Variant: fast, Replicas: 1}}}, math.Inf(1), "ends at +Inf"},
	} {
		run.Until = c.until
		if _, err := RunBaseline(run, c.baseline); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestRecorderCountsReversalsOfEachVariant(t *testing.T) {
	run := highLoad(t)
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
	// Fast goes up, up, down, up. Cheap goes up, up, down.
	if got.Reversals != 3 || got.PeakReplicas != 23 || got.EndReplicas != 20 || got.Attainment != 1 {
		t.Errorf("got %+v", got)
	}
}

func TestABaselineIsObservedAtEachScrapeAndAtTheEnd(t *testing.T) {
	run := highLoad(t)
	run.Until = 40
	var seconds []float64
	replicas := 0
	run.Observe = func(f *Fleet) {
		seconds = append(seconds, f.Now())
		for _, s := range f.States() {
			replicas += s.Replicas
		}
	}
	observed := runBaseline(t, run, Baseline{Rows: []BaselineRow{{Variant: cheap, Replicas: 12}}})
	if !reflect.DeepEqual(seconds, []float64{0, 15, 30, 40}) || replicas != 4*12 {
		t.Errorf("observed at %v s, %d replicas in total", seconds, replicas)
	}
	run.Observe = nil
	if !reflect.DeepEqual(observed, runBaseline(t, run, Baseline{Rows: []BaselineRow{{Variant: cheap, Replicas: 12}}})) {
		t.Error("observing changes the result")
	}
}

func TestResultsHaveTheAttainmentOfEachModel(t *testing.T) {
	outcome := func(model fleet.ModelID, ttft float64) Outcome {
		return Outcome{Request: Request{Model: model}, TTFT: ttft}
	}
	other := fleet.ModelID{Name: "other"}
	f := &Fleet{gateways: []*gateway{
		{ModelSpec: ModelSpec{ID: chat}, arrived: 4}, {ModelSpec: ModelSpec{ID: other}, arrived: 1},
		{ModelSpec: ModelSpec{ID: fleet.ModelID{Name: "unused"}}},
	}}
	f.outcomes = []Outcome{outcome(chat, 1), outcome(chat, 3), outcome(other, 3), outcome(chat, 2)}
	got := new(Recorder).Result(f, []ModelObjective{{chat, fleet.Objective{TTFT: 2 * time.Second}}})
	want := []ModelAttainment{{chat, 4, 2, 0, 0.5}, {other, 1, 1, 0, 1}, {fleet.ModelID{Name: "unused"}, 0, 0, 0, 1}}
	if !reflect.DeepEqual(got.Models, want) || got.Attainment != 0.6 {
		t.Errorf("got %v of all, %v", got.Attainment, got.Models)
	}
}

// A run that is stopped amid its load counts as missed only requests that a longer run misses too.
func TestDecidedRequestsAreThoseThatALongerRunDoesNotChange(t *testing.T) {
	for _, replicas := range []int{1, 9} {
		run := highLoad(t)
		row := Baseline{Rows: []BaselineRow{{Variant: cheap, Replicas: replicas}}}
		served := 0 // within the objective, in the end
		run.Observe = func(f *Fleet) {
			served = 0
			for _, o := range f.Outcomes() {
				if o.Arrival <= 900 && o.Meets(run.Objectives[0].Objective) {
					served++
				}
			}
		}
		runBaseline(t, run, row)
		run.Until, run.Observe = 900, nil
		result := runBaseline(t, run, row)
		model, decided := result.Models[0], result.Decided()
		if open := result.Requests - result.Served - result.Lost; model.Undecided == 0 || model.Undecided > open {
			t.Fatalf("%d replicas: %d of %d open requests are undecided", replicas, model.Undecided, open)
		}
		if served < model.Within || served > model.Within+model.Undecided {
			t.Errorf("%d replicas: %d requests meet the objective in the end; at 900 s %d did, and %d were undecided", replicas, served, model.Within, model.Undecided)
		}
		want := float64(model.Within) / float64(result.Requests-result.Undecided)
		if decided.Attainment != want || decided.Models[0].Attainment != want || result.Models[0].Attainment >= want {
			t.Errorf("%d replicas: attained %v and %v of the decided requests, want %v; %v of all", replicas, decided.Attainment, decided.Models[0].Attainment, want, result.Attainment)
		}
		if missed := result.Requests - model.Within - model.Undecided; (replicas == 1) != (missed > 1000) {
			t.Errorf("%d replicas: %d requests are decided and missed", replicas, missed)
		}
	}
}
