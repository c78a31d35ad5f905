package analyzer

import (
	"math"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

// replicas returns n ready replicas that all report the same.
func replicas(n int, r fleet.Usage) []*fleet.Usage {
	all := make([]*fleet.Usage, n)
	for i := range all {
		all[i] = &r
	}
	return all
}

// busy returns the metrics of a replica with running and waiting requests, a share of its KV cache
// in use, and a rate of requests.
func busy(running, waiting, kv, rate float64) fleet.Usage {
	return fleet.Usage{
		Running: fleet.Observed(running), Waiting: fleet.Observed(waiting), KV: fleet.Observed(kv), KVTokens: fleet.Observed(200_000),
		FirstTokens: fleet.Observed(rate), MeanRate: fleet.Observed(rate), WaitingGrowth: fleet.Observed(0), Scrapes: 4,
	}
}

// demand returns a model whose demand is the rate that its replicas serve, plus a backlog to drain
// within a minute.
func demand(variants ...Variant) Model {
	m := Model{Variants: variants}
	var rate float64
	for _, v := range variants {
		for _, r := range v.Replicas {
			rate += r.FirstTokens.Or(0) + r.Waiting.Or(0)/60
			m.InFlight += r.Running.Or(0) + r.Waiting.Or(0)
		}
	}
	m.Rate = fleet.Observed(rate)
	return m
}

// needed returns the replicas of a variant that can serve all of the demand.
func needed(t *testing.T, c Capacity) int {
	t.Helper()
	share, known := c.Share.Known()
	if !known || share <= 0 {
		t.Fatalf("the capacity is %+v, want a share", c)
	}
	return int(math.Ceil(1/share - 1e-9))
}

func TestSaturatedReplicasCountWithTheIdleOnes(t *testing.T) {
	for _, test := range []struct {
		name            string
		saturated, idle int
		waiting         float64
		atLeast, atMost int
	}{
		{"8 saturated and 2 idle do not scale down", 8, 2, 6, 10, 14},
		{"98 saturated and 2 idle do not scale down", 98, 2, 6, 100, 140},
		{"10 saturated with 400 queued each scale up by far more than 1", 10, 0, 400, 20, 60},
		{"10 idle scale down until each serves twice as much", 0, 10, 0, 5, 5},
	} {
		t.Run(test.name, func(t *testing.T) {
			all := append(replicas(test.saturated, busy(100, test.waiting, 0.95, 6)), replicas(test.idle, busy(10, 0, 0.1, 0.7))...)
			c := Analyze(demand(Variant{Replicas: all}), Options{})[0]
			if n := needed(t, c); n < test.atLeast || n > test.atMost {
				t.Errorf("needs %d replicas, want %d to %d", n, test.atLeast, test.atMost)
			}
			if c.Saturated != test.saturated {
				t.Errorf("%d replicas are saturated, want %d", c.Saturated, test.saturated)
			}
		})
	}
}

func TestEmptyConfigurationIsTheDefaultOne(t *testing.T) {
	m := demand(Variant{Replicas: replicas(3, busy(100, 2, 0.9, 5))})
	defaults := Saturation{KVThreshold: 0.80, QueueThreshold: 5, KVHeadroom: 0.10, MaxThroughputShare: 0.85}
	if got, want := Analyze(m, Options{})[0], Analyze(m, Options{Saturation: defaults})[0]; got != want {
		t.Errorf("empty configuration gives %+v, the defaults %+v", got, want)
	}
	if got := Analyze(m, Options{Saturation: Saturation{KVThreshold: math.NaN()}})[0]; needed(t, got) <= 3 {
		t.Errorf("with a threshold that is not a number 3 replicas at 0.9 need %d, want more", needed(t, got))
	}
}

func TestCapacityIsLimitedByTheKVCache(t *testing.T) {
	// Two replicas at 35 % of their KV cache serve 5/s each: at 70 % one serves 10/s.
	r := busy(50, 0, 0.35, 5)
	r.PeakRate = fleet.Observed(9)
	c := Analyze(demand(Variant{Replicas: replicas(2, r)}), Options{})[0]
	if share := c.Share.Or(0); math.Abs(share-1) > 1e-9 || c.LimitedBy != LimitKV || c.Basis != BasisObserved {
		t.Errorf("capacity %+v, want a share of 1, limited by KV cache, from its own replicas", c)
	}
	if load := c.Load.Or(0); math.Abs(load-0.5) > 1e-9 {
		t.Errorf("load %v, want 0.5: half of the capacity of two replicas", load)
	}
}

func TestCapacityIsLimitedByMaxNumSeqs(t *testing.T) {
	c := Analyze(demand(Variant{Replicas: replicas(1, busy(30, 0, 0.10, 5)), MaxSequences: 60}), Options{})[0]
	if share := c.Share.Or(0); math.Abs(share-2) > 1e-9 || c.LimitedBy != LimitSequences {
		t.Errorf("capacity %+v, want a share of 2, limited by max_num_seqs", c)
	}
}

func TestReplicaThatHadAQueueAllTheTimeShowsItsThroughput(t *testing.T) {
	r := busy(50, 0, 0.20, 10)
	r.PeakThroughput = fleet.Observed(20)
	c := Analyze(demand(Variant{Replicas: replicas(1, r)}), Options{})[0]
	if share := c.Share.Or(0); math.Abs(share-1.7) > 1e-9 || c.LimitedBy != LimitThroughput {
		t.Errorf("capacity %+v, want 0.85 of 20/s, which is 1.7 times the demand, limited by throughput", c)
	}
}

// 60 requests of minutes have filled the batch, and none of them has ended: that two others began
// in the last minute does not tell the replica's throughput.
func TestThroughputIsThatOfABatchThatHasTurnedOver(t *testing.T) {
	r := busy(60, 10, 0.5, 0.03)
	r.PeakThroughput, r.WaitingGrowth = fleet.Observed(0.03), fleet.Observed(0.5)
	r.FirstTokens, r.MeanRate = fleet.Observed(0.3), fleet.Observed(0.3)
	if c := Analyze(demand(Variant{Replicas: replicas(1, r)}), Options{})[0]; c.LimitedBy == LimitThroughput {
		t.Errorf("%+v, want another limit than the throughput of requests that last 200 s", c)
	}
	// an hour at its limit, with requests of 100 s
	r.PeakThroughput, r.FirstTokens, r.MeanRate = fleet.Observed(0.6), fleet.Observed(0.6), fleet.Observed(0.6)
	if c := Analyze(demand(Variant{Replicas: replicas(1, r)}), Options{})[0]; c.LimitedBy != LimitThroughput {
		t.Errorf("%+v, want the highest throughput of requests that last 100 s", c)
	}
	r.PeakThroughput = fleet.Observed(0.03)
	r.FirstTokens, r.MeanRate = fleet.Observed(1.2), fleet.Observed(1.2)
	if c := Analyze(demand(Variant{Replicas: replicas(1, r)}), Options{})[0]; c.LimitedBy != LimitThroughput {
		t.Errorf("%+v, want the throughput of requests that last 50 s", c)
	}
}

// The highest throughput of an hour is that of one minute with long requests. A profile knows what
// others cost; a queue that grows now is evidence against it.
func TestProfileIsNotLimitedByThePastThroughput(t *testing.T) {
	m := chat(24)
	r := showing(m, h100().Cost, 11)
	r.PeakThroughput = fleet.Observed(5)
	m.Variants = []Variant{{Profile: h100(), Objective: slo(3*time.Second, 100*time.Millisecond), Replicas: replicas(2, r)}}
	if c := Analyze(m, Options{})[0]; c.Share.Or(0)*24 < 15 {
		t.Errorf("%+v of 24/s, want what the profile says", c)
	}
	r.Waiting, r.WaitingGrowth = fleet.Observed(20), fleet.Observed(1)
	m.Variants[0].Replicas = replicas(2, r)
	if c := Analyze(m, Options{})[0]; c.Share.Or(0)*24 < 15 {
		t.Errorf("%+v of 24/s, want what the profile says: 20 s ago there was no queue, and replicas served what came", c)
	}
	r.Waiting = fleet.Observed(80)
	m.Variants[0].Replicas = replicas(2, r)
	if c := Analyze(m, Options{})[0]; c.Share.Or(0)*24 < 15 {
		t.Errorf("%+v of 24/s, want that of the profile: whether there was a queue all the time is not known", c)
	}
	r.LeastWaiting = fleet.Observed(0)
	m.Variants[0].Replicas = replicas(2, r)
	if c := Analyze(m, Options{})[0]; c.Share.Or(0)*24 < 15 {
		t.Errorf("%+v of 24/s, want what the profile says: a burst of a minute ago was served, and another has begun", c)
	}
	r.LeastWaiting = fleet.Observed(20)
	few := r
	few.Scrapes = 1
	m.Variants[0].Replicas = replicas(2, few)
	if c := Analyze(m, Options{})[0]; c.Share.Or(0)*24 < 15 {
		t.Errorf("%+v of 24/s, want what the profile says: one scrape does not show a queue all the time", c)
	}
	recent := r
	recent.WaitingGrowth = fleet.Observed(80.0 / 60)
	m.Variants[0].Replicas = replicas(2, recent)
	if c := Analyze(m, Options{})[0]; c.Share.Or(0)*24 < 15 {
		t.Errorf("%+v of 24/s, want what the profile says: a minute ago there was no queue", c)
	}
	quiet := r
	quiet.Waiting, quiet.WaitingGrowth, quiet.LeastWaiting = fleet.Observed(0), fleet.Observed(0), fleet.Observed(0)
	m.Variants[0].Replicas = append(replicas(3, quiet), replicas(1, r)...)
	if c := Analyze(m, Options{})[0]; c.Share.Or(0)*24 < 15 {
		t.Errorf("%+v of 24/s, want what the profile says: one of four replicas does not decide", c)
	}
	m.Variants[0].Replicas = replicas(2, r)
	if c := Analyze(m, Options{})[0]; c.LimitedBy != LimitThroughput || c.Share.Or(0)*24 > 12 {
		t.Errorf("%+v of 24/s, want the 11/s that are served while queues grow", c)
	}
}

func TestGrowingQueueLimitsAReplicaWithFreeKVCache(t *testing.T) {
	r := busy(50, 20, 0.20, 10)
	r.WaitingGrowth, r.LeastWaiting = fleet.Observed(0.2), fleet.Observed(8)
	if c := Analyze(demand(Variant{Replicas: replicas(2, r)}), Options{})[0]; needed(t, c) <= 2 || c.LimitedBy != LimitThroughput {
		t.Errorf("capacity %+v: two replicas whose queues grow need more", c)
	}
	// It has only just begun to serve: its rate does not show its limit.
	r.MeanRate = fleet.Reading{}
	if c := Analyze(demand(Variant{Replicas: replicas(2, r)}), Options{})[0]; c.LimitedBy == LimitThroughput {
		t.Errorf("capacity %+v: a replica without a whole window shows no limit", c)
	}
}

// The throughput that limits replicas with growing queues is that of those with whole windows.
func TestGrowingQueuesOfRecentlyStartedReplicasLowerNoThroughput(t *testing.T) {
	old := busy(50, 20, 0.20, 10)
	old.WaitingGrowth, old.LeastWaiting = fleet.Observed(0.2), fleet.Observed(8)
	m := demand(Variant{Replicas: replicas(2, old)})
	want := Analyze(m, Options{})[0]
	young := old
	young.MeanRate, young.FirstTokens = fleet.Reading{}, fleet.Observed(2)
	m.Variants[0].Replicas = append(replicas(1, old), replicas(1, young)...)
	if c := Analyze(m, Options{})[0]; c.LimitedBy != LimitThroughput || math.Abs(c.Share.Or(0)/want.Share.Or(0)-1) > 1e-9 {
		t.Errorf("capacity %+v, want that of the older replica: %+v", c, want)
	}
}

func TestSlowTokensLimitAReplicaWithFreeKVCache(t *testing.T) {
	r := busy(20, 0, 0.10, 5)
	r.ITL = fleet.Observed(0.150)
	v := Variant{Replicas: replicas(2, r), Objective: fleet.Objective{ITL: 30 * time.Millisecond}}
	if c := Analyze(demand(v), Options{})[0]; needed(t, c) != 4 || c.LimitedBy != LimitITL {
		t.Errorf("capacity %+v at five times the objective: want the double of 2 replicas, limited by ITL", c)
	}
	v.Objective.ITL = 300 * time.Millisecond
	if c := Analyze(demand(v), Options{})[0]; c.LimitedBy == LimitITL {
		t.Errorf("capacity %+v within the objective is limited by ITL", c)
	}
}

func TestLatencyCurveShowsTheLoadThatMemoryDoesNot(t *testing.T) {
	// An empty batch takes 20 ms; at 40 ms half of the engine's time is work. At 80 ms, the limit
	// of 0.8 x 100 ms, it is three quarters.
	r := busy(40, 0, 0.05, 6)
	r.ITL, r.ITLFloor = fleet.Observed(0.040), fleet.Observed(0.020)
	v := Variant{Replicas: replicas(2, r), Objective: fleet.Objective{ITL: 100 * time.Millisecond}}
	c := Analyze(demand(v), Options{Saturation: Saturation{MaxITLShare: 0.8}})[0]
	if rate := c.Share.Or(0) * 12; math.Abs(rate-9) > 1e-9 || c.LimitedBy != LimitITL {
		t.Errorf("capacity %+v, that is %v/s, want 9/s, limited by ITL", c, rate)
	}
	v.Objective.ITL = 0 // without an objective, three times the empty batch: two thirds
	if rate := Analyze(demand(v), Options{})[0].Share.Or(0) * 12; math.Abs(rate-8) > 1e-9 {
		t.Errorf("capacity %v/s without an objective, want 8/s", rate)
	}
}

func TestCapacityIsAtMostTwiceTheObservedPeakRate(t *testing.T) {
	r := busy(5, 0, 0.01, 1)
	r.PeakRate = fleet.Observed(3)
	c := Analyze(demand(Variant{Replicas: replicas(4, r)}), Options{})[0]
	if rate := c.Share.Or(0) * 4; math.Abs(rate-6) > 1e-9 || c.LimitedBy != LimitPeakRate {
		t.Errorf("capacity %+v, that is %v/s, want the double of 3/s, limited by the observed peak rate", c, rate)
	}
	r.MeanRate = fleet.Reading{} // it has only just begun
	if c := Analyze(demand(Variant{Replicas: replicas(4, r)}), Options{})[0]; c.LimitedBy == LimitPeakRate {
		t.Errorf("capacity %+v of a replica that has just begun is limited by its peak rate", c)
	}
}

func TestRecentlyStartedReplicasTakeTheirSiblingsCapacity(t *testing.T) {
	recent := busy(3, 0, 0.01, 0.5)
	recent.MeanRate = fleet.Reading{}
	old := Variant{Replicas: replicas(2, busy(50, 0, 0.35, 5)), Speed: 1}
	recent.KVTokens = fleet.Reading{}
	c := Analyze(demand(old, Variant{Replicas: replicas(1, recent), Speed: 4}), Options{})
	if ratio := c[1].Share.Or(0) / c[0].Share.Or(0); math.Abs(ratio-4) > 1e-9 || c[1].Basis != BasisSibling {
		t.Errorf("capacity %+v, want 4 times that of its sibling: its own replica has only just begun", c[1])
	}
}

// The gauges of a recently started replica are right at once, and its rate grows until it is older
// than the window.
func TestRecentlyStartedReplicasLowerNoCapacity(t *testing.T) {
	young := busy(8, 0, 0.6, 0.42)
	young.MeanRate, young.PeakRate = fleet.Reading{}, fleet.Observed(0.42)
	old := busy(8, 0, 0.6, 2)
	old.PeakRate = fleet.Observed(2)
	m := demand(Variant{Replicas: replicas(4, old)})
	want := Analyze(m, Options{})[0].Share.Or(0)
	for count := range 5 { // of 4
		m.Variants[0].Replicas = append(replicas(4-count, old), replicas(count, young)...)
		c := Analyze(m, Options{})[0]
		if share := c.Share.Or(0); share < want*(1-1e-9) || share > want*(1+1e-9) {
			t.Errorf("%d of 4 replicas are young: capacity %+v, want a share of %v as without them", count, c, want)
		}
	}
}

// A replica whose latest window lost its scrapes is read from the peak window: its KV cache use now
// belongs to no rate.
func TestALostWindowOfAReplicaKeepsTheCapacity(t *testing.T) {
	r := busy(60, 0, 0.6, 10) // the load has just risen
	r.MeanRate, r.MeanKV, r.MeanRunning = fleet.Observed(6), fleet.Observed(0.36), fleet.Observed(36)
	m := demand(Variant{Replicas: replicas(2, r)})
	want := Analyze(m, Options{})[0]
	lost := r
	lost.FirstTokens, lost.Scrapes = fleet.Reading{}, 2
	m.Variants[0].Replicas = append(replicas(1, r), replicas(1, lost)...)
	if c := Analyze(m, Options{})[0]; math.Abs(c.Share.Or(0)/want.Share.Or(0)-1) > 1e-9 {
		t.Errorf("capacity %+v, want %+v as with both windows", c, want)
	}
}

// A replica that started recently has the capacity of its profile, if there is one.
func TestRecentlyStartedReplicasKeepTheProfile(t *testing.T) {
	v := Variant{
		Profile: &fleet.Profile{Cost: fleet.EngineCost{Alpha: 10, Beta: 0.2, Gamma: 0.001, Prefill: 0.02}}, KVTokens: 400_000, MaxSequences: 256, BatchedTokens: 8192,
		Objective: fleet.Objective{ITL: 50 * time.Millisecond, TTFT: 2 * time.Second},
	}
	m := Model{Rate: fleet.Observed(8), InFlight: 32, PromptTokens: fleet.Observed(1000), OutputTokens: fleet.Observed(150), Variants: []Variant{v}}
	want := Analyze(m, Options{})[0]
	young := busy(8, 0, 0.6, 0.42)
	young.MeanRate = fleet.Reading{}
	m.Variants[0].Replicas = replicas(4, young)
	if c := Analyze(m, Options{})[0]; math.Abs(c.Share.Or(0)/want.Share.Or(0)-1) > 0.01 || c.Basis != BasisProfile {
		t.Errorf("capacity %+v, want that of the profile: %+v", c, want)
	}
}

func TestCapacityComesFromThePeakWindow(t *testing.T) {
	r := busy(10, 0, 0.10, 1) // this minute is quiet
	r.MeanRate, r.MeanKV, r.PeakRate = fleet.Observed(6), fleet.Observed(0.42), fleet.Observed(9)
	c := Analyze(demand(Variant{Replicas: replicas(1, r)}), Options{})[0]
	if rate := c.Share.Or(0); math.Abs(rate-10) > 1e-9 || c.LimitedBy != LimitKV {
		t.Errorf("capacity %+v, that is %v/s, want 10/s: 6/s took 42 %% of the KV cache", c, rate)
	}
}

func TestRisingLoadIsReadFromTheLatestWindow(t *testing.T) {
	r := busy(100, 0, 0.63, 6) // five minutes ago it was nearly idle
	r.MeanRate, r.MeanKV, r.PeakRate = fleet.Observed(3), fleet.Observed(0.14), fleet.Observed(9)
	c := Analyze(demand(Variant{Replicas: replicas(1, r)}), Options{})[0]
	if rate := c.Share.Or(0) * 6; math.Abs(rate-20.0/3) > 1e-9 || c.LimitedBy != LimitKV {
		t.Errorf("capacity %+v, that is %v/s, want 6.67/s: 6/s take 63 %% of the KV cache now", c, rate)
	}
}

// In a burst the KV cache is already used by more requests than the rate of the latest window
// shows.
func TestABurstLowersNoCapacity(t *testing.T) {
	r := busy(100, 0, 0.63, 6)
	r.MeanRate, r.MeanKV, r.PeakRate = fleet.Observed(3), fleet.Observed(0.14), fleet.Observed(9)
	m := demand(Variant{Replicas: replicas(1, r)})
	m.Rising = true
	c := Analyze(m, Options{})[0]
	if rate := c.Share.Or(0) * 6; math.Abs(rate-15) > 1e-9 || c.LimitedBy != LimitKV {
		t.Errorf("capacity %+v, that is %v/s, want 15/s: 3/s take 14 %% of the KV cache on average", c, rate)
	}
}

// A queue of seconds fills the batch. The queueing model has max_num_seqs already.
func TestAFullBatchLowersNoCapacityOfAProfile(t *testing.T) {
	of := func(running float64) float64 {
		r := busy(running, 0, 0.2, 8)
		rate, _ := capacityOf(chat(8, Variant{Profile: h100(), MaxSequences: 256, Replicas: replicas(1, r), Objective: slo(3*time.Second, 100*time.Millisecond)}), Options{})
		return rate
	}
	if few, full := of(60), of(256); full != few {
		t.Errorf("%v/s with a full batch, %v/s without", full, few)
	}
}

func TestUnevenLoadSplitIsLimitedByTheFullestVariant(t *testing.T) {
	// All get 5/s, and one could serve four times as much: together they serve as much as seven
	// slow ones.
	slow, fast := busy(50, 0, 0.5, 5), busy(12, 0, 0.125, 5)
	slow.PeakRate, fast.PeakRate = fleet.Observed(9), fleet.Observed(90)
	c := Analyze(demand(Variant{Replicas: replicas(6, slow)}, Variant{Replicas: replicas(1, fast)}), Options{})
	if math.Abs(c[1].Share.Or(0)-c[0].Share.Or(0)) > 1e-9 || c[1].LimitedBy != LimitRouting {
		t.Errorf("capacities %+v, want the fast one limited by routing to the capacity of the slow one", c)
	}
	// it serves more alone than with two slow ones
	c = Analyze(demand(Variant{Replicas: replicas(2, slow)}, Variant{Replicas: replicas(1, fast)}), Options{})
	if rate := 15 * c[1].Share.Or(0); math.Abs(rate-28) > 1e-9 || !c[0].NoMore || 15*c[0].Share.Or(1) > 0.2 {
		t.Errorf("capacities %+v, that is %v/s of the fast one, want 28/s and none of the slow one", c, rate)
	}
}

func TestSlowerVariantHasLessCapacityWithTheSameKVCache(t *testing.T) {
	// The same KV cache in use at a quarter of the rate: each request runs four times as long.
	fast := Variant{Replicas: replicas(1, busy(40, 0, 0.35, 20))}
	slow := Variant{Replicas: replicas(1, busy(40, 0, 0.35, 5))}
	c := Analyze(demand(fast, slow), Options{})
	if ratio := c[0].Share.Or(0) / c[1].Share.Or(0); math.Abs(ratio-4) > 1e-9 {
		t.Errorf("the fast variant has %.2f times the capacity, want 4", ratio)
	}
}

func TestVariantThatNeverRanTakesTheCataloguesRatio(t *testing.T) {
	running := Variant{Replicas: replicas(2, busy(50, 0, 0.35, 5)), Speed: 1}
	c := Analyze(demand(running, Variant{Speed: 4}), Options{})
	if ratio := c[1].Share.Or(0) / c[0].Share.Or(0); math.Abs(ratio-4) > 1e-9 || c[1].Basis != BasisSibling {
		t.Errorf("capacity %+v, want 4 times that of its sibling", c[1])
	}
}

func TestVariantThatNeverRanTakesItsArguments(t *testing.T) {
	m := Model{InFlight: 30, PromptTokens: fleet.Observed(900), OutputTokens: fleet.Observed(200), Variants: []Variant{{KVTokens: 100_000}}}
	c := Analyze(m, Options{})[0]
	if share := c.Share.Or(0); math.Abs(share-70.0/30) > 1e-9 || c.Basis != BasisArguments {
		t.Errorf("capacity %+v, want 70 requests of 1,000 tokens in 0.7 of 100,000, over 30 in flight", c)
	}
	if c := Analyze(Model{InFlight: 30, Variants: []Variant{{}}}, Options{})[0]; c.Share.State != fleet.Absent {
		t.Errorf("capacity %+v of an unknown variant, want none", c)
	}
}

func TestReplicaWithMissingMetricsIsLeftOut(t *testing.T) {
	half := &fleet.Usage{Running: fleet.Observed(500)}
	c := Analyze(demand(Variant{Replicas: append(replicas(1, busy(50, 0, 0.35, 5)), half)}), Options{})[0]
	if load := c.Load.Or(0); math.Abs(load-0.5) > 1e-9 {
		t.Errorf("load %v, want 0.5: the KV cache of the other is not known", load)
	}
}

func TestAnalyzeAlwaysAnswersFinitePositiveShares(t *testing.T) {
	values := []fleet.Reading{{}, fleet.Observed(0), fleet.Observed(1e-300), fleet.Observed(0.5), fleet.Observed(1e300), {State: fleet.NaN}, {State: fleet.Stale, Value: 3}}
	pick := func(i, salt int) fleet.Reading { return values[(i*7+salt*i*i+salt)%len(values)] }
	for i := range 5000 {
		r := fleet.Usage{
			Running: pick(i, 1), Waiting: pick(i, 2), KV: pick(i, 3), KVTokens: pick(i, 4), FirstTokens: pick(i, 5), ITL: pick(i, 6),
			WaitingGrowth: pick(i, 8), PeakThroughput: pick(i, 9), MeanRate: pick(i, 17), MeanKV: pick(i, 18), Scrapes: i % 6,
		}
		m := Model{
			Rate: pick(i, 10), InFlight: pick(i, 11).Or(0), PromptTokens: pick(i, 12), OutputTokens: pick(i, 13),
			Variants: []Variant{{Replicas: replicas(i%3, r), Speed: pick(i, 14).Or(0), Objective: fleet.Objective{ITL: time.Duration(i % 2)}}, {Replicas: replicas(1, r), KVTokens: pick(i, 15).Or(0), MaxSequences: i % 2 * 64}},
		}
		for _, c := range Analyze(m, Options{}) {
			if share, known := c.Share.Known(); known && (share < 0 || math.IsNaN(share) || math.IsInf(share, 0)) {
				t.Fatalf("case %d: share %v of %+v", i, share, m)
			}
		}
	}
}
