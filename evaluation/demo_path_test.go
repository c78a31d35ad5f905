package evaluation_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/wva-project/wva/demo"
	"github.com/wva-project/wva/evaluation"
	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/simulation"
)

// The demo calls the server over gRPC and receives its pushes. The evaluation asks it directly. On
// the same fleet and requests, which leave one variant at zero for a while, both have the same
// replicas at every cycle.
func TestWVAScalesAsInTheDemo(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: 57 s under the race detector")
	}
	t.Parallel()
	trace := burstyTrace(t)
	ticks := demoTicks(t, trace)

	requests, err := simulation.ReadTrace(strings.NewReader(trace), fleet.ModelID{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := evaluation.NewCase(evaluation.Trace("bursty", requests, 1), demoSetup(t), 1)
	if err != nil {
		t.Fatal(err)
	}
	o := mustRun(t, c, "wva", evaluation.Setting{})
	replicas, next, compared := map[string]int{}, 0, 0
	for _, tick := range ticks {
		for next < len(o.Replicas) && o.Replicas[next].Seconds < float64(tick.Seconds) {
			replicas[o.Replicas[next].Variant] = o.Replicas[next].Replicas
			next++
		}
		if float64(tick.Seconds) > c.Until { // the evaluation measures the load alone
			break
		}
		for _, v := range tick.Variants {
			compared++
			if replicas[v.Name] != v.Spec {
				t.Fatalf("%s has %d replicas at %d s, in the demo %d", v.Name, replicas[v.Name], tick.Seconds, v.Spec)
			}
		}
	}
	toZero := slices.ContainsFunc(o.Replicas[:next], func(c evaluation.Change) bool { return c.Replicas == 0 })
	if next < 5 || compared < 40 || !toZero {
		t.Errorf("%d changes in %d comparisons prove nothing; make the load change more", next, compared)
	}
}

// burstyTrace is a trace with a burst that needs the expensive variant.
func burstyTrace(t *testing.T) string {
	t.Helper()
	requests, err := simulation.Generate(simulation.Stream{
		Seed: 3, Until: 1500, Prompt: simulation.Lengths{Mean: 1000, P99: 4000}, Output: simulation.Lengths{Mean: 200, P99: 600},
		Rate: simulation.Ramps(
			simulation.Point{At: 0, PerSecond: 1}, simulation.Point{At: 399, PerSecond: 1},
			simulation.Point{At: 400, PerSecond: 36}, simulation.Point{At: 500, PerSecond: 36}, simulation.Point{At: 501, PerSecond: 1},
		),
	})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	text.WriteString("TIMESTAMP,ContextTokens,GeneratedTokens\n")
	for _, r := range requests {
		fmt.Fprintf(&text, "%.6f,%d,%d\n", r.Arrival, r.Prompt, r.Output)
	}
	return text.String()
}

func demoTicks(t *testing.T, trace string) []demo.Tick {
	t.Helper()
	var output bytes.Buffer
	if _, err := demo.Run(context.Background(), demo.Options{Trace: strings.NewReader(trace), JSON: true, Output: &output}); err != nil {
		t.Fatal(err)
	}
	var ticks []demo.Tick
	lines := bufio.NewScanner(&output)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var tick demo.Tick
		if err := json.Unmarshal(lines.Bytes(), &tick); err == nil && tick.Type == "tick" {
			ticks = append(ticks, tick)
		}
	}
	return ticks
}

// demoSetup is the fleet of the demo.
func demoSetup(t *testing.T) evaluation.Setup {
	t.Helper()
	var documents []string
	for _, name := range []string{"chat-h100", "chat-l40s"} {
		data, err := os.ReadFile("../demo/manifests/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, string(data))
	}
	objects, err := evaluation.ReadFleet([]byte(strings.Join(documents, "---\n")))
	if err != nil {
		t.Fatal(err)
	}
	setup, err := evaluation.NewSetup("demo", objects, evaluation.SetupOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return setup
}
