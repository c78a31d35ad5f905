package app

import (
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
	// windowParts is the number of steps of the window, as parts of the peak window. Start-up times
	// are medians that vary a little; the window shall not.
	windowParts = 5
	// longestScaleDownWindow limits it: one slow target keeps the replicas of all that long.
	longestScaleDownWindow = 30 * time.Minute
)

// longestIdleWindow limits the window in which the last use of a model is searched, as far as
// objects set it: each cycle queries that far back.
const longestIdleWindow = 24 * time.Hour

// windowsOf returns the windows that depend on the fleet.
func windowsOf(c *config.Config, declared inventory.Tables) collector.Windows {
	idle := c.IdleWindow()
	for _, v := range declared.Variants {
		idle = max(idle, min(v.ScaleToZeroAfter, longestIdleWindow))
	}
	return collector.Windows{ScaleDown: scaleDownWindow(c, declared.Workloads), Idle: idle}
}

// scaleDownWindow returns the window whose highest demand counts for a scale-down: the peak window,
// or twice the longest usual start-up of a target if that is longer, in whole fifths of the peak
// window.
func scaleDownWindow(c *config.Config, workloads []fleet.Workload) time.Duration {
	var longest time.Duration
	for _, workload := range workloads {
		startup := workload.Startup
		if startup <= 0 {
			startup = c.ScaleUp.StartupTime
		}
		longest = max(longest, startup)
	}
	peak := c.Prometheus.Windows.Peak
	step := max(peak/windowParts, time.Millisecond).Truncate(time.Millisecond)
	steps := (min(startsInWindow*longest, longestScaleDownWindow) + step - 1) / step
	return max(peak, steps*step)
}
