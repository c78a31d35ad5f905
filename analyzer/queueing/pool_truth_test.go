package queueing_test

import (
	"encoding/csv"
	"flag"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wva-project/wva/analyzer/queueing"
	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/simulation"
)

// The truth for pools: the simulator's fleet with a fixed number of replicas behind one gateway,
// and the highest rate at which enough requests meet the objective. It takes minutes, so its
// answers are kept in a file.
const poolTruthFile = "testdata/pool_truth.csv"

var poolTruth = flag.Bool("pool", false, "simulate the truth of pools that "+poolTruthFile+" lacks; after a change of the simulator, of all: delete its rows")

// lightPart is the part of the highest rate at which the load split of a mix is measured.
const lightPart = 0.7

// spec is the cell's fleet.
func (c *poolCell) spec() simulation.FleetSpec {
	spec := simulation.FleetSpec{Routing: c.routing}
	for i, name := range c.accelerators {
		e, id := poolEngines[name], fleet.VariantID{Namespace: "pool", Name: name}
		kv := c.kv
		if kv == 0 {
			kv = manySlots
		}
		spec.Variants = append(spec.Variants, simulation.VariantSpec{
			ID: id, Model: poolModel, Target: fleet.TargetID{Namespace: "pool", Name: name}, Initial: c.replicas[i], KVTokens: kv,
			Profile: simulation.Profile{
				Iteration: e.alpha, PerSequence: e.beta, PerContextToken: e.gamma, PerPromptToken: e.b, PerPromptTokenSquared: e.c,
			},
		})
	}
	return spec
}

var poolModel = fleet.ModelID{Namespace: "pool", Name: "m"}

// run serves the requests at a rate, up to a minute after the last one that counts.
func (c *poolCell) run(t *testing.T, requests []request, rate float64) *simulation.Fleet {
	f, err := simulation.NewFleet(c.spec())
	if err != nil {
		t.Fatal(err)
	}
	all := make([]simulation.Request, len(requests))
	for i, r := range requests {
		all[i] = simulation.Request{Arrival: r.at / rate, Model: poolModel, Prompt: int(r.prompt), Output: int(r.output)}
	}
	if err := f.Offer(all); err != nil {
		t.Fatal(err)
	}
	f.Advance(all[len(all)-c.warming()].Arrival + 60)
	return f
}

// attained is the share of requests that meet the objective at a rate.
func (c *poolCell) attained(t *testing.T, requests []request, rate float64) float64 {
	from, to := requests[c.warming()].at/rate, requests[len(requests)-c.warming()].at/rate
	o := fleet.Objective{TTFT: time.Duration(c.ttft * 1e6), ITL: time.Duration(c.itl * 1e6)}
	met := 0
	for _, outcome := range c.run(t, requests, rate).Outcomes() {
		if outcome.Arrival >= from && outcome.Arrival < to && outcome.Meets(o) {
			met++
		}
	}
	return float64(met) / float64(len(requests)-2*c.warming())
}

// firstShare is the share of the requests that the first accelerator serves at a rate.
func (c *poolCell) firstShare(t *testing.T, rate float64) float64 {
	first, all := 0.0, 0.0
	for _, target := range c.run(t, c.requests(0), rate).Series() {
		for _, s := range target.Samples {
			if s.Name == "vllm:request_success_total" {
				all += s.Value
				if strings.HasPrefix(target.Pod, c.accelerators[0]) {
					first += s.Value
				}
			}
		}
	}
	return first / all
}

// warming is the number of requests before the first and behind the last that counts.
func (c *poolCell) warming() int { return 300 + 150*c.size() }

// requests is one of the series that the truth is the mean of.
func (c *poolCell) requests(series int) []request {
	source := rand.New(rand.NewPCG(uint64(series), 7))
	q := question{mix: poolUses[c.use], variation: c.variation}
	return q.arrivals(2*c.warming()+16_000+4_000*c.size(), source)
}

// truth is the highest rate of the whole pool, the mean of two series of requests.
func (c *poolCell) truth(t *testing.T) float64 {
	sum := 0.0
	const series = 2
	for s := range series {
		requests := c.requests(s)
		keeps := func(rate float64) bool { return c.attained(t, requests, rate) >= c.level }
		low, high := 0.5*c.meanRate(), 0.7*c.meanRate()
		for !keeps(low) {
			if low, high = 0.6*low, low; low < 0.01*c.meanRate() {
				return 0
			}
		}
		for low >= 0.99*high || keeps(high) {
			low, high = high, 1.2*high
		}
		for high > 1.01*low {
			if middle := math.Sqrt(low * high); keeps(middle) {
				low = middle
			} else {
				high = middle
			}
		}
		sum += math.Sqrt(low*high) / series
	}
	return sum
}

func TestTruthOfPools(t *testing.T) {
	if !*poolTruth {
		t.Skip("minutes of simulation; -pool runs it")
	}
	known := map[string][]string{}
	columns := len(poolColumns) - 2
	for _, row := range poolTruths(t) {
		known[strings.Join(row[:columns], ",")] = row
	}
	rows := [][]string{poolColumns}
	for _, c := range poolCells() {
		row, found := known[strings.Join(c.name(), ",")]
		if !found {
			rate := c.truth(t)
			first := c.firstShare(t, lightPart*rate)
			row = append(c.name(), strconv.FormatFloat(rate, 'g', 4, 64), strconv.FormatFloat(first, 'g', 4, 64))
			t.Log(row)
		}
		rows = append(rows, row)
	}
	file, err := os.Create(poolTruthFile)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := csv.NewWriter(file).WriteAll(rows); err != nil {
		t.Fatal(err)
	}
}

var poolColumns = []string{"use", "accelerators", "replicas", "ttft_ms", "itl_ms", "percentile", "dispersion", "kv_tokens", "routing", "rate", "first_share"}

// A replica of n equal ones gets arrivals with an n-th of the index of dispersion.
func TestReplicasOfAPoolServeWhatTheSimulatorServes(t *testing.T) {
	var sizer queueing.Sizer
	mixes := map[string]*queueing.Mix{}
	for use, lengths := range poolUses {
		mixes[use] = lengthsFrom(lengths).sampled
	}
	for _, line := range poolTruths(t) {
		if strings.Contains(line[1], "+") || line[8] != "least requests" {
			continue
		}
		n := number(t, line[2])
		c := cell{question: question{engine: poolEngines[line[1]]}}
		c.sequences, c.budget, c.kv, c.variation = 256, 2048, number(t, line[7]), number(t, line[6])/n
		c.objective = objective{ttft: number(t, line[3]) / 1e3, tpot: number(t, line[4]) / 1e3, level: number(t, line[5])}
		answer := must(sizer.MaxRate(c.asked(mixes[line[0]])))
		off := answer.Rate*n/number(t, line[9]) - 1
		if c.variation < 1 && math.Abs(off) > 0.15 || c.variation >= 1 && off > 0.20 {
			t.Errorf("%s: %+.1f %%", strings.Join(line, " "), 100*off)
		}
	}
}

// poolTruths are the rows of the file.
func poolTruths(t *testing.T) [][]string {
	file, err := os.Open(poolTruthFile)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows[1:]
}
