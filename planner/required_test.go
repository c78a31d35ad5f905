package planner

import (
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wva-project/wva/analyzer"
	"github.com/wva-project/wva/fleet"
)

// The requests and engines of the pools whose truth is known.
var (
	truthUses = map[string][2]truthLengths{
		"chat": {{mean: 1155, sigma: 0.8, most: 4200}, {mean: 211, sigma: 0.8, most: 1000}},
		"code": {{mean: 2000, sigma: 0.75, most: 8192}, {mean: 28, sigma: 1.24, most: 2000}},
		"long": {{mean: 8000, sigma: 0.5, most: 1e6}, {mean: 300, sigma: 0.7, most: 1e6}},
	}
	truthEngines = map[string]fleet.EngineCost{
		"H100": {Alpha: 6, Beta: 8e-3, Gamma: 42e-3, Prefill: 13e-3, PrefillSquared: 0.8},
		"A100": {Alpha: 11, Beta: 28e-3, Gamma: 81e-3, Prefill: 48e-3, PrefillSquared: 1.8},
		"L40S": {Alpha: 22, Beta: 27e-3, Gamma: 200e-3, Prefill: 42e-3, PrefillSquared: 3.5},
	}
)

// truthLengths is a lognormal distribution, cut off at most; the mean is the one before the cut.
type truthLengths struct{ mean, sigma, most float64 }

// histogram returns the report of vLLM about the lengths, and their mean.
func (l truthLengths) histogram() (buckets []fleet.Bucket, mean fleet.Reading) {
	for scale := 1.0; scale <= 1e5; scale *= 10 {
		buckets = append(buckets, fleet.Bucket{Upper: scale}, fleet.Bucket{Upper: 2 * scale}, fleet.Bucket{Upper: 5 * scale})
	}
	const parts = 10_000
	sum := 0.0
	for i := range parts {
		deviate := math.Sqrt2 * math.Erfinv(2*(float64(i)+0.5)/parts-1)
		length := max(1, min(l.most, math.Round(l.mean*math.Exp(l.sigma*deviate-l.sigma*l.sigma/2))))
		sum += length
		for j := range buckets {
			if length <= buckets[j].Upper {
				buckets[j].Count++
				break
			}
		}
	}
	return buckets, fleet.Observed(sum / parts)
}

// truthCell is a pool with the highest rate that the simulator serves within the objective.
type truthCell struct {
	name         string
	use          string
	accelerators []string
	replicas     []int
	objective    fleet.Objective
	dispersion   float64
	kv           float64 // KV cache size in tokens; 0 is no limit
	rate         float64
	shares       []float64 // of the requests by accelerator
}

func truthCells(t *testing.T) (cells []truthCell) {
	file, err := os.Open("../analyzer/queueing/testdata/pool_truth.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines[1:] {
		number := func(i int) float64 {
			x, err := strconv.ParseFloat(line[i], 64)
			if err != nil {
				t.Fatal(err)
			}
			return x
		}
		if line[8] != "least requests" {
			continue
		}
		c := truthCell{
			name: strings.Join(line, " "), use: line[0], accelerators: strings.Split(line[1], "+"), dispersion: number(6), kv: number(7), rate: number(9),
			objective: fleet.Objective{
				TTFT: time.Duration(number(3) * 1e6), ITL: time.Duration(number(4) * 1e6), Percentile: number(5),
			},
			shares: []float64{number(10), 1 - number(10)},
		}
		for text := range strings.SplitSeq(line[2], "+") {
			n, err := strconv.Atoi(text)
			if err != nil {
				t.Fatal(err)
			}
			c.replicas = append(c.replicas, n)
		}
		cells = append(cells, c)
	}
	return cells
}

// predicted returns the highest rate of the pool by the planner, if its load is measured at 70 % of
// the true one, and the mean capacity of its replicas.
func (c truthCell) predicted(memo *analyzer.Memo) (rate, mean float64) {
	m := analyzer.Model{Rate: fleet.Observed(c.rate), InFlight: 10, Dispersion: fleet.Observed(1.35 * c.dispersion)}
	m.Prompts, m.PromptTokens = truthUses[c.use][0].histogram()
	m.Outputs, m.OutputTokens = truthUses[c.use][1].histogram()
	z := &sizedModel{demand: demand{latest: 1}}
	for i, name := range c.accelerators {
		v := analyzer.Variant{
			Objective: c.objective, Kept: true, KVTokens: c.kv, MaxSequences: 256, BatchedTokens: 2048,
			Profile: &fleet.Profile{Cost: truthEngines[name]},
		}
		for range c.replicas[i] {
			each := fleet.Observed(0.7 * c.rate * c.shares[i] / float64(c.replicas[i]))
			v.Replicas = append(v.Replicas, &fleet.Usage{
				Scrapes: 5, Running: fleet.Observed(5), KV: fleet.Observed(0.01), FirstTokens: each, MeanRate: each, MeanKV: fleet.Observed(0.01),
			})
		}
		m.Variants = append(m.Variants, v)
		z.candidates = append(z.candidates, candidate{variant: &variant{Variant: &fleet.Variant{}}})
	}
	for i, capacity := range analyzer.Analyze(m, analyzer.Options{Memo: memo, Simulations: analyzer.NewSimulations(4)}) {
		z.candidates[i].capacity, z.candidates[i].share = capacity, capacity.Share.Or(0)
		z.candidates[i].now = c.replicas[i]
	}
	z.sharePool()
	capacity := 0.0
	for i, other := range z.candidates {
		capacity += other.share * float64(c.replicas[i])
	}
	if mean = c.rate * capacity; z.pool.mean > 0 {
		capacity *= z.pool.At(capacity / z.pool.mean)
	}
	return c.rate * capacity, mean
}

func TestPoolsServeWhatTheSimulatorServes(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: 63 s under the race detector")
	}
	var memo analyzer.Memo
	usable, within, worst := 0, 0, 0.0
	for _, c := range truthCells(t) {
		got, mean := c.predicted(&memo)
		off := got/c.rate - 1
		if c.rate < 0.1*mean {
			continue // reported as infeasible
		}
		usable++
		if math.Abs(off) <= 0.15 {
			within++
		}
		t.Logf("%s: %+.1f %%", c.name, 100*off)
		worst = max(worst, off)
	}
	t.Logf("%d of %d pools are within 15 %%, the most optimistic by %.1f %%", within, usable, 100*worst)
	if usable < 130 || float64(within) < 0.9*float64(usable) || worst > 0.15 {
		t.Errorf("%d of %d pools are within 15 %%, the most optimistic by %.1f %%", within, usable, 100*worst)
	}
}

// One replica serves 20 requests per second within the objective, so that its demand and that of
// six replicas need different headrooms.
func TestReasonTellsTheHeadroom(t *testing.T) {
	headroom := func(replicas int, rate float64) (percent, of int) {
		s := newScenario(group{name: "h100", cost: 3, max: 30, accelerator: "H100", ready: replicas, running: 20, kv: 0.1, rate: rate, usage: balanced(onH100, rate)})
		s.Variants[0].Objective = fleet.Objective{TTFT: 200 * time.Millisecond, ITL: 40 * time.Millisecond, Percentile: 0.95}
		s.Variants[0].Profile = onH100
		s.measuredLengths()
		why := s.decide(t)["h100"].Reason
		_, text, found := strings.Cut(why.Text, ", headroom ")
		if n, err := fmt.Sscanf(text, "%d%% for %d replica", &percent, &of); !found || n != 2 || err != nil {
			t.Fatalf("no headroom in %q", why.Text)
		}
		return percent, of
	}
	one, replicas := headroom(1, 10)
	if replicas != 1 {
		t.Errorf("headroom for %d replicas, want 1", replicas)
	}
	more, replicas := headroom(8, 14)
	if replicas < 4 || more >= one {
		t.Errorf("headroom %d %% for %d replicas, %d %% for 1", more, replicas, one)
	}
}

func TestWeightsOfAMixAreItsReplicas(t *testing.T) {
	of := func(n int, share float64, p analyzer.Pool) candidate {
		return candidate{variant: &variant{Variant: &fleet.Variant{}, now: n}, share: share, capacity: analyzer.Capacity{Pool: p}}
	}
	slack := analyzer.Pool{Alone: 0.5, Exponent: 1}
	for name, test := range map[string]struct {
		candidates []candidate
		want       []float64 // shares
		required   float64   // for all of the demand
	}{
		"one variant, less than a replica": {[]candidate{of(1, 2, slack)}, []float64{4}, 2},
		"one variant, two replicas":        {[]candidate{of(3, 0.5, slack)}, []float64{0.5 / math.Sqrt(0.5)}, 1 / math.Sqrt(0.5)},
		"no replica yet":                   {[]candidate{of(0, 0.5, slack)}, []float64{0.5 / math.Sqrt(0.5)}, 1 / math.Sqrt(0.5)},
		"no headroom":                      {[]candidate{of(2, 0.5, analyzer.Pool{})}, []float64{0.5}, 1},
		"capacity not known":               {[]candidate{of(1, 0, slack)}, []float64{0}, 1},
		"the other variant has none":       {[]candidate{of(2, 0.5, analyzer.Pool{}), of(0, 0.2, slack)}, []float64{0.5, 0.2}, 1},
		"one of each":                      {[]candidate{of(1, 1, slack), of(1, 1, analyzer.Pool{})}, []float64{math.Sqrt2, math.Sqrt2}, math.Sqrt2},
	} {
		z := &sizedModel{candidates: test.candidates, demand: demand{latest: 1}}
		z.sharePool()
		for i, c := range z.candidates {
			if math.Abs(c.share-test.want[i]) > 1e-9 {
				t.Errorf("%s: share %v, want %v", name, c.share, test.want[i])
			}
		}
		if math.Abs(z.demand.latest-test.required) > 1e-9 {
			t.Errorf("%s: %v required, want %v", name, z.demand.latest, test.required)
		}
	}
}
