package planner

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

// mostFuzzTime is far above the time of any plan of an input of a few kilobytes.
const mostFuzzTime = 10 * time.Second

// FuzzPlan plans any input that can be read: it gives a plan in bounded time, without a number
// below zero.
func FuzzPlan(f *testing.F) {
	files, err := filepath.Glob("testdata/*.snapshot.json")
	if err != nil || len(files) == 0 {
		f.Fatalf("no snapshots, %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		in, err := DecodeInput(data)
		if err != nil {
			t.Skip()
		}
		planned := make(chan fleet.Plan, 1)
		go func() { planned <- Plan(in.Snapshot, in.Policy) }()
		var plan fleet.Plan
		select {
		case plan = <-planned:
		case <-time.After(mostFuzzTime):
			t.Fatalf("the plan takes more than %v", mostFuzzTime)
		}
		for _, d := range plan.Decisions {
			if d.Replicas < 0 {
				t.Errorf("%s: %d replicas", d.Variant, d.Replicas)
			}
		}
	})
}
