package app

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/planner"
)

// outcomeOf is one cycle: the decision beside the hostile tenant, and the snapshot of the same
// instant without it.
type outcomeOf struct {
	r        *round
	snapshot fleet.Snapshot
	plan     fleet.Plan
	control  fleet.Snapshot
	policy   planner.Policy
}

// check returns the first guarantee that a cycle breaks.
func check(o outcomeOf) error {
	alone := planner.Plan(o.control, o.policy)
	for _, each := range []func(outcomeOf, fleet.Plan) error{
		sameObservation, keepsEqualPart, startsNothingUnasked, keepsPlainText, boundsWork, ignoresOrder,
	} {
		if err := each(o, alone); err != nil {
			return err
		}
	}
	return nil
}

// sameObservation: the hostile tenant changes nothing in the rows of the victim, and hides nothing.
// Latencies are compared by the decisions alone: one query has the buckets beside the objectives of
// all tenants, and each model reads those beside its own.
func sameObservation(o outcomeOf, _ fleet.Plan) error {
	for _, row := range o.snapshot.Missing {
		if row.Hides != "" && !slices.Contains(o.control.Missing, row) {
			return fmt.Errorf("the hostile tenant hides %s: %s: %s", row.Hides, row.Source, row.Reason)
		}
	}
	own := func(s fleet.Snapshot) fleet.Snapshot {
		loads := filtered(s.Loads, func(l fleet.Load) bool { return l.Namespace == victimTenant })
		for i := range loads {
			loads[i].Latencies = fleet.Latencies{}
		}
		return fleet.Snapshot{
			Variants:  filtered(s.Variants, func(v fleet.Variant) bool { return v.ID.Namespace == victimTenant }),
			Workloads: filtered(s.Workloads, func(w fleet.Workload) bool { return w.ID.Namespace == victimTenant }),
			Usages:    filtered(s.Usages, func(u fleet.Usage) bool { return u.Namespace == victimTenant }),
			Loads:     loads,
		}
	}
	with, without := own(o.snapshot), own(o.control)
	if reflect.DeepEqual(with, without) {
		return nil
	}
	a, errA := fleet.EncodeSnapshot(with, nil)
	b, errB := fleet.EncodeSnapshot(without, nil)
	if errA == nil && errB == nil && bytes.Equal(a, b) {
		return nil // NaN differs from itself
	}
	return fmt.Errorf("the hostile tenant changes the victim's rows: %s", firstDifference(string(a), string(b)))
}

func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			before := strings.Join(x[max(0, i-20):i], "\n")
			return fmt.Sprintf("line %d: %s, without it %s; after\n%s", i, x[i], y[i], before)
		}
	}
	return fmt.Sprintf("%d lines, without it %d", len(x), len(y))
}

func filtered[T any](rows []T, keep func(T) bool) (kept []T) {
	for _, row := range rows {
		if keep(row) {
			kept = append(kept, row)
		}
	}
	return kept
}

func decisionOf(plan fleet.Plan, id fleet.VariantID) fleet.Decision {
	at := slices.IndexFunc(plan.Decisions, func(d fleet.Decision) bool { return d.Variant == id })
	if at < 0 {
		return fleet.Decision{}
	}
	return plan.Decisions[at]
}

// startsNothingUnasked: a model at zero that nobody asked for stays at zero.
func startsNothingUnasked(o outcomeOf, _ fleet.Plan) error {
	replicas := make(map[fleet.TargetID]int)
	pods := make(map[fleet.TargetID]int)
	for _, w := range o.snapshot.Workloads {
		replicas[w.ID.Unversioned()], pods[w.ID.Unversioned()] = w.Replicas, len(w.Pods)
	}
	running := make(map[fleet.ModelID]bool)
	for _, v := range o.snapshot.Variants {
		target := v.Target.Unversioned()
		if replicas[target]+pods[target] > 0 || hasRequests(o.snapshot, v) {
			running[v.Model] = true
		}
	}
	for _, v := range o.snapshot.Variants {
		d := decisionOf(o.plan, v.ID)
		asked := running[v.Model] || len(v.Invalid) > 0 || v.Unsupported != (fleet.Problem{}) || v.Pause != (fleet.Pause{}) || v.Range.Floor() > 0 || v.DryRun
		repeats := d.Held || d.Reason.Code == fleet.CodeDuplicateTarget
		if !asked && !repeats && d.Replicas > 0 {
			return fmt.Errorf("%s is started with %d replicas, and nobody asked for its model: %s", v.ID, d.Replicas, d.Reason)
		}
	}
	return nil
}

// keepsPlainText: no text of the hostile tenant ends a line, or is longer than its name.
func keepsPlainText(o outcomeOf, _ fleet.Plan) error {
	const longest = 2000
	for _, d := range slices.Concat(o.plan.Decisions, o.plan.Recommendations) {
		texts := []string{d.Reason.Text}
		for _, detail := range d.Reason.Details {
			texts = append(texts, detail.Text)
		}
		for _, finding := range d.Findings {
			texts = append(texts, finding.Text, finding.Remedy)
		}
		for _, text := range texts {
			if !utf8.ValidString(text) || len(text) > longest || strings.ContainsFunc(text, func(c rune) bool { return unicode.IsControl(c) || c == '\u2028' || c == '\u2029' }) {
				return fmt.Errorf("%s: %d characters, or not one line: %.300q", d.Variant, len(text), text)
			}
		}
	}
	return nil
}

// planning is read-locked while a plan is measured beside others, and locked to measure one alone.
var planning sync.RWMutex

// Work beside the hostile tenant, as a multiple of that without it, plus a constant for its own
// objects and for a machine under load.
const (
	mostTimes = 20
	mostExtra = time.Second
	mostBytes = 256 << 20
)

// boundsWork: a plan takes no more than a multiple of the time and memory of one without the
// hostile tenant. A plan that seems to is measured again, alone.
func boundsWork(o outcomeOf, _ fleet.Plan) error {
	planning.RLock()
	took, bytes := cost(o.snapshot, o.policy)
	planning.RUnlock()
	if took < mostExtra && bytes < mostBytes {
		return nil
	}
	planning.Lock()
	defer planning.Unlock()
	usual, usualBytes := cost(o.control, o.policy)
	for range 3 {
		took, bytes = cost(o.snapshot, o.policy)
		if took < mostTimes*usual+mostExtra && bytes < mostTimes*usualBytes+mostBytes {
			return nil
		}
	}
	return fmt.Errorf("a plan takes %v and %d MiB, and %v and %d MiB without the hostile tenant", took, bytes>>20, usual, usualBytes>>20)
}

// cost returns the time and the allocated bytes of a plan. Those of other goroutines count too.
func cost(s fleet.Snapshot, p planner.Policy) (time.Duration, uint64) {
	p.Memo = nil
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	started := time.Now()
	planner.Plan(s, p)
	took := time.Since(started)
	runtime.ReadMemStats(&after)
	return took, after.TotalAlloc - before.TotalAlloc
}

// ignoresOrder: rows in another order give the same plan.
func ignoresOrder(o outcomeOf, _ fleet.Plan) error {
	random := rand.New(rand.NewPCG(o.r.seed, uint64(o.r.cycle)))
	s := o.snapshot
	s.Variants, s.Workloads, s.Usages = shuffled(random, s.Variants), shuffled(random, s.Workloads), shuffled(random, s.Usages)
	s.Loads, s.Previous, s.Missing, s.Pools = shuffled(random, s.Loads), shuffled(random, s.Previous), shuffled(random, s.Missing), shuffled(random, s.Pools)
	for i := range s.Workloads {
		s.Workloads[i].Pods = shuffled(random, s.Workloads[i].Pods)
	}
	for i := range s.Pools {
		s.Pools[i].Nodes = shuffled(random, s.Pools[i].Nodes)
	}
	policy := o.policy
	policy.Memo = nil
	reordered := planner.Plan(s, policy)
	if reflect.DeepEqual(o.plan, reordered) {
		return nil
	}
	a, errA := fleet.EncodePlan(o.plan)
	b, errB := fleet.EncodePlan(reordered)
	if errA == nil && errB == nil && bytes.Equal(a, b) {
		return nil
	}
	return fmt.Errorf("rows in another order give another plan: %s", firstDifference(string(a), string(b)))
}

func shuffled[T any](random *rand.Rand, rows []T) []T {
	rows = slices.Clone(rows)
	random.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	return rows
}
