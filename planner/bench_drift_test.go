package planner

import (
	"cmp"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/wva-project/wva/analyzer"
	"github.com/wva-project/wva/fleet"
)

// BenchmarkDrift decides on one core for 10,000 profiled variants of 2,000 models whose traffic
// does not change, but whose windows of five minutes have Poisson noise. In "each cycle" every
// window moves on by 15 s in a cycle; in "aligned" those for the lengths of requests and for the
// calibration of profiles are read every five minutes, by turns, as the collector does it. first-ms
// is the first cycle; cpu-ms/cycle is the mean of the cycles after it, and sizing-ms/cycle the
// part of that for demand and capacities.
func BenchmarkDrift(b *testing.B) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, test := range []struct {
		name    string
		aligned bool
	}{{"each cycle", false}, {"aligned", true}} {
		b.Run(test.name, func(b *testing.B) { benchmarkDrift(b, test.aligned) })
	}
}

// BenchmarkFirstCycle is the first cycle of the same fleet, on two cores.
func BenchmarkFirstCycle(b *testing.B) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	d := newDrift(profiledFleet(10_000))
	for b.Loop() {
		Plan(d.snapshot, Policy{Memo: &analyzer.Memo{}}.withDefaults())
	}
}

func benchmarkDrift(b *testing.B, aligned bool) {
	var first, sizing, whole time.Duration
	timed := func(into *time.Duration, run func()) {
		runtime.GC()
		begun := cpuTime(b)
		run()
		*into += cpuTime(b) - begun
	}
	for b.Loop() {
		d := newDrift(profiledFleet(10_000))
		policy, other := Policy{Memo: &analyzer.Memo{}}.withDefaults(), Policy{Memo: &analyzer.Memo{}}.withDefaults()
		newView(d.snapshot, nil, other).sizeAll()
		timed(&first, func() { Plan(d.snapshot, policy) })
		for range driftCycles {
			d.next(aligned)
			timed(&whole, func() { Plan(d.snapshot, policy) })
			other.Memo.NextCycle()
			timed(&sizing, func() { newView(d.snapshot, nil, other).sizeAll() })
		}
	}
	report := func(name string, used time.Duration, cycles int) {
		b.ReportMetric(float64(used.Microseconds())/1e3/float64(cycles*b.N), name)
	}
	report("first-ms", first, 1)
	report("sizing-ms/cycle", sizing, driftCycles)
	report("cpu-ms/cycle", whole, driftCycles)
}

const (
	cyclesOfWindow = 20 // cycles in a window
	driftCycles    = 5  // that are measured
)

// drift is a fleet with the numbers of requests in the latest parts of its windows.
type drift struct {
	snapshot fleet.Snapshot
	random   *rand.Rand
	cycle    int
	replicas []driftingReplica
	models   []driftingModel
}

// driftingReplica is a replica that serves a rate.
type driftingReplica struct {
	model       int
	usage       *fleet.Usage
	rate        float64
	empty, work float64 // seconds of an iteration, and those that a request adds
	counts      [cyclesOfWindow]float64
}

// driftingModel has the numbers of requests in the buckets of its histograms.
type driftingModel struct {
	load            *fleet.Load
	prompts, output driftingLengths
}

type driftingLengths struct {
	expected []float64 // in a part of a window
	counts   [cyclesOfWindow][]float64
}

func newDrift(s fleet.Snapshot) *drift {
	sortTables(s)
	d := &drift{snapshot: s, random: rand.New(rand.NewPCG(3, 3))}
	profiles := map[fleet.TargetID]fleet.EngineCost{}
	for _, v := range s.Variants {
		profiles[v.Target] = v.Profile
	}
	pods := map[string]fleet.EngineCost{}
	for _, w := range s.Workloads {
		for _, pod := range w.Pods {
			pods[w.ID.Namespace+"/"+pod.Name] = profiles[w.ID]
		}
	}
	rates, index := map[string]float64{}, map[string]int{}
	for i := range s.Usages {
		u := &s.Usages[i]
		rates[u.Model] += u.FirstTokens.Value
	}
	for i := range s.Loads {
		load := &s.Loads[i]
		if load.Source != fleet.SourceEngine {
			continue
		}
		index[load.Model] = len(d.models)
		seconds := rates[load.Model] * partSeconds
		d.models = append(d.models, driftingModel{load, d.lengths(load.PromptLengths, seconds), d.lengths(load.OutputLengths, seconds)})
	}
	for i := range s.Usages {
		u := &s.Usages[i]
		cost := analyzer.Seconds(pods[u.Namespace+"/"+u.Pod])
		r := driftingReplica{model: index[u.Model], usage: u, rate: u.FirstTokens.Value, empty: cost.Iteration,
			work: 1000*cost.PerPromptToken + 2e6*cost.PerPromptTokenSquared + 200*cost.PerSequence + 240_000*cost.PerContextToken}
		for k := range r.counts {
			r.counts[k] = poisson(d.random, r.rate*partSeconds)
		}
		d.replicas = append(d.replicas, r)
	}
	for i := range d.models {
		d.models[i].read()
	}
	for i := range d.replicas {
		d.replicas[i].read(d.random)
	}
	return d
}

// sortTables sorts the tables of a snapshot as the inventory and the collector do.
func sortTables(s fleet.Snapshot) {
	slices.SortFunc(s.Variants, func(a, b fleet.Variant) int { return a.ID.Compare(b.ID) })
	slices.SortFunc(s.Workloads, func(a, b fleet.Workload) int { return a.ID.Compare(b.ID) })
	slices.SortFunc(s.Usages, func(a, b fleet.Usage) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Model, b.Model))
	})
	slices.SortStableFunc(s.Loads, func(a, b fleet.Load) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Model, b.Model))
	})
}

// partSeconds is the length of a cycle.
const partSeconds = 15

func (d *drift) lengths(buckets []fleet.Bucket, requests float64) (l driftingLengths) {
	var total float64
	for _, b := range buckets {
		total += b.Count
	}
	for _, b := range buckets {
		l.expected = append(l.expected, b.Count/total*requests)
	}
	for k := range l.counts {
		l.counts[k] = d.poissons(l.expected)
	}
	return l
}

// next moves on by a cycle.
func (d *drift) next(aligned bool) {
	d.cycle++
	k := d.cycle % cyclesOfWindow
	turn := func(model int) bool { return !aligned || model%cyclesOfWindow == k }
	for i := range d.models {
		m := &d.models[i]
		m.prompts.counts[k], m.output.counts[k] = d.poissons(m.prompts.expected), d.poissons(m.output.expected)
		if turn(i) {
			m.read()
		}
	}
	for i := range d.replicas {
		r := &d.replicas[i]
		r.counts[k] = poisson(d.random, r.rate*partSeconds)
		r.usage.FirstTokens = fleet.Observed(r.counts[k] / partSeconds)
		if turn(r.model) {
			r.read(d.random)
		}
	}
}

// read reads the lengths of the requests of the window.
func (m *driftingModel) read() {
	m.load.PromptLengths, m.load.PromptTokens = m.prompts.read(m.load.PromptLengths)
	m.load.OutputLengths, m.load.OutputTokens = m.output.read(m.load.OutputLengths)
}

func (l *driftingLengths) read(bounds []fleet.Bucket) ([]fleet.Bucket, fleet.Reading) {
	buckets, lower := slices.Clone(bounds), 1.0
	var total, tokens float64
	for i := range buckets {
		buckets[i].Count = 0
		for _, counts := range l.counts {
			buckets[i].Count += counts[i]
		}
		total += buckets[i].Count
		tokens += buckets[i].Count * math.Sqrt(lower*buckets[i].Upper)
		lower = buckets[i].Upper
	}
	if total == 0 {
		return bounds, fleet.Reading{}
	}
	return buckets, fleet.Observed(tokens / total)
}

// read reads the means of the window: an iteration takes the longer, the more requests are served.
func (r *driftingReplica) read(random *rand.Rand) {
	rate := totalOf(r.counts[:]) / (cyclesOfWindow * partSeconds)
	itl := r.empty / max(0.1, 1-rate*r.work) * (1 + 0.01*random.NormFloat64())
	r.usage.MeanRate, r.usage.MeanITL = fleet.Observed(rate), fleet.Observed(itl)
	r.usage.ITLFloor = fleet.Observed(r.empty)
	r.usage.MeanRunning = fleet.Observed(rate * itl * 200)
	if tokens := r.usage.KVTokens.Or(0); tokens > 0 { // contexts are those of the lengths
		r.usage.MeanKV = fleet.Observed(rate * itl * 200 * 1100 / tokens)
	}
}

func totalOf(values []float64) (total float64) {
	for _, value := range values {
		total += value
	}
	return total
}

func (d *drift) poissons(means []float64) []float64 {
	drawn := make([]float64, len(means))
	for i, mean := range means {
		drawn[i] = poisson(d.random, mean)
	}
	return drawn
}

// poisson draws a Poisson number, by the normal distribution if the mean is large.
func poisson(random *rand.Rand, mean float64) float64 {
	if mean > 30 {
		return max(0, math.Round(mean+math.Sqrt(mean)*random.NormFloat64()))
	}
	n := 0.0
	for left := random.ExpFloat64(); left < mean; left += random.ExpFloat64() {
		n++
	}
	return n
}
