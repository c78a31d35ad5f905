package evaluation_test

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/wva-project/wva/evaluation"
	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/simulation"
)

// BenchmarkRun is an hour of Azure's conversation trace at four times its rate. The bar is 10,000
// simulated requests a second of one core.
func BenchmarkRun(b *testing.B) {
	const path = "../../shared/data/azure_conv_2023.csv"
	file, err := os.Open(path)
	if err != nil {
		b.Skip("no trace: ", err)
	}
	defer file.Close()
	trace, err := simulation.ReadTrace(file, fleet.ModelID{})
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range []string{"wva", "static"} {
		b.Run(name, func(b *testing.B) {
			objects, err := evaluation.EmbeddedFleet("chat")
			if err != nil {
				b.Fatal(err)
			}
			setup, err := evaluation.NewSetup("chat", objects, evaluation.SetupOptions{})
			if err != nil {
				b.Fatal(err)
			}
			c, err := evaluation.NewCase(evaluation.Trace("azure", trace, 4), setup, 1)
			if err != nil {
				b.Fatal(err)
			}
			p, err := evaluation.PolicyOf(name)
			if err != nil {
				b.Fatal(err)
			}
			choice := evaluation.Choice{Name: "chat-h100", Variants: []fleet.VariantID{c.Setup.Variants[0].ID}, Shares: []float64{1}}
			began := processorTime(b)
			for b.Loop() {
				outcome, err := evaluation.Run(b.Context(), c, p, evaluation.Setting{Knob: 6, Choice: choice})
				if err != nil {
					b.Fatal(err)
				}
				b.Logf("%.4f within at %.2f an hour, worst minute %.2f", outcome.Attainment, outcome.CostPerHour, outcome.WorstMinute)
			}
			b.ReportMetric(float64(b.N*len(c.Requests))/(processorTime(b)-began).Seconds(), "req/core-s")
		})
	}
}

// processorTime is that of this process: other processes of a busy machine do not count.
func processorTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
