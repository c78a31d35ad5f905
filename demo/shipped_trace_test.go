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

var update = flag.Bool("update", false, "rewrite the traces in examples/traces")

// shippedTraces are the traces of examples/traces with their seeds, which the page beside them
// names.
var shippedTraces = map[string]simulation.Stream{
	"bursty.csv": {
		Seed: 7, Until: 20 * 60, Burstiness: 3,
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
	},
	"trickle.csv": {
		Seed: 5, Until: 60 * 60,
		Rate: func(second float64) float64 {
			burst := simulation.Bursts(simulation.Burst{At: 0, Duration: 240, PerSecond: 12})
			trickle := simulation.Ramps(
				simulation.Point{At: 240, PerSecond: 0.3}, simulation.Point{At: 1500, PerSecond: 0.03},
				simulation.Point{At: 2700, PerSecond: 0.3}, simulation.Point{At: 3600, PerSecond: 0.03},
			)
			return burst(second) + trickle(second)
		},
	},
}

// TestShippedTracesAreGenerated compares the traces of examples/traces with the generator.
func TestShippedTracesAreGenerated(t *testing.T) {
	for name, stream := range shippedTraces {
		t.Run(name, func(t *testing.T) {
			stream.Model = chatModel
			stream.Prompt = simulation.Lengths{Mean: 1100, P99: 5000, Max: 14_000}
			stream.Output = simulation.Lengths{Mean: 210, P99: 700, Max: 1000}
			requests, err := simulation.Generate(stream)
			require.NoError(t, err)
			var csv bytes.Buffer
			csv.WriteString("TIMESTAMP,ContextTokens,GeneratedTokens\n")
			for _, r := range requests {
				fmt.Fprintf(&csv, "%.3f,%d,%d\n", r.Arrival, r.Prompt, r.Output)
			}
			path := "../examples/traces/" + name
			if *update {
				require.NoError(t, os.WriteFile(path, csv.Bytes(), 0o644))
			}
			shipped, err := os.ReadFile(path)
			require.NoError(t, err)
			require.True(t, bytes.Equal(csv.Bytes(), shipped), "%s differs from the generator; run go test ./demo -run ShippedTrace -update", path)
		})
	}
}
