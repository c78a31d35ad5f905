package planner

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

var update = flag.Bool("update", false, "write the golden plans, and the snapshots of the scenarios, anew")

// goldens are the scenarios whose snapshots are files in testdata that can be read, edited and
// sent. A snapshot that an operator sends is added to the same directory by hand.
func goldens() map[string]*scenario {
	idle := func(l *fleet.Load) {
		l.PeakArrivals, l.PeakInFlight, l.PeakCovered = fleet.Observed(0), fleet.Observed(0), true
		l.IdleCovered, l.LastActive = 10*time.Minute, epoch.Add(-11*time.Minute)
	}
	return map[string]*scenario{
		"spill-to-the-fast-variant": newScenario(cheap(group{ready: 3, running: 90, waiting: 4, kv: 0.85, rate: 6, max: 3}), fast(group{})).gateway(0, 30),
		"shift-to-the-cheap-variant": newScenario(
			cheap(group{ready: 1, loading: 2, running: 20, kv: 0.2, rate: 2}), fast(group{ready: 1, running: 40, kv: 0.3, rate: 12})),
		"prometheus-is-down": newScenario(cheap(group{ready: 3, mute: true}), fast(group{ready: 1, mute: true})).
			previous("cheap", 5, time.Minute).previous("fast", 1, 20*time.Minute).missing("prometheus query gauges", "connection refused"),
		"replicas-do-not-start":  newScenario(cheap(group{ready: 1, stuck: 2, running: 60, kv: 0.69, rate: 6}), fast(group{})).gateway(0, 14),
		"idle-scales-to-zero":    newScenario(cheap(group{ready: 2}), fast(group{ready: 1})).load(idle).scaleToZero(),
		"queue-scales-from-zero": newScenario(cheap(group{}), fast(group{})).scaleToZero().gateway(7, 0.2),
		"duplicate-target": newScenario(
			group{name: "newer", cost: 9, max: 3, claims: "cheap", created: epoch.Add(-time.Minute)},
			cheap(group{ready: 2, running: 60, kv: 0.6, rate: 5, created: epoch.Add(-time.Hour)})),
		"unsupported-variant-keeps-serving": newScenario(
			cheap(group{ready: 2, running: 60, kv: 0.6, rate: 6, variant: unsupported}), fast(group{ready: 1, running: 40, kv: 0.3, rate: 12})),
		"conflicting-hpa": newScenario(
			cheap(group{ready: 2, running: 60, kv: 0.6, rate: 6, workload: otherHPA}), fast(group{ready: 1, running: 40, kv: 0.3, rate: 12})),
		"paused-variants": newScenario(
			cheap(group{ready: 3, running: 90, waiting: 4, kv: 0.85, rate: 6, variant: paused(fleet.Pause{All: true})}),
			fast(group{variant: paused(fleet.Pause{In: true, Awake: true})}),
			group{name: "pinned", cost: 1, max: 3, accelerator: "L40S", ready: 1, running: 60, kv: 0.6, rate: 6, variant: paused(fleet.Pause{All: true, Fixed: true, Replicas: 2})},
		).gateway(0, 40),
		"spill-over-when-cheap-accelerators-are-full": spillOver(),
		"shortage-by-priority":                        competitors().class("a-cheap", "premium", 10).class("b-cheap", "batch", -10),
		"held-variant-keeps-its-accelerators":         heldBeside(),
		"switch-that-does-not-fit":                    switchThatDoesNotFit(1),
		"switch-that-frees-accelerators":              switchThatFreesAccelerators(),
		"dry-run-of-targets-that-others-scale": newScenario(
			cheap(group{ready: 6, running: 10, kv: 0.1, rate: 1, variant: dryRun, workload: otherHPA}), fast(group{ready: 1, running: 10, kv: 0.1, rate: 1, variant: dryRun})),
		"dry-run-beside-scaled-variants": newScenario(
			cheap(group{ready: 2, running: 60, kv: 0.6, rate: 6}), fast(group{ready: 1, running: 40, kv: 0.3, rate: 12, variant: dryRun}),
			group{name: "again", cost: 9, max: 3, claims: "cheap", variant: dryRun}),
		"invalid-variant-keeps-serving": newScenario(
			cheap(group{ready: 2, running: 60, kv: 0.6, rate: 6, variant: invalid}), fast(group{ready: 1, running: 40, kv: 0.3, rate: 12})),
		"conflicting-definitions": newScenario(
			cheap(group{ready: 1, running: 60, kv: 0.6, rate: 6, created: epoch.Add(-time.Hour)}),
			group{name: "cheap-too", cost: 1.5, max: 3, accelerator: "L40S", objective: 40 * time.Millisecond, ready: 1, running: 60, kv: 0.6, rate: 6, created: epoch.Add(-time.Minute)},
			group{name: "two-triggers", cost: 1, max: 3, ready: 1, mute: true, variant: func(v *fleet.Variant) {
				v.Triggers, v.Invalid = 2, problem("triggers include 2 of WVA", "allowed: one trigger with a modelID; give each model an object of its own")
			}}),
	}
}

func TestGoldenSnapshotsGiveTheirPlans(t *testing.T) {
	if *update {
		for name, s := range goldens() {
			data, err := fleet.EncodeSnapshot(s.Snapshot, nil)
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join("testdata", name+".snapshot.json"), data)
		}
	}
	files, err := filepath.Glob("testdata/*.snapshot.json")
	if err != nil || len(files) < len(goldens()) {
		t.Fatalf("%d snapshots in testdata (%v), want at least %d; write them with -update", len(files), err, len(goldens()))
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".snapshot.json"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			snapshot, err := fleet.DecodeSnapshot(data, nil)
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.MarshalIndent(Plan(snapshot, Policy{}), "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden := strings.TrimSuffix(file, ".snapshot.json") + ".plan.json"
			if *update {
				write(t, golden, append(got, '\n'))
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(append(got, '\n'), want) {
				t.Errorf("the plan is\n%s\nwant\n%s\ncheck the difference; -update accepts it", got, want)
			}
		})
	}
}

func write(t *testing.T, file string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o644); err != nil {
		t.Fatal(err)
	}
}
