package collector_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/collector"
	"github.com/wva-project/wva/demo/promstore"
)

// BenchmarkCollect asks about fleets with an hour of history at the default windows: Prometheus'
// work, the transport of its answers and reading them, all in one process.
func BenchmarkCollect(b *testing.B) {
	for _, pods := range []int{30, 500, 5000} {
		b.Run(fmt.Sprintf("pods=%d", pods), func(b *testing.B) { benchmarkCollect(b, pods, exposeVLLM) })
	}
	b.Run("sglang/pods=500", func(b *testing.B) { benchmarkCollect(b, 500, sglang) })
}

func exposeVLLM(pod string, e report) []promstore.Sample { return vllm(pod, 0, e) }

func benchmarkCollect(b *testing.B, pods int, expose func(pod string, e report) []promstore.Sample) {
	w := benchmarkFleet(b, pods, expose)
	b.ResetTimer()
	for b.Loop() {
		// Each collector is new: nothing is answered from memory.
		c, err := collector.New(collector.Options{Address: "http://prometheus.invalid", RoundTripper: w,
			Lag: -1, Timeout: 14 * time.Second, Logger: quiet()})
		require.NoError(b, err)
		observation := c.Collect(b.Context(), at(w.last), objectives)
		require.Len(b, observation.Usages, pods)
		require.Empty(b, observation.Missing)
	}
}

// fleetBounds are the bounds of lengths with a context of 131,072 tokens.
var fleetBounds = []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000, math.Inf(1)}

// lengthMetrics names the histograms of lengths at the end of the hour: nothing asks for their
// past.
func lengthMetrics(second int) []string {
	if second < 3000 {
		return nil
	}
	return []string{"vllm:request_prompt_tokens", "vllm:request_generation_tokens"}
}

// shareOf returns the buckets of a histogram of so many lengths.
func shareOf(total float64, bounds []float64) []float64 {
	below := make([]float64, len(bounds))
	for i, bound := range bounds {
		below[i] = math.Floor(total * (1 - math.Exp(-bound/1000)))
	}
	return below
}

func benchmarkFleet(b *testing.B, pods int, expose func(pod string, e report) []promstore.Sample) *world {
	w := newWorld(b)
	random := rand.New(rand.NewPCG(1, 2))
	totals := make([]float64, pods)
	for second := 0; second <= 3600; second += interval {
		samples := make([]promstore.Sample, 0, 64*pods)
		for i := range totals {
			totals[i] += float64(random.IntN(3 * interval))
			done := totals[i]
			pod := fmt.Sprintf("pod-%04d", i)
			for _, metric := range lengthMetrics(second) {
				samples = append(samples, histogramOf(pod, metric, fleetBounds, shareOf(done, fleetBounds))...)
			}
			samples = append(samples, expose(pod, report{
				running: float64(random.IntN(64)), waiting: float64(random.IntN(6)), kv: random.Float64(),
				firstTokens: done, finished: done, prefillSeconds: 0.2 * done, prefixQueries: 1000 * done, prefixHits: 300 * done, prompt: 1000 * done, output: 200 * done, tokenSeconds: 4 * done, tokenGaps: 200 * done,
			})...)
		}
		w.scrape("fleet", second, samples...)
	}
	return w
}
