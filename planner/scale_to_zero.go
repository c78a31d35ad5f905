package planner

import (
	"cmp"
	"slices"
	"time"

	"github.com/wva-project/wva/fleet"
)

// idleness is whether a model is idle, and if so why it may not scale to zero.
type idleness int

// The states of a model, from one with requests to one that may scale to zero.
const (
	inUse          idleness = iota // requests arrive, run or wait
	zeroOff                        // the administrator does not allow zero
	zeroNotAllowed                 // a variant's minReplicaCount does not allow zero
	noWakeSignal                   // no gateway reported requests throughout the retention
	recentlyUsed                   // the retention is not over, or samples do not cover it
	mayScaleToZero
)

// idleness returns whether the model is idle, and whether it may scale to zero then: every variant
// and the administrator allow it, a gateway has reported requests for the model throughout the
// retention, so that it would be woken, and samples prove that there were none.
func (x *view) idleness(m *model, d *demand) idleness {
	d.retention = m.retention(x.policy)
	for _, row := range slices.Concat(m.engine, m.gateway) {
		if row.LastActive.After(d.since) {
			d.since = row.LastActive
		}
	}
	wakes := slices.ContainsFunc(m.gateway, func(row fleet.Load) bool { return row.IdleCovered >= d.retention })
	covered := m.ready() == 0 || len(m.engine) > 0
	for _, row := range slices.Concat(m.engine, m.gateway) {
		covered = covered && row.IdleCovered >= d.retention
	}
	switch {
	case d.arrivals.State == fleet.Absent, d.arrivals.Or(0) > 0, d.backlog > 0, d.running > 0:
		return inUse
	case m.spec.ScaleToZeroOff:
		return zeroOff
	case !m.allowsZero:
		return zeroNotAllowed
	case !wakes:
		return noWakeSignal
	case !covered || x.now.Sub(d.since) < d.retention:
		return recentlyUsed
	}
	return mayScaleToZero
}

// retention is how long the model has to be idle before it may scale to zero.
func (m *model) retention(p Policy) time.Duration {
	var longest time.Duration
	for _, v := range m.variants {
		longest = max(longest, v.ScaleToZeroAfter)
	}
	return cmp.Or(longest, max(0, m.spec.Retention), p.Retention)
}
