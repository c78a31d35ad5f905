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
	wakes := slices.ContainsFunc(m.gateway, func(row fleet.Load) bool { return row.IdleCovered >= m.retention })
	covered := m.ready() == 0 || len(m.engine) > 0
	for _, rows := range [][]fleet.Load{m.engine, m.gateway} {
		for i := range rows {
			if rows[i].LastActive.After(d.since) {
				d.since = rows[i].LastActive
			}
			covered = covered && rows[i].IdleCovered >= m.retention
		}
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
	case !covered || x.now.Sub(d.since) < m.retention:
		return recentlyUsed
	}
	return mayScaleToZero
}

// findConsent marks the models of which every variant, of all roles, may scale to zero, and the
// longest of their scaleToZeroAfter.
func (x *view) findConsent() {
	kept, longest := make(map[fleet.ModelID]bool), make(map[fleet.ModelID]time.Duration, len(x.models))
	for _, m := range x.models {
		var after time.Duration
		keeps := false
		for _, v := range m.variants {
			keeps = keeps || v.Range.Floor() > 0 || v.Pause.Awake
			after = max(after, v.ScaleToZeroAfter)
		}
		if longest[m.id] = max(longest[m.id], after); keeps {
			kept[m.id] = true
		}
	}
	for _, m := range x.models {
		m.allowsZero = !kept[m.id]
		m.retention = cmp.Or(longest[m.id], max(0, m.spec.Retention), x.policy.Retention)
	}
}
