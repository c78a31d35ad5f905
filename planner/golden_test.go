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

// goldens are the scenarios whose snapshots stand in testdata as files that can be read, edited and sent. A snapshot that an
// operator sends goes into the same directory by hand.
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
			standing("cheap", 5, time.Minute).standing("fast", 1, 20*time.Minute).missing("prometheus query gauges", "connection refused"),
		"replicas-do-not-start": newScenario(cheap(group{ready: 1, stuck: 2, running: 60, kv: 0.69, rate: 6}), fast(group{})).gateway(0, 14),
		"idle-goes-to-zero":     newScenario(cheap(group{ready: 2}), fast(group{ready: 1})).load(idle).toZero(),
		"queue-wakes-one":       newScenario(cheap(group{}), fast(group{})).toZero().gateway(7, 0.2),
		"two-claims-on-a-target": newScenario(
			group{name: "newer", cost: 9, max: 3, claims: "cheap", created: epoch.Add(-time.Minute)},
			cheap(group{ready: 2, running: 60, kv: 0.6, rate: 5, created: epoch.Add(-time.Hour)})),
		"refused-variant-carries-its-load": newScenario(
			cheap(group{ready: 2, running: 60, kv: 0.6, rate: 6, variant: refused}), fast(group{ready: 1, running: 40, kv: 0.3, rate: 12})),
		"foreign-autoscaler": newScenario(
			cheap(group{ready: 2, running: 60, kv: 0.6, rate: 6, workload: foreign}), fast(group{ready: 1, running: 40, kv: 0.3, rate: 12})),
		"paused-variants": newScenario(
			cheap(group{ready: 3, running: 90, waiting: 4, kv: 0.85, rate: 6, variant: paused(fleet.Pause{All: true})}),
			fast(group{variant: paused(fleet.Pause{In: true, Awake: true})}),
			group{name: "spare", cost: 1, max: 3, accelerator: "L40S", ready: 1, running: 60, kv: 0.6, rate: 6, variant: paused(fleet.Pause{All: true, Fixed: true, Replicas: 2})},
		).gateway(0, 40),
		"spill-where-the-cheap-kind-is-full":  spill(),
		"shortage-by-priority":                competitors().class("a-cheap", "premium", 10).class("b-cheap", "batch", -10),
		"held-variant-keeps-its-accelerators": heldBeside(),
		"switch-without-room":                 switchWithoutRoom(1),
		"switch-that-makes-room":              switchThatMakesRoom(),
		"advice-to-what-others-scale": newScenario(
			cheap(group{ready: 6, running: 10, kv: 0.1, rate: 1, variant: advisory, workload: foreign}), fast(group{ready: 1, running: 10, kv: 0.1, rate: 1, variant: advisory})),
		"advice-beside-what-is-scaled": newScenario(
			cheap(group{ready: 2, running: 60, kv: 0.6, rate: 6}), fast(group{ready: 1, running: 40, kv: 0.3, rate: 12, variant: advisory}),
			group{name: "again", cost: 9, max: 3, claims: "cheap", variant: advisory}),
		"faulty-variant-carries-its-load": newScenario(
			cheap(group{ready: 2, running: 60, kv: 0.6, rate: 6, variant: faulty}), fast(group{ready: 1, running: 40, kv: 0.3, rate: 12})),
		"contradicting-facts": newScenario(
			cheap(group{ready: 1, running: 60, kv: 0.6, rate: 6, created: epoch.Add(-time.Hour)}),
			group{name: "cheap-too", cost: 1.5, max: 3, accelerator: "L40S", objective: 40 * time.Millisecond, ready: 1, running: 60, kv: 0.6, rate: 6, created: epoch.Add(-time.Minute)},
			group{name: "two-triggers", cost: 1, max: 3, ready: 1, mute: true, variant: func(v *fleet.Variant) {
				v.Triggers, v.Invalid = 2, "triggers hold 2 of ours; give each model an object of its own"
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
				t.Errorf("the plan is\n%s\nwant\n%s\nread the difference; -update accepts it", got, want)
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
