package app

import (
	"slices"
	"time"

	"github.com/wva-project/wva/fleet"
)

// lastSamples is for how long metrics of a pod may be read after it is gone: Prometheus has its
// last samples until a scrape of it fails.
const lastSamples = time.Minute

// endedPods remembers the pods that workloads had. Its zero value knows none.
type endedPods struct {
	before map[fleet.TargetID][]fleet.Pod
	ended  map[fleet.TargetID]map[string]time.Time // by name; when they were first missed
}

// mark returns the workloads with the pods that ended a short while ago.
func (e *endedPods) mark(workloads []fleet.Workload, now time.Time) []fleet.Workload {
	marked := slices.Clone(workloads)
	before, ended := make(map[fleet.TargetID][]fleet.Pod, len(workloads)), map[fleet.TargetID]map[string]time.Time{}
	for i := range marked {
		w := &marked[i]
		before[w.ID] = w.Pods
		gone := e.gone(w, now)
		if len(gone) == 0 {
			continue
		}
		ended[w.ID] = gone
		for name := range gone {
			w.Ended = append(w.Ended, name)
		}
		slices.Sort(w.Ended)
	}
	e.before, e.ended = before, ended
	return marked
}

// gone returns the pods of a workload that ended a short while ago.
func (e *endedPods) gone(w *fleet.Workload, now time.Time) map[string]time.Time {
	gone, old := e.ended[w.ID], e.before[w.ID]
	sameName := func(a, b fleet.Pod) bool { return a.Name == b.Name && slices.Equal(a.Others, b.Others) }
	if len(gone) == 0 && slices.EqualFunc(old, w.Pods, sameName) {
		return nil
	}
	left := map[string]time.Time{}
	for name, at := range gone {
		if now.Sub(at) < lastSamples {
			left[name] = at
		}
	}
	for i := range old {
		for _, name := range old[i].Names() {
			if _, known := left[name]; !known {
				left[name] = now
			}
		}
	}
	for i := range w.Pods {
		for _, name := range w.Pods[i].Names() {
			delete(left, name)
		}
	}
	return left
}
