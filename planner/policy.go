package planner

import (
	"math"
	"time"

	"github.com/wva-project/wva/analyzer"
)

// Policy is the administrator's configuration of all decisions. A field that is zero takes its
// default, so an empty configuration is the default one.
type Policy struct {
	Saturation analyzer.Saturation
	// SaturationAlone leaves objectives' percentiles and profiles out of sizing.
	SaturationAlone bool
	// DrainWithin is the time in which a backlog is to be served. Default 60 s.
	DrainWithin time.Duration
	// KeepFor is how long the previous decision is repeated if data are missing; afterwards current
	// replicas count. Default 5 m.
	KeepFor time.Duration
	// Startup is the start-up time of a replica if its target has not shown one. Default 2 m.
	Startup time.Duration
	// Retention is how long a model must be idle before it may scale to zero. Default 10 m.
	Retention time.Duration
	// MetricsGrace is how long a ready replica may report nothing before its metrics count as
	// missing. Default 60 s.
	MetricsGrace time.Duration
	// ScaleDownHeadroom is by how much the capacity after a scale-down exceeds the highest demand
	// of the window, as a share of it; half of it if a model is sized for a percentile by profiles.
	// Between latest demand and this limit the number stays. Default 0.2.
	ScaleDownHeadroom float64
	// MinReplicaLifetime is how long a replica is kept at least after its start-up time: the demand
	// that it was started for is in the window that long, and its start is paid for. It does not
	// count if there is no demand, or if another variant is to serve alone. Default 5 m.
	MinReplicaLifetime time.Duration
	// Memo keeps results of sizing from one plan to the next. It changes no plan. Default: nothing
	// is kept.
	Memo *analyzer.Memo
	// Simulations is how many variants of a plan may be sized by simulation if the formula of the
	// queueing model is known to be inaccurate; namespaces take turns. Each takes 20 to 200 ms
	// unless it is in the memo; long ones count as several. Default 32; below 0: none.
	Simulations int
	// BudgetWindow is the window over which the share of requests within the objective is kept at
	// its percentile. Default 1 h.
	BudgetWindow time.Duration
	// BudgetOff switches this correction of the headroom off.
	BudgetOff bool
	// Horizon is the time over which the price of a running replica is summed up and compared with
	// the price of starting one. Default 30 m.
	Horizon time.Duration
}

func (p Policy) withDefaults() Policy {
	orDefault := func(value *time.Duration, fallback time.Duration) {
		if *value <= 0 {
			*value = fallback
		}
	}
	orDefault(&p.DrainWithin, time.Minute)
	orDefault(&p.KeepFor, 5*time.Minute)
	orDefault(&p.Startup, 2*time.Minute)
	orDefault(&p.Retention, 10*time.Minute)
	orDefault(&p.MetricsGrace, time.Minute)
	orDefault(&p.MinReplicaLifetime, 5*time.Minute)
	orDefault(&p.BudgetWindow, time.Hour)
	orDefault(&p.Horizon, 30*time.Minute)
	if p.Simulations == 0 {
		p.Simulations = 32
	}
	if !(p.ScaleDownHeadroom > 0) || math.IsInf(p.ScaleDownHeadroom, 0) {
		p.ScaleDownHeadroom = 0.2
	}
	return p
}

// overdue is the multiple of a target's usual start-up time after which a replica that is not ready
// is not counted as capacity.
const overdue = 2
