package simulation

import (
	"fmt"
	"hash/fnv"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

var llama = fleet.VariantID{Namespace: chat.Namespace, Name: "llama-l40s"}

// mixed is a fleet of two variants of one model, and of a second model at zero.
func mixed() FleetSpec {
	spec := oneVariant(func(v *VariantSpec) { v.Initial, v.StartupSpread = 2, 0.2 })
	slow := spec.Variants[0]
	slow.Profile.Noise = 0.05
	fast := slow
	fast.ID.Name, fast.Target.Name = "llama-h100", "llama-h100"
	fast.Profile.Iteration, fast.Cost, fast.Initial = 0.006, 8, 1
	small := slow
	small.ID.Name, small.Target.Name, small.Initial = "small", "small", 0
	small.Model = fleet.ModelID{Namespace: chat.Namespace, Name: "small"}
	spec.Variants = []VariantSpec{slow, fast, small}
	return spec
}

func scale(t testing.TB, f *Fleet, name string, replicas int) {
	t.Helper()
	if err := f.Scale(fleet.VariantID{Namespace: chat.Namespace, Name: name}, replicas); err != nil {
		t.Fatal(err)
	}
}

// scalingRun scales a mixed fleet several times. In between it advances in steps.
func scalingRun(t testing.TB, step float64) *Fleet {
	f := newFleet(t, mixed())
	load := seeded(21, 4000, 12, 1500, 200)
	for i := range load {
		if i%50 == 0 {
			load[i].Model.Name = "small"
		}
	}
	offer(t, f, load...)
	for i, scaled := range []struct {
		name     string
		replicas int
	}{
		{"llama-h100", 4}, {"small", 2}, {"llama-l40s", 0}, {"llama-h100", 1}, {"llama-l40s", 5}, {"small", 0},
		{"llama-h100", 0}, {"llama-l40s", 2}, {"small", 1},
	} {
		until := float64(40 * (i + 1))
		for f.Now()+step < until {
			f.Advance(f.Now() + step)
		}
		f.Advance(until)
		scale(t, f, scaled.name, scaled.replicas)
	}
	f.Advance(math.Inf(1))
	return f
}

func TestEveryRequestIsServedOnceOrLostOnce(t *testing.T) {
	f := newFleet(t, mixed())
	offer(t, f, seeded(22, 2000, 20, 1500, 200)...)
	seen := func() int {
		arrived := 0
		for _, n := range f.Tallies() {
			if n.Arrived != n.Served+n.Lost+n.Queued+n.InFlight {
				t.Fatalf("at %v the sum of the tally is wrong: %+v", f.Now(), n)
			}
			arrived += n.Arrived
		}
		inEngines := 0
		for _, s := range f.States() {
			inEngines += s.Running + s.Waiting
		}
		if n := f.Tallies()[0]; n.InFlight != inEngines {
			t.Fatalf("at %v engines have %d requests, the tally says %d", f.Now(), inEngines, n.InFlight)
		}
		return arrived
	}
	for i := range 30 {
		f.Advance(float64(10 * i))
		scale(t, f, "llama-l40s", (7*i)%5)
		scale(t, f, "llama-h100", (3*i)%4)
		seen()
	}
	scale(t, f, "llama-l40s", 1)
	f.Advance(math.Inf(1))
	if got := seen(); got != 2000 || len(f.Outcomes()) != 2000 {
		t.Fatalf("%d arrived, %d ended", got, len(f.Outcomes()))
	}
	ended := map[float64]bool{}
	for _, o := range f.Outcomes() {
		if ended[o.Arrival] {
			t.Fatalf("the request of %v ended twice", o.Arrival)
		}
		ended[o.Arrival] = true
		if o.Loss == Served && (o.TTFT <= 0 || o.End < o.Arrival+o.TTFT) {
			t.Fatalf("impossible times: %+v", o)
		}
	}
	if !slices.IsSortedFunc(f.Outcomes(), func(a, b Outcome) int {
		if a.End < b.End {
			return -1
		}
		return 0
	}) {
		t.Error("outcomes are not in the order in which requests ended")
	}
}

func TestAFleetIsTheSameForASeedInSmallAndLargeSteps(t *testing.T) {
	want := scalingRun(t, 1000)
	if lost := want.Tallies()[0].Lost + want.Tallies()[1].Lost; lost != 0 {
		t.Errorf("%d requests were lost", lost)
	}
	for _, step := range []float64{1000, 15, 0.37} {
		got := scalingRun(t, step)
		if !reflect.DeepEqual(got.Outcomes(), want.Outcomes()) || !reflect.DeepEqual(got.Series(), want.Series()) ||
			!reflect.DeepEqual(got.Expenses(), want.Expenses()) {
			t.Errorf("steps of %v s give another run", step)
		}
	}
	spec := mixed()
	slices.Reverse(spec.Variants)
	if !reflect.DeepEqual(newFleet(t, spec).Series(), newFleet(t, mixed()).Series()) {
		t.Error("the order of variants in the spec matters")
	}
}

// TestAFleetIsTheSameOnEveryMachine compares a run with the bits of another machine. A change of
// the engine changes them.
func TestAFleetIsTheSameOnEveryMachine(t *testing.T) {
	f := newFleet(t, mixed())
	load, err := Generate(Stream{
		Model: chat, Rate: constant(12), Burstiness: 2, Until: 200, Seed: 3,
		Prompt: Lengths{Mean: 800, P99: 4000}, Output: Lengths{Mean: 150, P99: 600},
	})
	if err != nil {
		t.Fatal(err)
	}
	offer(t, f, load...)
	f.Advance(60)
	scale(t, f, "llama-h100", 3)
	f.Advance(math.Inf(1))
	sum := fnv.New64a()
	for _, o := range f.Outcomes() {
		fmt.Fprintf(sum, "%x %x %x\n", o.End, o.TTFT, o.ITL)
	}
	const want = 0xc4e48a79cc39ee5e
	if got := sum.Sum64(); got != want {
		t.Errorf("got %#x, want %#x", got, uint64(want))
	}
}

func TestAnotherSeedIsAnotherRun(t *testing.T) {
	spec := mixed()
	spec.Seed++
	a, b := newFleet(t, mixed()), newFleet(t, spec)
	for _, f := range []*Fleet{a, b} {
		offer(t, f, seeded(1, 50, 5, 500, 50)...)
		f.Advance(math.Inf(1))
	}
	if reflect.DeepEqual(a.Outcomes(), b.Outcomes()) {
		t.Error("the seed has no effect")
	}
}

func TestADrainLosesNothingWithinItsGrace(t *testing.T) {
	f := newFleet(t, oneVariant(func(v *VariantSpec) { v.Initial, v.MaxSequences = 2, 4 }))
	offer(t, f, seeded(31, 60, 30, 500, 100)...)
	f.Advance(2)
	before := f.States()[0]
	if before.Waiting < 10 {
		t.Fatalf("only %d requests wait: the case is too easy", before.Waiting)
	}
	scale(t, f, "llama-l40s", 1)
	if s := f.States()[0]; s.Draining != 1 || s.Ready != 1 || s.Running != before.Running {
		t.Errorf("after the removal: %+v", s)
	}
	leaving := f.variants[0].pods[1]
	if len(leaving.engine.waiting) != 0 || leaving.engine.metrics.aborted == 0 {
		t.Errorf("%d requests still wait at the draining replica, %d moved to another",
			len(leaving.engine.waiting), leaving.engine.metrics.aborted)
	}
	pods := f.Workloads()[0].Pods
	if !pods[1].Ready || !pods[1].Terminating || pods[0].Terminating {
		t.Errorf("pods are shown as %+v", pods)
	}
	f.Advance(math.Inf(1))
	if n := f.Tallies()[0]; n.Served != 60 || n.Lost != 0 {
		t.Errorf("%+v", n)
	}
	if s := f.States()[0]; s.Draining != 0 || s.Ready != 1 {
		t.Errorf("at the end: %+v", s)
	}
}

func TestTheLastReplicaFinishesItsRequestsDuringTheDrain(t *testing.T) {
	f := newFleet(t, oneVariant(func(v *VariantSpec) { v.MaxSequences = 2 }))
	offer(t, f, seeded(32, 20, 20, 100, 50)...)
	f.Advance(1)
	scale(t, f, "llama-l40s", 0)
	f.Advance(60)
	n := f.Tallies()[0]
	if n.InFlight != 0 || n.Lost != 0 || n.Served == 0 || n.Queued != 20-n.Served {
		t.Errorf("%+v", n)
	}
	if len(f.Workloads()[0].Pods) != 0 {
		t.Error("the replica still exists")
	}
}

func TestRequestsThatOutlastTheGraceAreLost(t *testing.T) {
	f := newFleet(t, oneVariant(func(v *VariantSpec) { v.Grace, v.MaxSequences = 1, 1 }))
	for i := range 3 {
		offer(t, f, Request{Arrival: float64(i) / 10, Model: chat, Prompt: 10, Output: 200})
	}
	f.Advance(0.5)
	scale(t, f, "llama-l40s", 0)
	f.Advance(1.4)
	if n := f.Tallies()[0]; n.Lost != 0 || n.InFlight != 3 {
		t.Errorf("within the grace: %+v", n)
	}
	f.Advance(1.5)
	if n := f.Tallies()[0]; n.Lost != 3 || n.InFlight != 0 {
		t.Errorf("after the grace: %+v", n)
	}
	if o := f.Outcomes()[0]; o.Loss != CutOff || o.End != 1.5 || o.Meets(fleet.Objective{}) {
		t.Errorf("%+v", o)
	}
	if got := f.Expenses()[0].ReplicaSeconds; got != 1.5 {
		t.Errorf("%v replica-seconds", got)
	}
	wantValue(t, f.Series()[0], 0, "inference_objective_running_requests")
}

func TestAModelAtZeroQueuesUntilAReplicaIsReady(t *testing.T) {
	f := newFleet(t, oneVariant(func(v *VariantSpec) { v.Initial = 0 }))
	offer(t, f, Request{Arrival: 5, Model: chat, Prompt: 100, Output: 10}, Request{Arrival: 6, Model: chat, Prompt: 100, Output: 10})
	f.Advance(10)
	if n := f.Tallies()[0]; n.Queued != 2 || n.InFlight != 0 {
		t.Fatalf("%+v", n)
	}
	scale(t, f, "llama-l40s", 1)
	f.Advance(69.9)
	if s, n := f.States()[0], f.Tallies()[0]; s.Loading != 1 || n.Queued != 2 {
		t.Errorf("while it loads: %+v, %+v", s, n)
	}
	f.Advance(70)
	if s, n := f.States()[0], f.Tallies()[0]; s.Ready != 1 || n.Queued != 0 || n.InFlight != 2 {
		t.Errorf("when it is ready: %+v, %+v", s, n)
	}
	f.Advance(100)
	if o := f.Outcomes()[0]; o.Loss != Served || o.TTFT < 65 || o.TTFT > 65.1 {
		t.Errorf("the first request: %+v", o)
	}
	// the engine's own view
	wantValue(t, f.Series()[0], 2, "vllm:time_to_first_token_seconds_bucket", "le=0.1")
}

func TestReplicasWithoutAcceleratorsStayPending(t *testing.T) {
	f := newFleet(t, limited(2, nil))
	scale(t, f, "llama-l40s", 4)
	f.Advance(100)
	if s := f.States()[0]; s.Ready != 2 || s.Pending != 2 || s.Replicas != 4 {
		t.Fatalf("%+v", s)
	}
	if pod := f.Workloads()[0].Pods[3]; pod.Waiting != "Unschedulable" || pod.Ready {
		t.Errorf("%+v", pod)
	}
	if got := f.Expenses()[0]; got.ReplicaSeconds != 200 || got.PendingSeconds != 200 || got.GPUSeconds != 200 || math.Abs(got.Cost-200./3600*2) > 1e-12 {
		t.Errorf("pending replicas cost: %+v", got)
	}
	scale(t, f, "llama-l40s", 3)
	if s := f.States()[0]; s.Ready != 2 || s.Pending != 1 {
		t.Errorf("the pending replica is not removed first: %+v", s)
	}
}

func TestAPendingReplicaIsScheduledAfterTheDrainOfAnother(t *testing.T) {
	f := newFleet(t, limited(1, nil))
	offer(t, f, Request{Arrival: 0, Model: chat, Prompt: 10, Output: 100})
	f.Advance(1)
	scale(t, f, "llama-l40s", 0)
	scale(t, f, "llama-l40s", 1)
	f.Advance(1.5)
	if s := f.States()[0]; s.Draining != 1 || s.Pending != 1 {
		t.Fatalf("during the drain: %+v", s)
	}
	f.Advance(4)
	if s := f.States()[0]; s.Draining != 0 || s.Loading != 1 {
		t.Errorf("after the drain: %+v", s)
	}
	if got := f.Expenses()[0].ReplicaSeconds; math.Abs(got-4) > 1e-9 {
		t.Errorf("one GPU was allocated for %v s of 4", got)
	}
}

func TestAcceleratorsAreAllocatedToALoadingReplica(t *testing.T) {
	f := newFleet(t, limited(8, func(v *VariantSpec) { v.GPUs = 4 }))
	scale(t, f, "llama-l40s", 2)
	scale(t, f, "llama-l40s", 3)
	f.Advance(30)
	if s := f.States()[0]; s.Loading != 1 || s.Pending != 1 {
		t.Errorf("%+v", s)
	}
	if got := f.Expenses()[0]; got.ReplicaSeconds != 60 || got.GPUSeconds != 240 {
		t.Errorf("%+v", got)
	}
}

// TestADrainingReplicaKeepsRequestsThatHaveATokenAlready drains replicas with small caches. Of the
// sequences that they preempted, those with a token cannot move.
func TestADrainingReplicaKeepsRequestsThatHaveATokenAlready(t *testing.T) {
	kept, moved := 0, 0
	for seed := range uint64(40) {
		f := newFleet(t, oneVariant(func(v *VariantSpec) { v.Initial, v.KVTokens, v.MaxBatchedTokens, v.MaxSequences = 2, 1500, 64, 32 }))
		offer(t, f, seeded(seed, 60, 10, 700, 300)...)
		f.Advance(4)
		leaving := f.variants[0].pods[1]
		started := 0
		var fresh []*sequence // preempted before their first token
		for _, s := range leaving.engine.waiting {
			if s.started() {
				started++
			} else if s.order > 0 {
				fresh = append(fresh, s)
			}
		}
		f.Advance(4)
		scale(t, f, "llama-l40s", 1)
		if got := len(leaving.engine.waiting); got != started {
			t.Fatalf("seed %d: %d requests stay in the queue, %d have begun", seed, got, started)
		}
		kept, moved = kept+started, moved+len(fresh)
		f.Advance(math.Inf(1))
		for _, s := range fresh {
			if s.scheduled < 4 {
				t.Fatalf("seed %d: a request that moved at 4 s was scheduled at %v", seed, s.scheduled)
			}
		}
		if n := f.Tallies()[0]; n.Served != 60 {
			t.Fatalf("seed %d: %+v", seed, n)
		}
	}
	if kept == 0 || moved == 0 {
		t.Errorf("%d were kept and %d preempted prompts moved: the cases are too easy", kept, moved)
	}
}

func TestRoundRobinContinuesAfterTheRemovalOfAReplica(t *testing.T) {
	spec := oneVariant(func(v *VariantSpec) { v.Initial = 3 })
	spec.Routing = RoundRobin
	f := newFleet(t, spec)
	offer(t, f, seeded(42, 2, 10, 1, 1)...)
	f.Advance(5)
	scale(t, f, "llama-l40s", 2) // the third, which is next, is removed
	offer(t, f, Request{Arrival: 6, Model: chat, Prompt: 1, Output: 1})
	f.Advance(7)
	if got := f.variants[0].pods[0].engine.metrics.served; got != 2 {
		t.Errorf("the first replica served %d", got)
	}
}

func TestSurplusReplicasAreRemovedInTheOrderOfAReplicaSet(t *testing.T) {
	f := newFleet(t, limited(4, func(v *VariantSpec) { v.Startup = 10 }))
	f.Advance(1)
	scale(t, f, "llama-l40s", 2) // llama-l40s-1 is ready at 11
	f.Advance(20)
	scale(t, f, "llama-l40s", 6) // 2 and 3 load, 4 and 5 are pending
	var gone []string
	for left := 5; left > 0; left-- {
		before := names(f)
		scale(t, f, "llama-l40s", left)
		for _, name := range before {
			if !slices.Contains(names(f), name) {
				gone = append(gone, name[len(name)-1:])
			}
		}
	}
	if got := strings.Join(gone, ""); got != "54321" {
		t.Errorf("removed in the order %s", got)
	}
}

func names(f *Fleet) []string {
	var names []string
	for _, p := range f.Workloads()[0].Pods {
		names = append(names, p.Name)
	}
	return names
}

func TestStartUpTimesSpreadAroundTheirMean(t *testing.T) {
	f := newFleet(t, oneVariant(func(v *VariantSpec) { v.Initial, v.Startup, v.StartupSpread = 0, 60, 0.3 }))
	scale(t, f, "llama-l40s", 2000)
	f.Advance(1000)
	sum, early := 0.0, 0
	for _, p := range f.variants[0].pods {
		sum += p.readyAt
		if p.readyAt < 50 {
			early++
		}
	}
	if mean := sum / 2000; math.Abs(mean-60) > 1 || early < 300 {
		t.Errorf("mean %v s, %d of 2000 below 50 s", mean, early)
	}
}

func TestWorkloadsShowWholeSecondsOfTheEpoch(t *testing.T) {
	f := newFleet(t, oneVariant(func(v *VariantSpec) { v.Initial, v.StartupSpread = 0, 0.1 }))
	f.Advance(12.7)
	scale(t, f, "llama-l40s", 1)
	f.Advance(300)
	w := f.Workloads()[0]
	epoch := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	pod := w.Pods[0]
	if w.ID.Name != "llama-l40s" || w.Replicas != 1 || w.Startup != time.Minute || w.MaxSequences != 256 ||
		!pod.Created.Equal(epoch.Add(12*time.Second)) || !pod.Ready || pod.ReadyAt.Nanosecond() != 0 ||
		pod.ReadyAt.Sub(epoch) < 50*time.Second {
		t.Errorf("%+v", w)
	}
}

func TestGatewayChoosesTheReplicaWithTheFewestRequests(t *testing.T) {
	for _, routing := range []Routing{LeastRequests, RoundRobin} {
		spec := mixed()
		spec.Routing = routing
		f := newFleet(t, spec)
		offer(t, f, seeded(41, 3000, 30, 100, 200)...)
		f.Advance(60)
		served := map[string]int{}
		for _, v := range f.variants {
			for _, p := range v.pods {
				served[v.ID.Name] += p.engine.metrics.served
			}
		}
		perSlow, perFast := float64(served["llama-l40s"])/2, float64(served["llama-h100"])
		if fair := perFast/perSlow < 1.1; fair != (routing == RoundRobin) {
			t.Errorf("routing %d: a fast replica served %v, a slow one %v", routing, perFast, perSlow)
		}
	}
}

func TestGatewayChoosesTheReplicaWithTheEmptiestCache(t *testing.T) {
	spec := mixed()
	spec.Routing = LeastKV
	f := newFleet(t, spec)
	offer(t, f, seeded(43, 2500, 40, 800, 300)...)
	f.Advance(50)
	var least, most float64 = 1, 0
	for _, v := range f.variants {
		for _, p := range v.pods {
			least, most = min(least, p.engine.claimed()), max(most, p.engine.claimed())
		}
	}
	if most < 0.1 || most-least > 0.1 {
		t.Errorf("the caches of unequal replicas are %v to %v full, want them alike", least, most)
	}
}

func TestAnIdleFleetServesInTurn(t *testing.T) {
	f := newFleet(t, oneVariant(func(v *VariantSpec) { v.Initial = 3 }))
	for i := range 9 {
		offer(t, f, Request{Arrival: float64(10 * i), Model: chat, Prompt: 10, Output: 2})
	}
	f.Advance(100)
	for _, p := range f.variants[0].pods {
		if p.engine.metrics.served != 3 {
			t.Errorf("%s served %d of 9", p.name, p.engine.metrics.served)
		}
	}
}

func TestGatewayLosesRequestsBeyondItsLimits(t *testing.T) {
	spec := oneVariant(func(v *VariantSpec) { v.Initial, v.KVTokens = 0, 1600 })
	spec.Models = []ModelSpec{{ID: chat, MaxQueue: 2, Patience: 30}}
	f := newFleet(t, spec)
	for i, prompt := range []int{1600, 1601, 10, 10} {
		offer(t, f, Request{Arrival: float64(i), Model: chat, Prompt: prompt, Output: 1})
	}
	f.Advance(29.9)
	f.Advance(100)
	var got []string
	for _, o := range f.Outcomes() {
		got = append(got, fmt.Sprintf("%v at %v", o.Loss, o.End))
	}
	want := []string{"too long at 1", "queue full at 3", "timed out at 30", "timed out at 32"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestALongRequestWaitsForALargeReplicaAndBlocksNoOther(t *testing.T) {
	spec := oneVariant(func(v *VariantSpec) { v.KVTokens = 160 })
	large := spec.Variants[0]
	large.ID.Name, large.Target.Name, large.KVTokens, large.Initial = "large", "large", 1600, 0
	spec.Variants = append(spec.Variants, large)
	f := newFleet(t, spec)
	offer(t, f,
		Request{Arrival: 0, Model: chat, Prompt: 1000, Output: 1},
		Request{Arrival: 1, Model: chat, Prompt: 100, Output: 1})
	f.Advance(10)
	if n := f.Tallies()[0]; n.Queued != 1 || n.Served != 1 {
		t.Errorf("%+v", n)
	}
	scale(t, f, "large", 1)
	f.Advance(100)
	if n := f.Tallies()[0]; n.Served != 2 {
		t.Errorf("%+v", n)
	}
}

func TestAttainmentCountsUnfinishedRequestsAsMissed(t *testing.T) {
	f := newFleet(t, oneVariant(nil))
	if got := f.Attainment(chat, fleet.Objective{}); got != 1 {
		t.Errorf("without requests: %v", got)
	}
	offer(t, f,
		Request{Arrival: 0, Model: chat, Prompt: 10, Output: 10},
		// more than half a second of prefill
		Request{Arrival: 10, Model: chat, Prompt: 10_000, Output: 10},
		Request{Arrival: 20, Model: chat, Prompt: 10, Output: 10},
		Request{Arrival: 30, Model: chat, Prompt: 10, Output: 1000})
	f.Advance(31)
	for _, c := range []struct {
		objective fleet.Objective
		want      float64
	}{
		{fleet.Objective{}, 0.75},
		{fleet.Objective{TTFT: 500 * time.Millisecond}, 0.5},
		{fleet.Objective{ITL: time.Millisecond}, 0},
	} {
		if got := f.Attainment(chat, c.objective); got != c.want {
			t.Errorf("%+v: got %v, want %v", c.objective, got, c.want)
		}
	}
}

func TestRecentIsThe95thPercentileOfTheLastRequests(t *testing.T) {
	f := newFleet(t, oneVariant(nil))
	for i := range 40 {
		prompt := 10
		if i < 20 || i == 39 {
			prompt = 5000
		}
		offer(t, f, Request{Arrival: float64(i), Model: chat, Prompt: prompt, Output: 1})
	}
	f.Advance(40)
	if got := f.Recent(chat, 20); got.Served != 20 || got.TTFT > 0.1 {
		t.Errorf("the one slow request of 20 is above the percentile: %+v", got)
	}
	if got := f.Recent(chat, 100); got.Served != 40 || got.TTFT < 0.1 {
		t.Errorf("%+v", got)
	}
	if got := f.Recent(chat, 0); got != (Recent{}) {
		t.Errorf("%+v", got)
	}
}

func TestModelsAreMeasuredSeparately(t *testing.T) {
	spec := mixed()
	spec.Variants[2].Initial = 1
	f := newFleet(t, spec)
	small := fleet.ModelID{Namespace: chat.Namespace, Name: "small"}
	offer(t, f,
		Request{Arrival: 0, Model: chat, Prompt: 10, Output: 1},
		Request{Arrival: 1, Model: small, Prompt: 10_000, Output: 1},
		Request{Arrival: 2, Model: small, Prompt: 10_000, Output: 1})
	f.Advance(10)
	within := fleet.Objective{TTFT: 200 * time.Millisecond}
	if a, b := f.Attainment(chat, within), f.Attainment(small, within); a != 1 || b != 0 {
		t.Errorf("attainment %v and %v", a, b)
	}
	if a, b := f.Recent(chat, 10), f.Recent(small, 10); a.Served != 1 || a.TTFT > 0.2 || b.Served != 2 || b.TTFT < 0.2 {
		t.Errorf("%+v and %+v", a, b)
	}
}

func TestNewFleetReportsAllValidationErrors(t *testing.T) {
	spec := mixed()
	spec.Variants[0].MaxBatchedTokens = 100
	spec.Variants[0].Profile.Iteration = 0
	spec.Variants[1].Target = spec.Variants[0].Target
	spec.Variants[1].ServedName = "other"
	spec.Variants[2].PrefixHits = 1
	spec.Variants = append(spec.Variants, spec.Variants[2])
	spec.Models = []ModelSpec{{ID: fleet.ModelID{Namespace: "x", Name: "y"}, MaxQueue: -1, Patience: math.NaN()}}
	spec.Routing = 9
	_, err := NewFleet(spec)
	if err == nil {
		t.Fatal("no error")
	}
	for _, part := range []string{
		"MaxBatchedTokens 100 is below MaxSequences 256", "an iteration takes 0 s", "belongs to variant", "is served as",
		"PrefixHits 1", "is defined twice", "has no variant", "MaxQueue -1", "Patience NaN", "routing 9",
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in: %v", part, err)
		}
	}
}

func TestOfferRejectsInvalidRequests(t *testing.T) {
	f := newFleet(t, oneVariant(nil))
	f.Advance(10)
	offer(t, f, Request{Arrival: 20, Model: chat, Prompt: 1, Output: 1})
	for _, r := range []Request{
		{Arrival: 19, Model: chat, Prompt: 1, Output: 1},
		{Arrival: math.NaN(), Model: chat, Prompt: 1, Output: 1},
		{Arrival: 30, Model: fleet.ModelID{Name: "none"}, Prompt: 1, Output: 1},
		{Arrival: 30, Model: chat, Prompt: 0, Output: 1},
		{Arrival: 30, Model: chat, Prompt: 1, Output: 0},
	} {
		if err := f.Offer([]Request{r}); err == nil {
			t.Errorf("%+v was accepted", r)
		}
	}
	f.Advance(5)
	if f.Now() != 10 {
		t.Errorf("the time is %v again", f.Now())
	}
}

func TestScaleRejectsInvalidReplicasAndVariants(t *testing.T) {
	f := newFleet(t, oneVariant(nil))
	if err := f.Scale(llama, -1); err == nil {
		t.Error("-1 replicas were accepted")
	}
	if err := f.Scale(fleet.VariantID{Name: "none"}, 1); err == nil {
		t.Error("an unknown variant was scaled")
	}
}

// TestCapacityAgreesWithAnotherEngine is a rough check against another engine with the same rules,
// which found these capacities of one replica on the lengths of a trace. The objective is met at 90
// % of them, and missed at 110 %.
func TestCapacityAgreesWithAnotherEngine(t *testing.T) {
	lengths := azure(t)
	for _, c := range []struct {
		accelerator fleet.Accelerator
		rate        float64
		itl         time.Duration
	}{
		{"H100", 21.9, 25 * time.Millisecond}, {"A100", 6.64, 40 * time.Millisecond}, {"L40S", 4.59, 60 * time.Millisecond},
	} {
		profile, _ := ProfileOf("Llama-3.1-8B", c.accelerator)
		profile.Noise, profile.PerRequest = 0, 0
		for share, within := range map[float64]bool{0.9: true, 1.1: false} {
			f := newFleet(t, oneVariant(func(v *VariantSpec) { v.Profile = profile }))
			requests := seeded(51, 10_000, share*c.rate, 1, 1)
			for i, j := range newDraws(1, 1).source.Perm(len(lengths))[:len(requests)] {
				requests[i].Prompt, requests[i].Output = lengths[j].Prompt, lengths[j].Output
			}
			offer(t, f, requests...)
			f.Advance(math.Inf(1))
			got := f.Attainment(chat, fleet.Objective{TTFT: time.Second, ITL: c.itl})
			if (got >= 0.95) != within {
				t.Errorf("%s at %v of its rate: attainment %v", c.accelerator, share, got)
			}
		}
	}
}

// BenchmarkHour simulates 77,000 requests of an hour on ten replicas.
func BenchmarkHour(b *testing.B) {
	profile, _ := ProfileOf("Llama-3.1-8B", "L40S")
	spec := oneVariant(func(v *VariantSpec) { v.Profile, v.Initial = profile, 10 })
	load, err := Generate(Stream{
		Model: chat, Rate: constant(21.4), Burstiness: 2, Until: 3600, Seed: 1,
		Prompt: Lengths{Mean: 1155, P99: 4142}, Output: Lengths{Mean: 211, P99: 601},
	})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		f := newFleet(b, spec)
		offer(b, f, load...)
		for t := 15.0; t <= 3600; t += 15 {
			f.Advance(t)
			f.Series()
		}
		f.Advance(math.Inf(1))
	}
	b.ReportMetric(float64(len(load)*b.N)/b.Elapsed().Seconds(), "requests/s")
}
