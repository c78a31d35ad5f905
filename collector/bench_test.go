package collector_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/collector"
	"github.com/wva-project/wva/demo/promstore"
)

// BenchmarkCollect asks about fleets with an hour of history at the default windows: Prometheus' work, the transport of its
// answers and reading them, all in one process.
func BenchmarkCollect(b *testing.B) {
	for _, pods := range []int{30, 500, 5000} {
		b.Run(fmt.Sprintf("pods=%d", pods), func(b *testing.B) {
			w := benchmarkFleet(b, pods)
			b.ResetTimer()
			for b.Loop() {
				// Each collector is new: nothing is answered from memory.
				c, err := collector.New(collector.Options{Address: "http://prometheus.invalid", RoundTripper: w,
					Lag: -1, Timeout: 14 * time.Second, Logger: quiet()})
				require.NoError(b, err)
				observation := c.Collect(b.Context(), at(w.last))
				require.Len(b, observation.Usages, pods)
				require.Empty(b, observation.Missing)
			}
		})
	}
}

func benchmarkFleet(b *testing.B, pods int) *world {
	w := newWorld(b)
	random := rand.New(rand.NewPCG(1, 2))
	totals := make([]float64, pods)
	for second := 0; second <= 3600; second += interval {
		samples := make([]promstore.Sample, 0, 20*pods)
		for i := range totals {
			totals[i] += float64(random.IntN(3 * interval))
			done := totals[i]
			samples = append(samples, vllm(fmt.Sprintf("pod-%04d", i), 0, engine{
				running: float64(random.IntN(64)), waiting: float64(random.IntN(6)), kv: random.Float64(),
				firstTokens: done, finished: done, prompt: 1000 * done, output: 200 * done, tokenSeconds: 4 * done, tokenGaps: 200 * done,
			})...)
		}
		w.scrape("fleet", second, samples...)
	}
	return w
}
