package planner

import (
	"slices"

	"github.com/wva-project/wva/fleet"
)

// partKey identifies a role of a model.
type partKey struct {
	id   fleet.ModelID
	part fleet.Role
}

// partOf returns prefill, decode, or both for any other role.
func partOf(role fleet.Role) fleet.Role {
	if role == fleet.RolePrefill || role == fleet.RoleDecode {
		return role
	}
	return fleet.RoleBoth
}

// countParts counts the parts of each model, and marks models of which only some variants have a
// role. Parts of a model are neighbours in the list.
func (x *view) countParts() {
	for from := 0; from < len(x.models); {
		to, whole := from, false
		for ; to < len(x.models) && x.models[to].id == x.models[from].id; to++ {
			whole = whole || !x.models[to].disaggregated()
		}
		for _, m := range x.models[from:to] {
			m.parts, m.mixed = to-from, whole && to-from > 1
		}
		from = to
	}
}

// disaggregated reports whether prefill and decode of the model run on separate replicas.
func (m *model) disaggregated() bool { return m.part != fleet.RoleBoth }

// fraction returns the share of this part in the sum of a model's engine metrics: if prefill and
// decode are disaggregated, each request is counted by both.
func (m *model) fraction(reading func(*fleet.Usage) fleet.Reading) float64 {
	if !m.disaggregated() {
		return 1
	}
	var own, all float64
	for _, name := range m.served {
		for _, row := range name.usages {
			all += max(0, reading(row).Or(0))
		}
	}
	for _, v := range m.variants {
		for _, r := range v.engines {
			own += max(0, reading(r).Or(0))
		}
	}
	if all <= 0 || own <= 0 {
		return 1 / float64(max(1, m.parts))
	}
	return min(1, own/all)
}

func rateOf(r *fleet.Usage) fleet.Reading    { return r.FirstTokens }
func runningOf(r *fleet.Usage) fleet.Reading { return r.Running }

// withoutPrefill removes the outputs of prefill replicas from the lengths of outputs: they report
// one token for each request.
func (m *model) withoutPrefill(d *demand) {
	if !m.disaggregated() || m.parts < 2 {
		return
	}
	if mean, known := d.output.Known(); known && mean > 1 {
		d.output = fleet.Observed(2*mean - 1)
	}
	var total float64
	for _, b := range d.outputs {
		total += b.Count
	}
	d.outputs = slices.Clone(d.outputs)
	left := total / 2
	for i := range d.outputs {
		removed := min(left, d.outputs[i].Count)
		d.outputs[i].Count -= removed
		left -= removed
	}
}

// joinParts returns one row for each model, with the needs of its parts joined.
func joinParts(rows []fleet.ModelPlan) []fleet.ModelPlan {
	joined := rows[:0]
	for _, row := range rows {
		if last := len(joined) - 1; last >= 0 && joined[last].ID == row.ID {
			joined[last] = join(joined[last], row)
			continue
		}
		joined = append(joined, row)
	}
	return joined
}

func join(a, b fleet.ModelPlan) fleet.ModelPlan {
	a.Arrivals = higher(a.Arrivals, b.Arrivals)
	a.Backlog, a.InFlight = both(a.Backlog, b.Backlog), both(a.InFlight, b.InFlight)
	a.TTFT, a.ITL = first(a.TTFT, b.TTFT), first(a.ITL, b.ITL)
	a.Unserved = max(a.Unserved, b.Unserved)
	return a
}

func higher(a, b fleet.Reading) fleet.Reading {
	if value, known := b.Known(); known && value > a.Or(value-1) {
		return b
	}
	return a
}

func both(a, b fleet.Reading) fleet.Reading {
	x, known := a.Known()
	y, too := b.Known()
	switch {
	case known && too:
		return fleet.Observed(x + y)
	case too:
		return b
	}
	return a
}
