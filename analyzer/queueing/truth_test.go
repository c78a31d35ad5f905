package queueing_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// The simulator is compared with highest rates that another simulator found, with the same rules
// and lengths and with five replicates of its own.
func TestTruthIsThatOfAnotherSimulator(t *testing.T) {
	rows := table(t, "sizing_truth_chat.csv")
	if rows == nil || table(t, "azure_conv_2023.csv") == nil {
		t.Skip("no reference data beside the checkout")
	}
	engines, mixes := engines(t), mixes(t)
	deviations, rates := make([]float64, len(rows)), make([]truth, len(rows))
	atOnce(len(rows), func(i int) {
		row := rows[i]
		q := question{
			name: fmt.Sprint("chat/", i), engine: engines[row["prof"]+" 8B"], mix: mixes["chat"], effort: small,
			objective: objective{ttft: number(t, row["ttft"]) / 1e3, tpot: number(t, row["tpot"]) / 1e3, level: number(t, row["level"])},
			variation: number(t, row["cv2"]),
		}
		if *wholeGrid {
			q.effort = full
		} else if i%8 != 0 {
			return
		}
		q.sequences, q.budget = 256, int(number(t, row["mbt"]))
		rates[i] = q.truth()
		// A standard error from a few replicates is sometimes far too small, but rarely that of
		// both sides.
		floor := 0.01 * rates[i].Rate
		deviations[i] = (rates[i].Rate - number(t, row["lam"])) / math.Hypot(max(rates[i].Error, floor), max(number(t, row["se"]), floor))
	})
	var squares, compared, largest float64
	for i, deviation := range deviations {
		if rates[i].Rate == 0 {
			continue
		}
		compared++
		squares += deviation * deviation
		largest = max(largest, math.Abs(number(t, rows[i]["lam"])/rates[i].Rate-1))
		if math.Abs(deviation) > 4 {
			t.Errorf("row %d: %.3f ± %.3f, want %s ± %s", i+2, rates[i].Rate, rates[i].Error, rows[i]["lam"], rows[i]["se"])
		}
	}
	t.Logf("%.0f rows: deviations of %.1f standard errors (root mean square), of %.1f %% at most", compared, math.Sqrt(squares/compared), 100*largest)
	if squares > 4*compared {
		t.Errorf("the deviations are %.1f standard errors", math.Sqrt(squares/compared))
	}
}

func TestArrivalsHaveTheirRateAndVariation(t *testing.T) {
	for _, variation := range []float64{0.25, 1, 2, 4} {
		q := question{mix: []lengthPair{{1, 1}}, variation: variation}
		requests := q.arrivals(200_000, rand.New(rand.NewPCG(1, 1)))
		gaps := make([]float64, len(requests)-1)
		for i := range gaps {
			gaps[i] = requests[i+1].at - requests[i].at
		}
		mean, deviation := moments(gaps)
		if math.Abs(mean-1) > 0.02 || math.Abs(deviation*deviation/variation-1) > 0.04 {
			t.Errorf("gaps of mean %.3f and squared variation %.3f, want 1 and %v", mean, deviation*deviation, variation)
		}
	}
}

func BenchmarkTruth(b *testing.B) {
	q := question{
		name: "benchmark", effort: full, variation: 1,
		engine:    engine{alpha: 6e-3, beta: 8e-6, gamma: 42e-9, b: 13e-6, c: 0.8e-9, sequences: 256, budget: 2048},
		objective: objective{ttft: 1, tpot: 0.025, level: 0.95},
		mix:       generated(5, lognormal{mean: 1155, sigma: 0.8}, lognormal{mean: 211, sigma: 0.8}),
	}
	r := q.replay(0)
	b.ReportAllocs()
	for b.Loop() {
		r.run(19, math.MaxInt)
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*len(r.requests)), "µs/request")
}
