package planner

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/wva-project/wva/analyzer"
	"github.com/wva-project/wva/fleet"
)

// numericField is the place of one number in a snapshot.
type numericField struct {
	path  string
	value reflect.Value
}

// numericFields returns every number in a value: fields, elements, and durations. Readings are one
// number each, whatever their state.
func numericFields(path string, v reflect.Value) (all []numericField) {
	switch v.Kind() {
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Float64:
		return []numericField{{path, v}}
	case reflect.Slice:
		for i := range v.Len() {
			all = append(all, numericFields(fmt.Sprintf("%s[%d]", path, i), v.Index(i))...)
		}
	case reflect.Struct:
		if _, isReading := reflect.TypeAssert[fleet.Reading](v); isReading {
			return []numericField{{path, v}}
		}
		if _, isTime := reflect.TypeAssert[time.Time](v); isTime {
			return []numericField{{path, v}}
		}
		for i := range v.NumField() {
			if v.Type().Field(i).Name == "Previous" {
				continue // the product's own numbers
			}
			all = append(all, numericFields(path+"."+v.Type().Field(i).Name, v.Field(i))...)
		}
	default: // no number
	}
	return all
}

// hostileFloats and hostileInts are the numbers that nothing may rely on not to come.
func hostileFloats() []float64 {
	return []float64{
		0, -1, 1e-308, 1e-3, 2e7, 1e15, 1e100, math.MaxFloat64, -math.MaxFloat64, math.Inf(1), math.Inf(-1), math.NaN(),
	}
}

func hostileInts() []int64 {
	return []int64{0, 1, -1, 100_001, math.MaxInt32, math.MaxInt64, math.MinInt64, math.MaxInt64 / 3}
}

// set gives a number the value of a choice, and returns how it was before.
func (n numericField) set(choice int) (before reflect.Value) {
	before = reflect.New(n.value.Type()).Elem()
	before.Set(n.value)
	floats, ints := hostileFloats(), hostileInts()
	switch n.value.Interface().(type) {
	case fleet.Reading: // its value is at most 1e15, by its constructor
		states := []fleet.ReadingState{fleet.Absent, fleet.Stale, fleet.NaN, fleet.Reset}
		if at := choice % (len(floats) + len(states)); at < len(floats) {
			n.value.Set(reflect.ValueOf(fleet.Observed(floats[at])))
		} else {
			n.value.Set(reflect.ValueOf(fleet.Reading{State: states[at-len(floats)], Value: 1e15}))
		}
	case time.Time:
		times := []time.Time{{}, epoch.Add(-time.Hour), epoch.Add(time.Hour), time.Unix(math.MaxInt64/2, 0), time.Unix(-math.MaxInt64/2, 0), epoch}
		n.value.Set(reflect.ValueOf(times[choice%len(times)]))
	default:
		if n.value.Kind() == reflect.Float64 {
			n.value.SetFloat(floats[choice%len(floats)])
		} else {
			value := ints[choice%len(ints)]
			if n.value.Kind() == reflect.Int32 {
				value = int64(int32(value))
			}
			n.value.SetInt(value)
		}
	}
	return before
}

// choices returns how many values set has for a number.
func (n numericField) choices() int {
	switch n.value.Interface().(type) {
	case fleet.Reading:
		return len(hostileFloats()) + 4
	case time.Time:
		return 6
	}
	if n.value.Kind() == reflect.Float64 {
		return len(hostileFloats())
	}
	return len(hostileInts())
}

// hostileTables is a snapshot in which every table has rows and most numbers matter: limited and
// elastic accelerators, a group on several nodes, roles, objectives with and without a profile,
// loads of engines and gateway, replicas that start, are overdue and are stuck.
func hostileTables() *fleet.Snapshot {
	profile := fleet.EngineCost{Alpha: 6, Beta: 0.03, Gamma: 0.03, Prefill: 0.04, PrefillSquared: 0.1}
	sized := fast(group{ready: 2, loading: 1, running: 20, waiting: 3, kv: 0.4, rate: 6, itl: 20 * time.Millisecond, objective: 40 * time.Millisecond})
	sized.usage = func(u *fleet.Usage) {
		u.MeanRate, u.MeanKV, u.MeanITL = fleet.Observed(6), fleet.Observed(0.4), fleet.Observed(0.02)
		u.MeanRunning, u.MeanPrefill, u.ITLFloor = fleet.Observed(20), fleet.Observed(0.1), fleet.Observed(0.01)
		u.PeakThroughput, u.Progress = fleet.Observed(10), fleet.Observed(5)
	}
	sized.variant = func(v *fleet.Variant) {
		v.Objective.TTFT, v.Objective.Percentile, v.Range.Min = 2*time.Second, 0.9, 1
		v.Cooldown, v.ScaleToZeroAfter = time.Minute, time.Minute
	}
	sized.workload = func(w *fleet.Workload) {
		w.MaxSequences, w.BatchedTokens, w.TensorParallel, w.KVTokens = 256, 2048, 1, 2e5
		w.Pods[0].Nodes = []string{"h1"}
	}
	learned := cheap(group{ready: 2, stuck: 2, running: 70, kv: 0.7, rate: 6, itl: 30 * time.Millisecond, objective: 50 * time.Millisecond})
	learned.usage = sized.usage
	learned.variant = func(v *fleet.Variant) { v.Target.Kind, v.GPUsPerReplica = "LeaderWorkerSet", 4 }
	learned.workload = func(w *fleet.Workload) {
		w.ID.Kind, w.GroupSize = "LeaderWorkerSet", 2
		w.Pods[0].Nodes = []string{"l1", "l1"}
	}
	idle := group{name: "idle", cost: 1, max: 4, accelerator: "H100", ready: 1}
	idle.variant = func(v *fleet.Variant) {
		v.Range.AllowsIdle, v.Range.Min, v.Pause.Fixed, v.Pause.Replicas = true, 1, true, 2
	}
	s := newScenario(sized, learned, idle).gateway(9, 20)
	s.load(func(l *fleet.Load) {
		l.Arrivals, l.Queued = fleet.Observed(24), fleet.Observed(1)
		l.PrefixHits, l.Dispersion, l.TTFT, l.ITL = fleet.Observed(0.2), fleet.Observed(2), fleet.Observed(0.5), fleet.Observed(0.02)
		l.PromptLengths = []fleet.Bucket{{Upper: 500, Count: 3}, {Upper: 2000, Count: 5}, {Count: 1}}
		l.OutputLengths = []fleet.Bucket{{Upper: 100, Count: 3}, {Upper: 500, Count: 5}, {Count: 1}}
	})
	s.Profiles = []fleet.Profile{{Model: llama, Accelerator: "H100", TensorParallel: 1, Cost: profile, KVTokens: 2e5, MaxSequences: 256, BatchedTokens: 2048}}
	s.Models = []fleet.Model{{ID: fleet.ModelID{Namespace: "shop", Name: llama}, Retention: time.Hour}}
	s.Classes = []fleet.ServiceClass{{Name: "gold", Priority: 10, Namespaces: []string{"*"}}}
	s.node("H100", "h1", 8, 3).node("L40S", "l1", 8, 4)
	s.Pools = append(s.Pools, fleet.Pool{Accelerator: "B200", Elastic: true, Limit: 64})
	elastic := group{name: "elastic", cost: 9, max: 50, accelerator: "B200", ready: 1, running: 30, kv: 0.6, rate: 3, objective: 40 * time.Millisecond}
	return &s.beside("other", newScenario(elastic).served(func(i int, p *fleet.LatencyPart) { p.Started = i / (servedParts - 1) })).
		previous("fast", 2, time.Minute).Snapshot
}

// Bounds of one plan of hostileTables, which takes some milliseconds and allocates some megabytes:
// so far above the usual that only work without a bound reaches them.
const (
	mostPlanTime  = 2 * time.Minute
	mostPlanBytes = 256 << 20
)

// planWithin plans and fails if that takes too long or too much memory, or if the plan is not
// whole. The others' decisions may not be hostile either.
func planWithin(t testing.TB, s fleet.Snapshot, p Policy, title string) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begun := time.Now()
	plan := Plan(s, p)
	took := time.Since(begun)
	runtime.ReadMemStats(&after)
	if took > mostPlanTime {
		t.Errorf("%s: the plan took %v", title, took)
	}
	if bytes := after.TotalAlloc - before.TotalAlloc; bytes > mostPlanBytes {
		t.Errorf("%s: the plan allocated %d MiB", title, bytes>>20)
	}
	for _, crash := range plan.Crashes {
		t.Errorf("%s: %s: %s\n%s", title, crash.Model, crash.Panic, crash.Stack)
	}
	if len(plan.Decisions) != len(s.Variants) {
		t.Errorf("%s: %d of %d variants are decided", title, len(plan.Decisions), len(s.Variants))
	}
	for _, m := range plan.Models {
		if !(m.Unserved >= 0 && m.Unserved <= 1) {
			t.Errorf("%s: %v of %s is unserved", title, m.Unserved, m.ID)
		}
	}
	for _, d := range plan.Decisions {
		if d.Reason.Code == "" || d.Known && (d.Replicas < 0 || d.Replicas > mostReplicas) {
			t.Errorf("%s: %+v", title, d)
		}
		if factor, known := planHeadroom(plan, d.Facts.Model); known && !(factor >= leastHeadroom && factor <= mostHeadroom) {
			t.Errorf("%s: headroom ×%v", title, factor)
		}
		for _, reading := range []fleet.Reading{d.Facts.Saturation, d.Facts.Capacity} {
			if value, known := reading.Known(); known && (math.IsNaN(value) || math.IsInf(value, 0)) {
				t.Errorf("%s: %s: %+v", title, d.Variant, d.Facts)
			}
		}
	}
}

func TestOneHostileNumberCostsLittle(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: 58 s under the race detector")
	}
	s := hostileTables()
	all := numericFields("", reflect.ValueOf(s).Elem())
	slowest, at := time.Duration(0), ""
	policy := Policy{Memo: &analyzer.Memo{}} // the usual simulations run once
	for _, n := range all {
		for choice := range n.choices() {
			before := n.set(choice)
			begun := time.Now()
			planWithin(t, *s, policy, fmt.Sprintf("%s = %v", n.path, n.value))
			if took := time.Since(begun); took > slowest {
				slowest, at = took, fmt.Sprintf("%s = %v", n.path, n.value)
			}
			n.value.Set(before)
		}
	}
	t.Logf("%d numbers, slowest %v: %s", len(all), slowest, at)
}

// hostilePlan plans with several hostile numbers at once: of each three bytes, two choose a number
// and one its value.
func hostilePlan(t testing.TB, p Policy, data []byte) {
	t.Helper()
	s := hostileTables()
	all := numericFields("", reflect.ValueOf(s).Elem())
	var changed []string
	for change := range slices.Chunk(data[:len(data)/3*3], 3) {
		n := all[int(binary.BigEndian.Uint16(change))%len(all)]
		n.set(int(change[2]))
		changed = append(changed, fmt.Sprintf("%s = %v", n.path, n.value))
	}
	planWithin(t, *s, p, fmt.Sprint(changed))
}

func TestManyHostileNumbersCostLittle(t *testing.T) {
	random, memo := rand.New(rand.NewPCG(1, 15)), &analyzer.Memo{}
	for range hostileRounds {
		data := make([]byte, 3*(2+random.IntN(30)))
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		hostilePlan(t, Policy{Memo: memo}, data)
	}
}

const hostileRounds = 200

func FuzzHostileNumbers(f *testing.F) {
	f.Add([]byte{0, 1, 2})
	f.Add([]byte{0, 40, 9, 0, 50, 4, 0, 60, 9, 1, 0, 4, 1, 9, 7})
	memo := &analyzer.Memo{} // the usual simulations run once
	f.Fuzz(func(t *testing.T, data []byte) {
		hostilePlan(t, Policy{Simulations: 1, Memo: memo}, data[:min(len(data), 96)])
	})
}
