package planner

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/wva-project/wva/fleet"
)

// kvTarget is the share of the KV cache that a replica is sized for by default: its capacity is the
// rate at which it would use that much.
const kvTarget = 0.7

// serviceTime is the time that a request is in a batch: seconds.
const serviceTime = 4

// num returns a cell as a number, or the default if it is empty.
func (r *scenarioRow) num(column string, fallback float64) (float64, error) {
	cell := r.cells[column]
	if cell == "" {
		return fallback, nil
	}
	value, err := strconv.ParseFloat(cell, 64)
	if err != nil {
		return 0, lineError(r.line, "%s %s: write a number", column, cell)
	}
	return value, nil
}

// span returns a cell as a duration, or the default if it is empty.
func (r *scenarioRow) span(column string, fallback time.Duration) (time.Duration, error) {
	cell := r.cells[column]
	if cell == "" {
		return fallback, nil
	}
	value, err := time.ParseDuration(cell)
	if err != nil {
		return 0, lineError(r.line, "%s %s: write a duration such as 90s", column, cell)
	}
	return value, nil
}

// scenarioMarks are the words of the column "is", separated by commas.
var scenarioMarks = map[string]func(*fleet.Variant, *fleet.Workload){
	"invalid": func(v *fleet.Variant, _ *fleet.Workload) { v.Invalid = problem("role: no", "write prefill") },
	"unsupported": func(v *fleet.Variant, _ *fleet.Workload) {
		v.Unsupported = fleet.Problem{Text: "metricType Utilization", Remedy: "remove it"}
	},
	"paused":           func(v *fleet.Variant, _ *fleet.Workload) { v.Pause.All = true },
	"paused-scale-in":  func(v *fleet.Variant, _ *fleet.Workload) { v.Pause.In = true },
	"paused-scale-out": func(v *fleet.Variant, _ *fleet.Workload) { v.Pause.Out = true },
	"force-activation": func(v *fleet.Variant, _ *fleet.Workload) { v.Pause.Awake = true },
	"dry-run":          func(v *fleet.Variant, _ *fleet.Workload) { v.DryRun = true },
	"another-hpa":      func(_ *fleet.Variant, w *fleet.Workload) { w.ConflictingHPA = "cpu" },
	"over-quota":       func(_ *fleet.Variant, w *fleet.Workload) { w.ReplicaFailure = "exceeded quota" },
	"unreadable":       func(v *fleet.Variant, _ *fleet.Workload) { v.Hidden = "forbidden" },
	"profiled":         func(v *fleet.Variant, _ *fleet.Workload) { profile(v) },
	"no-target":        func(*fleet.Variant, *fleet.Workload) {},
	"mute":             func(*fleet.Variant, *fleet.Workload) {},
	"launcher":         func(*fleet.Variant, *fleet.Workload) {},
	"asleep":           func(*fleet.Variant, *fleet.Workload) {},
	"few-scrapes":      func(*fleet.Variant, *fleet.Workload) {},
	"recent":           func(*fleet.Variant, *fleet.Workload) {},
}

// profile gives a variant the profile of its accelerator, and an objective if it has none.
func profile(v *fleet.Variant) {
	if v.Profile = onH100; v.Accelerator == "L40S" {
		v.Profile = onL40S
	}
	if v.Objective.TTFT == 0 && v.Objective.ITL == 0 {
		v.Objective.TTFT, v.Objective.ITL = 2*time.Second, 40*time.Millisecond
	}
	v.Objective.Percentile = 0.95
}

func (r *scenarioRow) is(mark string) bool {
	for word := range strings.SplitSeq(r.cells["is"], ",") {
		if word == mark {
			return true
		}
	}
	return false
}

// mark applies the column "is".
func (r *scenarioRow) mark(v *fleet.Variant, w *fleet.Workload) error {
	if r.cells["is"] == "" {
		return nil
	}
	for word := range strings.SplitSeq(r.cells["is"], ",") {
		if replicas, found := strings.CutPrefix(word, "paused-replicas="); found {
			v.Pause = fleet.Pause{All: true, Fixed: true, Replicas: whole(replicas)}
			continue
		}
		apply := scenarioMarks[word]
		if apply == nil {
			return lineError(r.line, "%s: not known in the column is", word)
		}
		apply(v, w)
	}
	return nil
}

// numbers reads the cells of a row, and remembers the first error.
type numbers struct {
	row *scenarioRow
	err error
}

func (n *numbers) num(column string, fallback float64) float64 {
	value, err := n.row.num(column, fallback)
	n.err = cmp.Or(n.err, err)
	return value
}

func (n *numbers) whole(column string, fallback int) int {
	return int(n.num(column, float64(fallback)))
}

func (n *numbers) span(column string, fallback time.Duration) time.Duration {
	value, err := n.row.span(column, fallback)
	n.err = cmp.Or(n.err, err)
	return value
}

// addVariant adds the variant of a row with its workload, pods and metrics.
func (f *scenarioFleet) addVariant(r *scenarioRow) error {
	n := &numbers{row: r}
	m := f.model(cmp.Or(r.cells["model"], f.sole, "llama"))
	namespace, name := m.row.ID.Namespace, r.cells["variant"]
	target := fleet.TargetID{Namespace: namespace, APIVersion: "apps/v1", Kind: cmp.Or(r.cells["kind"], "Deployment"), Name: cmp.Or(r.cells["target"], name)}
	if target.Kind == "LeaderWorkerSet" {
		target.APIVersion = "leaderworkerset.x-k8s.io/v1"
	}
	v := fleet.Variant{
		ID: fleet.VariantID{Namespace: namespace, Name: name}, Model: m.row.ID, Target: target,
		Accelerator: fleet.Accelerator(cmp.Or(r.cells["accelerator"], "H100")), GPUsPerReplica: n.whole("gpus", 1), Cost: n.num("cost", 1),
		Role: fleet.Role(cmp.Or(r.cells["role"], string(fleet.RoleBoth))), Engine: fleet.EngineVLLM, ServiceClass: r.cells["class"],
		Objective: fleet.Objective{ITL: n.span("itl", 0), TTFT: n.span("ttft", 0)}, ScaleToZeroAfter: n.span("zero-after", 0),
		Range: fleet.Range{Min: n.whole("min", 0), Max: n.whole("max", 10)}, Created: epoch.Add(-time.Hour),
	}
	if r.cells["adapters"] != "" {
		v.Adapters = strings.Split(r.cells["adapters"], ",")
	}
	if r.cells["idle"] != "" {
		v.Range.AllowsIdle, v.Range.Idle = true, n.whole("idle", 0)
	}
	w := fleet.Workload{
		ID: target, Startup: n.span("startup", time.Minute), KVTokens: n.num("kvtokens", 0), MaxSequences: n.whole("maxseqs", 0),
		GroupSize: n.whole("group", 1), Placement: n.whole("placement", 0),
	}
	for _, group := range r.groups() {
		if err := f.addPods(group, m, &v, &w); err != nil {
			return err
		}
	}
	if r.cells["admits"] != "" {
		used, further := len(w.Pods)*v.GPUsPerReplica, n.whole("admits", 0)
		f.Quotas = append(f.Quotas, fleet.Quota{
			Namespace: namespace, Name: "ResourceQuota gpus", Resource: "nvidia.com/gpu", Hard: used + further*v.GPUsPerReplica, Used: used,
			Uses: []fleet.QuotaUse{{Target: target, Amount: v.GPUsPerReplica}},
		})
	}
	for i := range f.Quotas {
		if q := &f.Quotas[i]; r.cells["quota"] != "" && strings.HasSuffix(q.Name, " "+r.cells["quota"]) {
			q.Uses = append(q.Uses, fleet.QuotaUse{Target: target, Amount: v.GPUsPerReplica})
		}
	}
	w.Replicas = n.whole("spec", len(w.Pods)-n.whole("leaving", 0))
	if err := cmp.Or(n.err, r.mark(&v, &w)); err != nil {
		return err
	}
	if f.Variants = append(f.Variants, v); !r.is("no-target") && r.cells["target"] == "" {
		f.Workloads = append(f.Workloads, w)
	}
	return f.addPrevious(r, v.ID)
}

// addPrevious adds the previous decision: "8" of the last cycle, or "8@5m", which changed 5 m ago.
func (f *scenarioFleet) addPrevious(r *scenarioRow, id fleet.VariantID) error {
	cell := r.cells["previous"]
	if cell == "" {
		return nil
	}
	count, ago, changed := strings.Cut(cell, "@")
	replicas, err := strconv.Atoi(count)
	row := fleet.PreviousDecision{Variant: id, Replicas: replicas, Decided: epoch.Add(-15 * time.Second)}
	if changed {
		since, bad := time.ParseDuration(ago)
		row.Changed, row.Delta, err = epoch.Add(-since), 1, cmp.Or(err, bad)
	}
	if err != nil {
		return lineError(r.line, "previous %s: write a number, or one with its age such as 8@5m", cell)
	}
	f.Previous = append(f.Previous, row)
	return nil
}

// addPods adds the pods of one row, in the order of its columns. Pods of ordinals are written as
// #0,#2 and get these numbers; the others are numbered in their order.
func (f *scenarioFleet) addPods(r *scenarioRow, m *scenarioModel, v *fleet.Variant, w *fleet.Workload) error {
	n := &numbers{row: r}
	age, startup := n.span("age", time.Hour), w.Startup
	for _, column := range []string{"ready", "starting", "overdue", "leaving", "pending", "unschedulable", "gated"} {
		ordinals, err := r.ordinals(column, len(w.Pods))
		if err != nil {
			return err
		}
		for _, ordinal := range ordinals {
			pod := fleet.Pod{Name: fmt.Sprintf("%s-%d", v.ID.Name, ordinal), Created: epoch.Add(-age)}
			switch column {
			case "ready":
				pod.Ready, pod.ReadyAt = true, pod.Created.Add(startup)
			case "leaving":
				pod.Terminating = true
			case "starting", "pending":
				pod.Created = epoch.Add(-n.span("age", startup/2))
			case "overdue":
				pod.Created = epoch.Add(-10 * startup)
			case "unschedulable", "gated":
				pod.Created = epoch.Add(-n.span("age", 10*startup))
			}
			if (column == "ready" || column == "starting") && r.cells["nodewait"] != "" {
				pod.ScheduledAt = pod.Created.Add(n.span("nodewait", 0))
			}
			if column == "pending" || column == "unschedulable" {
				pod.Waiting = unschedulable
			} else if column == "gated" {
				pod.Waiting = gated
			} else if err := f.schedule(r.line, &pod, v, w); err != nil {
				return err
			}
			reporting := reporting(&pod, r.is("launcher"), n.whole("serving", 1))
			w.Pods = append(w.Pods, pod)
			if column != "ready" || r.is("mute") {
				continue
			}
			for _, name := range reporting {
				if err := f.report(r, m, name); err != nil {
					return err
				}
			}
		}
	}
	return n.err
}

// reporting names the other pods of a replica, and returns the pods that report for it: the pod
// itself and those that serve beside it, or the launcher in which its engine runs.
func reporting(pod *fleet.Pod, launcher bool, serving int) []string {
	if launcher {
		pod.Others = []string{"launcher-of-" + pod.Name}
		return pod.Others
	}
	for i := 1; i < serving; i++ {
		pod.Others = append(pod.Others, fmt.Sprintf("%s-%d", pod.Name, i))
	}
	return pod.Names()
}

// ordinals returns the ordinals of the pods of a cell.
func (r *scenarioRow) ordinals(column string, first int) (ordinals []int, err error) {
	cell := r.cells[column]
	if !strings.HasPrefix(cell, "#") {
		count, err := r.num(column, 0)
		for i := range int(count) {
			ordinals = append(ordinals, first+i)
		}
		return ordinals, err
	}
	for part := range strings.SplitSeq(cell, ",") {
		ordinal, err := strconv.Atoi(strings.TrimPrefix(part, "#"))
		if err != nil {
			return nil, lineError(r.line, "%s %s: write ordinals as #0,#2", column, cell)
		}
		ordinals = append(ordinals, ordinal)
	}
	return ordinals, nil
}

// schedule gives a pod its nodes.
func (f *scenarioFleet) schedule(line int, pod *fleet.Pod, v *fleet.Variant, w *fleet.Workload) error {
	shares := max(1, w.GroupSize)
	for range shares {
		node, found := f.place(v.Accelerator, v.GPUsPerReplica/shares, w.Placement)
		if !found {
			return lineError(line, "%d %s are free on no node for %s", v.GPUsPerReplica/shares, v.Accelerator, pod.Name)
		}
		if node != "" {
			pod.Nodes = append(pod.Nodes, node)
		}
	}
	return nil
}

// report adds the metrics of a ready pod. Its KV cache use follows from its rate and its capacity,
// its batch from its rate, unless the row tells them.
func (f *scenarioFleet) report(r *scenarioRow, m *scenarioModel, pod string) error {
	n := &numbers{row: r}
	rate, capacity := n.num("rate", 0), n.num("capacity", 0)
	kv := 0.0
	if capacity > 0 {
		kv = kvTarget * rate / capacity
	}
	running, waiting := n.num("running", serviceTime*rate), n.num("waiting", 0)
	u := fleet.Usage{
		Namespace: m.row.ID.Namespace, Pod: pod, Model: m.row.ID.Name, Time: epoch, Scrapes: 4, KVTokens: fleet.Observed(200_000),
		Running: fleet.Observed(running), Waiting: fleet.Observed(waiting), KV: fleet.Observed(n.num("kv", kv)),
		FirstTokens: fleet.Observed(rate), MeanRate: fleet.Observed(rate), MeanKV: fleet.Observed(kv), MeanRunning: fleet.Observed(running),
		WaitingGrowth: fleet.Observed(n.num("growth", 0)), PeakRate: fleet.Observed(1000),
		Progress: fleet.Observed(n.num("progress", 1200*rate)),
		// as if the queue had grown evenly
		LeastWaiting: fleet.Observed(max(0, min(waiting, waiting-60*n.num("growth", 0)))),
	}
	u.Asleep = r.is("asleep")
	if r.is("few-scrapes") {
		u.FirstTokens, u.Scrapes = fleet.Reading{}, 2
	}
	if r.is("recent") {
		u.FirstTokens, u.MeanRate, u.PeakRate = fleet.Observed(rate/5), fleet.Reading{}, fleet.Observed(rate/5)
	}
	f.Usages = append(f.Usages, u)
	m.reported = true
	m.rate, m.inFlight = m.rate+rate, m.inFlight+running+waiting
	return n.err
}
