package app

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/wva-project/wva/fleet"
)

// keepsEqualPart: the victim's model never falls below the smaller of its demand and its equal part
// of the accelerators that nobody keeps in any case.
func keepsEqualPart(o outcomeOf, alone fleet.Plan) error {
	id := fleet.VariantID{Namespace: victimTenant, Name: "chat-h100"}
	got, want := decisionOf(o.plan, id), decisionOf(alone, id)
	gpus := o.r.arena.workload(victimTenant, "chat-h100").gpus
	part, models := equalPart(o, gpus)
	least := min(want.Replicas, needed(o), part)
	o.r.seen.cycles++
	if part < min(want.Replicas, needed(o)) {
		o.r.seen.contended++
	}
	if got.Replicas < want.Replicas {
		o.r.seen.yielded++
	}
	if models > 1 {
		o.r.seen.rivals++
	}
	if gpus > 1 { // hostile pods may be on every node, so that a replica of several does not fit
		least = min(least, scheduled(o.snapshot, id))
	}
	if got.Replicas < least {
		return fmt.Errorf("the victim has %d replicas: %s\nalone it would have %d: %s\nof %d models with requests its equal part is %d, and it needs %d",
			got.Replicas, got.Reason, want.Replicas, want.Reason, models, part, needed(o))
	}
	return nil
}

// needed returns the replicas that the victim's present load needs at least: the planner may find
// that a replica can serve some more than it does at its best.
func needed(o outcomeOf) int {
	const most = 1.1 * arenaCapacity
	return int(math.Ceil(o.r.rate() / most))
}

func scheduled(s fleet.Snapshot, id fleet.VariantID) (n int) {
	for _, w := range s.Workloads {
		if w.ID.Namespace == id.Namespace && w.ID.Name == id.Name {
			for _, p := range w.Pods {
				if len(p.Nodes) > 0 && !p.Terminating {
					n++
				}
			}
		}
	}
	return n
}

// equalPart returns the victim's equal part of the H100 in replicas, and the number of models with
// requests that can have H100. Accelerators count as kept in any case if they are those of pods of
// no variant or of one that states another accelerator, of variants whose number others set or
// whose metrics are incomplete, of replicas that are not ready or started recently, and of the last
// replica of a model if it needs more than an equal part. Pods without a node count if incomplete
// metrics keep them: they get the accelerators that others leave.
func equalPart(o outcomeOf, gpus int) (replicas, models int) {
	kept, waits := make(map[fleet.TargetID]bool), make(map[fleet.TargetID]bool)
	// the GPUs of the largest replica that may be the last
	claims := map[string]int{victimTenant: 0}
	modelOf := make(map[fleet.TargetID]string)
	for _, v := range o.snapshot.Variants {
		d := decisionOf(o.plan, v.ID)
		stays := len(v.Invalid) > 0 || v.Unsupported != (fleet.Problem{}) || v.Pause != (fleet.Pause{}) || v.Range.Min > 0 || d.Held || v.DryRun ||
			d.Reason.Code == fleet.CodeDuplicateTarget || d.Reason.Code == fleet.CodeConflictingHPA || !isCovered(o.snapshot, v)
		requested, onH100 := hasRequests(o.snapshot, v), v.Accelerator == "H100" || d.Facts.Accelerator == "H100"
		if stays || !requested || !onH100 {
			kept[v.Target.Unversioned()] = true
		}
		if !isCovered(o.snapshot, v) {
			waits[v.Target.Unversioned()] = true
		}
		if requested && v.Model.Namespace == hostileTenant && onH100 {
			modelOf[v.Target.Unversioned()] = string(v.Role) + "/" + v.Model.Name
			claims[modelOf[v.Target.Unversioned()]] = 0
		}
	}
	yields := make(map[string]string) // the models of pods
	pending := make(map[string]bool)
	for _, w := range o.snapshot.Workloads {
		for _, p := range w.Pods {
			pending[w.ID.Namespace+"/"+p.Name] = waits[w.ID.Unversioned()] && len(p.Nodes) == 0
			if !kept[w.ID.Unversioned()] && p.Ready && o.snapshot.Time.Sub(p.Created) >= cmp.Or(w.Startup, o.startup())+o.lifetime() {
				yields[w.ID.Namespace+"/"+p.Name] = modelOf[w.ID.Unversioned()]
			}
		}
	}
	total := 0
	for _, node := range o.r.arena.nodes {
		if node.product == productH100 {
			total += node.gpus
		}
	}
	for p := range o.r.arena.allPods() {
		at := slices.IndexFunc(o.r.arena.nodes, func(n arenaNode) bool { return n.name == p.node })
		if p.namespace == hostileTenant && p.product == productH100 && pending[p.namespace+"/"+p.name] {
			total -= p.gpus
		}
		if at >= 0 && o.r.arena.nodes[at].product == productH100 && !p.failed && p.namespace == hostileTenant {
			if model, found := yields[p.namespace+"/"+p.name]; found {
				claims[model] = max(claims[model], p.gpus)
			} else {
				total -= p.gpus
			}
		}
	}
	models = len(claims)
	return equalPartBeside(claims, total) / gpus, models
}

// equalPartBeside divides accelerators, without the last replicas that need more than a part.
func equalPartBeside(claims map[string]int, total int) int {
	for {
		part, large := max(0, total)/len(claims), ""
		for model, last := range claims {
			if last > part && last > claims[large] {
				large = model
			}
		}
		if large == "" {
			return part
		}
		total -= claims[large]
		delete(claims, large)
	}
}

func (o outcomeOf) startup() time.Duration { return cmp.Or(o.policy.Startup, 2*time.Minute) }

func (o outcomeOf) lifetime() time.Duration {
	return cmp.Or(o.policy.MinReplicaLifetime, 5*time.Minute)
}

// isCovered reports whether the metrics of a variant's model are complete: its peak window is
// covered, and every ready replica reports.
func isCovered(s fleet.Snapshot, v fleet.Variant) bool {
	covered := slices.ContainsFunc(s.Loads, func(l fleet.Load) bool {
		return l.Namespace == v.Model.Namespace && l.Model == v.EngineModel() && l.Source == fleet.SourceEngine && l.PeakCovered
	})
	for _, w := range s.Workloads {
		for _, p := range w.Pods {
			covered = covered && (w.ID.Unversioned() != v.Target.Unversioned() || !p.Ready || slices.ContainsFunc(s.Usages, func(u fleet.Usage) bool {
				_, running := u.Running.Known()
				_, waiting := u.Waiting.Known()
				_, kv := u.KV.Known()
				_, rate := u.FirstTokens.Known()
				return u.Namespace == w.ID.Namespace && u.Pod == p.Name && u.Model == v.EngineModel() && running && waiting && kv && rate
			}))
		}
	}
	return covered
}

// hasRequests reports whether any row says that a variant's model gets requests, forged or not.
func hasRequests(s fleet.Snapshot, v fleet.Variant) bool {
	positive := func(readings ...fleet.Reading) bool {
		return slices.ContainsFunc(readings, func(r fleet.Reading) bool { return r.State != fleet.Absent && !(r.Value <= 0) })
	}
	for _, l := range s.Loads {
		if l.Namespace == v.Model.Namespace && l.Model == v.EngineModel() {
			idle := !l.LastActive.IsZero() && s.Time.Sub(l.LastActive) < 2*time.Hour
			if idle || positive(l.Arrivals, l.Queued, l.PeakArrivals, l.PeakInFlight) {
				return true
			}
		}
	}
	for _, u := range s.Usages {
		if u.Namespace == v.Model.Namespace && u.Model == v.EngineModel() && positive(u.Running, u.Waiting, u.FirstTokens, u.MeanRate, u.WaitingGrowth) {
			return true
		}
	}
	return false
}
