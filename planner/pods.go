package planner

import (
	"cmp"
	"slices"
	"time"

	"github.com/wva-project/wva/analyzer"
	"github.com/wva-project/wva/fleet"
)

// podCounts counts the pods of a variant that are not terminating.
type podCounts struct {
	live            int // all of them
	ready           int // ready, neither stuck nor silent
	stuck           int // ready, and asleep or with a queue and without progress
	asleep          int // of the stuck ones, those that sleep
	silent          int // ready, without metrics, and few enough to decide without them
	starting        int // replicas that are not ready yet, and not overdue
	overdue         int // replicas that are not ready in time, without those that are taken back
	withoutNode     int // Pending replicas that are overdue
	notAdmitted     int // those of them that a queue has not admitted
	takenBack       int // Pending replicas beyond the one that waits for a node
	scheduled       int // with allocated accelerators, without overdue, stuck and silent ones
	pending         int // without accelerators and not overdue
	fits            int // of the pending ones, those for which accelerators are free
	recentlyStarted int // whose start is not paid for yet; one without a node costs nothing
	saturated       int // ready, at a saturation threshold
}

// reports counts a variant's ready replicas by their metrics. A replica that has just become ready
// may have none yet.
type reports struct{ good, missing, stale, invalid, tooShort, noRate int }

func (r reports) all() int { return r.good + r.missing + r.stale + r.invalid }

func (r reports) partial() int { return r.missing + r.stale + r.invalid + r.tooShort + r.noRate }

// countPods counts a variant's pods and reads their metrics from the usages of its model's name,
// which are sorted by pod.
func (v *variant) countPods(usages []*fleet.Usage, x *view) {
	pods, ready := x.scratch.pods[:0], x.scratch.ready[:0]
	for i := range v.workload.Pods {
		pods = append(pods, &v.workload.Pods[i])
	}
	slices.SortFunc(pods, func(a, b *fleet.Pod) int { return cmp.Compare(a.Name, b.Name) })
	var starts starts
	v.engines = make([]*fleet.Usage, 0, len(pods))
	v.timeNodes()
	rest := usages
	for _, pod := range pods {
		if pod.Terminating {
			continue
		}
		v.live++
		recent := x.now.Sub(pod.StartedAt()) < v.startup+x.policy.MinReplicaLifetime
		if recent && !v.isOverdue(pod, x.now) && !waitsForNode(pod) {
			v.recentlyStarted++
		}
		switch {
		case pod.Ready:
			v.ready++
			var row *fleet.Usage
			row, rest = nextUsage(rest, pod.Name)
			ready = append(ready, reportOf(usages, row, pod, x.now))
		case v.isOverdue(pod, x.now):
			v.overdue++
			v.markLost(pod.Name)
		}
		switch {
		case v.isOverdue(pod, x.now):
		case pod.Ready || len(pod.Nodes) > 0:
			v.scheduled++
		default:
			v.pending++
		}
		starts.note(pod, v.patience(pod))
	}
	v.readReplicas(ready, x.policy)
	x.scratch.pods, x.scratch.ready = pods, ready
	// Replicas of the spec without a pod count as starting too; the surge pods of a rolling update
	// add none. If they have had no pod for longer than a start takes, they count as overdue: a
	// quota may be exhausted.
	podless := max(0, v.now-v.ready-starts.waiting)
	since := v.previous.Changed
	if podless > 0 && (v.workload.ReplicaFailure != "" || !since.IsZero() && v.knownAt(x.now).Sub(since) > overdue*v.startup) {
		v.overdue += podless
	}
	v.starting = max(0, v.now-v.ready-v.overdue)
	v.startBlocked = v.overdue > 0 && (podless > 0 && v.workload.ReplicaFailure != "" ||
		starts.fail(v.overdue) && (starts.withoutNode || v.knownAt(x.now).Sub(starts.newestWaiting) < retryAfter(v.overdue)))
	v.takeBack(x.now)
}

// markLost records the ordinal of an overdue or stuck pod.
func (v *variant) markLost(pod string) {
	if at, known := ordinal(pod); known && v.stopsHighestOrdinal() {
		v.lost = append(v.lost, at)
	}
}

// stopsHighestOrdinal reports whether a scale-down stops the pods with the highest ordinals,
// whether they are ready or not. A Deployment stops pods that are not ready first.
func (v *variant) stopsHighestOrdinal() bool {
	return v.Target.Kind == "StatefulSet" || v.Target.Kind == "LeaderWorkerSet"
}

// ordinal returns the number at the end of a pod's name; false if it has none.
func ordinal(name string) (n int, found bool) {
	at, unit := len(name), 1
	for ; at > 0 && len(name)-at < 9 && name[at-1] >= '0' && name[at-1] <= '9'; at-- {
		n += int(name[at-1]-'0') * unit
		unit *= 10
	}
	return n, at < len(name) && at > 0 && name[at-1] == '-'
}

// retryAfter is the time after which one more replica is tried although several do not start: 5
// minutes, doubled with each of them, at most an hour.
func retryAfter(overdue int) time.Duration {
	return min(time.Hour, 5*time.Minute<<min(overdue-1, 4))
}

// starts is the state of the starts of a workload's replicas.
type starts struct {
	newestWaiting, newestReady time.Time
	firstOverdue               time.Time // when the first pod that is not ready is overdue
	withoutNode                bool      // a pod waits for a node
	waiting                    int       // pods that are not ready
}

func (s *starts) note(pod *fleet.Pod, patience time.Duration) {
	if pod.Ready {
		if pod.ReadyAt.After(s.newestReady) {
			s.newestReady = pod.ReadyAt
		}
		return
	}
	s.waiting++
	s.withoutNode = s.withoutNode || waitsForNode(pod)
	if due := pod.StartedAt().Add(patience); s.firstOverdue.IsZero() || due.Before(s.firstOverdue) {
		s.firstOverdue = due
	}
	if pod.Created.After(s.newestWaiting) {
		s.newestWaiting = pod.Created
	}
}

// fail reports whether further replicas would not start either: none has become ready since the
// oldest pod that is not ready became overdue, and a pod waits for a node or several are overdue. A
// single one may have a defect of its own.
func (s *starts) fail(overdue int) bool {
	return !s.newestReady.After(s.firstOverdue) && (s.withoutNode || overdue > 1)
}

// isOverdue reports whether a pod is not ready in time: after twice the usual start-up time of its
// target, or earlier if it has no node.
func (v *variant) isOverdue(pod *fleet.Pod, now time.Time) bool {
	return !pod.Ready && !pod.Terminating && v.knownAt(now).Sub(pod.StartedAt()) > v.patience(pod)
}

// usageOf returns the row of a pod; nil if there is none.
func usageOf(usages []*fleet.Usage, pod string) *fleet.Usage {
	row, _ := nextUsage(usages, pod)
	return row
}

// nextUsage returns the row of a pod, nil if there is none, and the rows from it on. That of the
// next pod is usually the second of these.
func nextUsage(usages []*fleet.Usage, pod string) (row *fleet.Usage, rest []*fleet.Usage) {
	for i := range usages[:min(len(usages), 2)] {
		if usages[i].Pod == pod {
			return usages[i], usages[i:]
		}
	}
	at, found := slices.BinarySearchFunc(usages, pod, func(row *fleet.Usage, pod string) int { return cmp.Compare(row.Pod, pod) })
	if !found {
		return nil, usages[at:]
	}
	return usages[at], usages[at:]
}

// meanWithin is how long a ready replica may have no mean rate, which begins with the first whole
// window: usually one minute, and five if it is scraped slowly.
const meanWithin = 10 * time.Minute

// read counts the metrics of one ready replica; a nil row has none.
func (v *variant) read(row *fleet.Usage, age time.Duration, p Policy) {
	owes := age >= p.MetricsGrace
	if row == nil {
		row = &fleet.Usage{}
	}
	rate, known := row.FirstTokens.Known()
	// a mean that is absent, or contradicts the rate now, hides the use of the replica
	unmeasured := row.MeanRate.State == fleet.Absent && age < meanWithin
	known = known && (rate <= 0 || row.MeanRate.Or(0) > 0 || unmeasured)
	states := []fleet.ReadingState{row.Running.State, row.Waiting.State, row.KV.State}
	switch {
	case slices.Contains(states, fleet.Absent):
		if owes {
			v.reports.missing++
		}
		return
	case slices.Contains(states, fleet.NaN):
		v.reports.invalid++
		return
	case slices.Contains(states, fleet.Stale):
		v.reports.stale++
		return
	case owes && row.FirstTokens.State == fleet.Absent && row.Scrapes > 0 && row.Scrapes < analyzer.MinScrapes:
		v.reports.tooShort++
	case owes && !known:
		v.reports.noRate++
	}
	v.reports.good++
	v.engines = append(v.engines, row)
}

// setStuckAside removes stuck and sleeping replicas from the capacity and the demand of the model,
// and counts the saturated ones of the others.
func (m *model) setStuckAside(p Policy) {
	serves := slices.ContainsFunc(m.variants, func(v *variant) bool {
		return slices.ContainsFunc(v.engines, func(r *fleet.Usage) bool {
			return !r.Asleep && !isStuck(r) && (r.FirstTokens.Or(0) > 0 || r.Progress.Or(0) > 0)
		})
	})
	stuck, rest := false, false
	for _, v := range m.variants {
		before := len(v.engines)
		aside := func(r *fleet.Usage) bool { return r.Asleep || serves && isStuck(r) }
		for _, r := range v.engines {
			if aside(r) {
				v.stuckPods = append(v.stuckPods, r.Pod)
				v.markLost(r.Pod)
			}
			if r.Asleep {
				v.asleep++
			}
		}
		v.engines = slices.DeleteFunc(v.engines, aside)
		v.stuck = before - len(v.engines)
		v.ready -= v.stuck
		v.scheduled -= v.stuck
		slices.Sort(v.lost)
		for _, r := range v.engines {
			stuck, rest = stuck || isStuck(r), rest || !isStuck(r)
			if p.Saturation.Saturated(r) {
				v.saturated++
			}
		}
	}
	m.allStuck = stuck && !rest
}

// setSilentAside removes silent replicas from the capacity of the model if they are few. If they
// are many, nothing is known of the model.
func (m *model) setSilentAside() {
	if !m.reports().fewSilent() {
		return
	}
	for _, v := range m.variants {
		n := len(v.silentPods)
		v.silent += n
		v.ready -= n
		v.scheduled -= n
		for _, pod := range v.silentPods {
			v.markLost(pod)
		}
		slices.Sort(v.lost)
	}
}

// isStuck reports whether a replica has a queue and made no progress for the whole peak window.
func isStuck(r *fleet.Usage) bool {
	progress, known := r.Progress.Known()
	return known && progress <= 0 && r.Waiting.Or(0) > 0
}

// useless is the number of ready replicas that are no capacity.
func (v *variant) useless() int { return v.stuck + v.silent }

// isUseless reports whether a ready replica is no capacity.
func (v *variant) isUseless(pod string) bool {
	return slices.Contains(v.stuckPods, pod) || v.silent > 0 && slices.Contains(v.silentPods, pod)
}
