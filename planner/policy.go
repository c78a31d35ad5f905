package planner

import (
	"math"
	"time"

	"github.com/wva-project/wva/analyzer"
)

// Policy is what the administrator wants of all decisions. A field that is zero takes its default, so that an empty
// configuration is the default one.
type Policy struct {
	Saturation analyzer.Saturation
	// SaturationAlone leaves objectives' percentiles and profiles out of sizing.
	SaturationAlone bool
	// DrainWithin is the time in which a backlog is to be served. Default 60 s.
	DrainWithin time.Duration
	// KeepFor is how long a standing number is repeated on missing data; after it, the replicas that are there are. Default 5 m.
	KeepFor time.Duration
	// Startup is how long a replica takes to load where its target has not shown it. Default 2 m.
	Startup time.Duration
	// Retention is how long a model stays up unused before it may go to zero. Default 10 m.
	Retention time.Duration
	// MetricsGrace is how long a ready replica may report nothing before that counts as missing. Default 60 s.
	MetricsGrace time.Duration
	// ScaleDownHeadroom is by how much the capacity that is left after a scale-down exceeds the highest demand of the window; half of
	// it where a model is sized for a percentile by profiles. What lies between needs neither more nor less. Default 0.2.
	ScaleDownHeadroom float64
	// Reaction is the time from a change of the load until a replica is asked for: scrape, cycle, HPA sync. Default 45 s.
	Reaction time.Duration
	// MinReplicaLifetime is how long a replica is kept at least once it had time to start, unless nothing is asked at all: the demand that
	// it was started for is in the window that long. It is paid for with the start. Default 5 m.
	MinReplicaLifetime time.Duration
	// Memo keeps what sizing worked out from one plan to the next. It changes no plan. Default: nothing is kept.
	Memo *analyzer.Memo
	// Simulations is how many variants of a plan may be sized by simulation where the queueing model's formula is known to be far
	// off: the first ones, in the order of their models. Each takes some 20 ms unless the memo has it. Default 32; below 0: none.
	Simulations int
	// Horizon is the time over which a running replica is weighed against the price of starting one. Default 1 h.
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
	orDefault(&p.Reaction, 45*time.Second)
	orDefault(&p.MinReplicaLifetime, 5*time.Minute)
	orDefault(&p.Horizon, time.Hour)
	if p.Simulations == 0 {
		p.Simulations = 32
	}
	if !(p.ScaleDownHeadroom > 0) || math.IsInf(p.ScaleDownHeadroom, 0) {
		p.ScaleDownHeadroom = 0.2
	}
	return p
}

// overdue is the multiple of a target's usual start-up time after which a replica that is not ready stops counting.
const overdue = 2
