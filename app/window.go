package app

import (
	"cmp"
	"slices"
	"time"

	"github.com/wva-project/wva/collector"
	"github.com/wva-project/wva/config"
	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/inventory"
)

const (
	// startsInWindow is how many start-ups of the slowest target the scale-down window has: a load
	// that comes back within it finds the replicas that it would have to start again.
	startsInWindow = 2
	// startsInShortWindow is the same of the window for models that have spent little of their
	// error budget.
	startsInShortWindow = 1.5
	// windowParts and shortWindowParts are the steps of the windows, as parts of the least window.
	// Start-up times are medians that vary a little; the windows shall not.
	windowParts, shortWindowParts = 5, 8
	// longestScaleDownWindow limits it: one slow target keeps the replicas of all that long.
	longestScaleDownWindow = 30 * time.Minute
)

// startupsOfYoung is how many usual start-ups lie at most between the creation of a pod and its
// first readiness. If more do, it was ready before.
const startupsOfYoung = 2

// windowsOf returns the windows that depend on the fleet.
func windowsOf(c *config.Config, declared inventory.Tables) collector.Windows {
	longest := longestStartup(c, declared.Workloads)
	w := collector.Windows{ScaleDown: scaleDownWindow(startsInWindow, longest, c.Prometheus.Windows.Peak, windowParts), Idle: c.IdleWindow(declared.Variants)}
	if c.ErrorBudget.Enabled {
		w.TTFT = objectives(declared.Variants, func(o fleet.Objective) time.Duration { return o.TTFT })
		w.ITL = objectives(declared.Variants, func(o fleet.Objective) time.Duration { return o.ITL })
		if windows := c.Prometheus.Windows; windows.ShortPeak < windows.Peak {
			w.ShortScaleDown = scaleDownWindow(startsInShortWindow, longest, windows.ShortPeak, shortWindowParts)
		}
	}
	return w
}

// objectives returns the limits of the variants, sorted, each once.
func objectives(variants []fleet.Variant, limit func(fleet.Objective) time.Duration) []time.Duration {
	var limits []time.Duration
	for i := range variants {
		if l := limit(variants[i].Objective); l > 0 {
			limits = append(limits, l)
		}
	}
	slices.Sort(limits)
	return slices.Compact(limits)
}

// longestStartup returns the longest usual start-up of a target.
func longestStartup(c *config.Config, workloads []fleet.Workload) (longest time.Duration) {
	for i := range workloads {
		longest = max(longest, cmp.Or(max(0, workloads[i].Startup), c.ScaleUp.StartupTime))
	}
	return longest
}

// scaleDownWindow returns a window whose highest demand counts for a scale-down: the least one, or
// so many of the longest start-ups if that is longer, in steps of a part of the least.
func scaleDownWindow(starts float64, longest, least time.Duration, parts int) time.Duration {
	step := max(least/time.Duration(parts), time.Millisecond).Truncate(time.Millisecond)
	wanted := time.Duration(min(starts*longest.Seconds(), longestScaleDownWindow.Seconds()) * float64(time.Second))
	return max(least, (wanted+step-1)/step*step)
}

// youngPods returns when recently started pods began to serve: when they became ready for the first
// time, or began to start as long as they are not ready. A pod that is ready again is not one of
// them.
func youngPods(c *config.Config, workloads []fleet.Workload, now time.Time) map[collector.Pod]time.Time {
	young := make(map[collector.Pod]time.Time)
	for i := range workloads {
		w := &workloads[i]
		startup := cmp.Or(max(0, w.Startup), c.ScaleUp.StartupTime)
		for j := range w.Pods {
			pod := &w.Pods[j]
			began := pod.StartedAt()
			if pod.Ready && pod.ReadyAt.Sub(began) <= startupsOfYoung*startup {
				began = pod.ReadyAt
			}
			if now.Sub(began) < 2*c.Prometheus.Windows.Peak {
				young[collector.Pod{Namespace: w.ID.Namespace, Name: pod.Name}] = began
			}
		}
	}
	return young
}
