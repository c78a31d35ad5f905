package demo

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/simulation"
)

var update = flag.Bool("update", false, "rewrite the trace in examples/traces")

// TestShippedTraceIsGenerated compares the trace of examples/traces with the generator and the seed
// that the page beside it names.
func TestShippedTraceIsGenerated(t *testing.T) {
	const path = "../examples/traces/bursty.csv"
	requests, err := simulation.Generate(simulation.Stream{
		Model: chatModel, Seed: 7, Until: 20 * 60, Burstiness: 3,
		Rate: func(second float64) float64 {
			steady := simulation.Ramps(
				simulation.Point{At: 0, PerSecond: 3}, simulation.Point{At: 300, PerSecond: 6},
				simulation.Point{At: 900, PerSecond: 6}, simulation.Point{At: 1200, PerSecond: 2},
			)
			bursts := simulation.Bursts(
				simulation.Burst{At: 240, Duration: 150, PerSecond: 16}, simulation.Burst{At: 660, Duration: 210, PerSecond: 22},
			)
			return steady(second) + bursts(second)
		},
		Prompt: simulation.Lengths{Mean: 1100, P99: 5000, Max: 14_000}, Output: simulation.Lengths{Mean: 210, P99: 700, Max: 1000},
	})
	require.NoError(t, err)
	var csv bytes.Buffer
	csv.WriteString("TIMESTAMP,ContextTokens,GeneratedTokens\n")
	for _, r := range requests {
		fmt.Fprintf(&csv, "%.3f,%d,%d\n", r.Arrival, r.Prompt, r.Output)
	}
	if *update {
		require.NoError(t, os.WriteFile(path, csv.Bytes(), 0o644))
	}
	shipped, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, bytes.Equal(csv.Bytes(), shipped), "%s differs from the generator; run go test ./demo -run ShippedTrace -update", path)
}
