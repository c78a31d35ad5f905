package fleet

import (
	"slices"
	"time"
)

// Decision is what a plan says of one variant, whether it is a target or held.
type Decision struct {
	Variant  VariantID
	Replicas int
	Known    bool
	Held     bool
	// Refused is true where KEDA would misapply the number: its RPCs answer with the reason as an error.
	Refused bool
	Decided time.Time
	// Changed is when the number last became another one, by Delta replicas; zero where it has not since it is known.
	Changed time.Time
	Delta   int
	Reason  Reason
	Facts   Facts
}

// Decisions returns what the plan says of every variant, sorted by variant.
func (p Plan) Decisions() []Decision {
	decisions := make([]Decision, 0, len(p.Targets)+len(p.Held))
	for _, t := range p.Targets {
		decisions = append(decisions, Decision{
			Variant: t.Variant, Replicas: t.Replicas, Known: true, Decided: p.Time, Changed: t.Changed, Delta: t.Delta,
			Reason: t.Reason, Facts: t.Facts,
		})
	}
	for _, h := range p.Held {
		decisions = append(decisions, Decision{
			Variant: h.Variant, Replicas: h.Replicas, Known: h.Known, Held: true, Refused: h.Refused, Decided: h.Decided,
			Changed: h.Changed, Delta: h.Delta, Reason: h.Reason, Facts: h.Facts,
		})
	}
	slices.SortFunc(decisions, func(a, b Decision) int { return a.Variant.Compare(b.Variant) })
	return decisions
}

// Decide fills Targets and Held with decisions, each variant once; it is the inverse of Decisions. The slice is sorted.
func (p *Plan) Decide(decisions []Decision) {
	slices.SortFunc(decisions, func(a, b Decision) int { return a.Variant.Compare(b.Variant) })
	for _, d := range decisions {
		if d.Held {
			p.Held = append(p.Held, Held{
				Variant: d.Variant, Replicas: d.Replicas, Known: d.Known, Decided: d.Decided, Changed: d.Changed, Delta: d.Delta,
				Refused: d.Refused, Reason: d.Reason, Facts: d.Facts,
			})
			continue
		}
		p.Targets = append(p.Targets, Target{
			Variant: d.Variant, Replicas: d.Replicas, Changed: d.Changed, Delta: d.Delta, Reason: d.Reason, Facts: d.Facts,
		})
	}
}

// Standing returns the plan as the standing table of the next snapshot: what is known, with the time it was derived. Advice
// does not stand: only what was known of its variants does.
func (p Plan) Standing() []Standing {
	var standing []Standing
	for _, d := range p.Decisions() {
		row := Standing{Variant: d.Variant, Accelerator: d.Facts.Accelerator}
		if d.Known && !d.Decided.IsZero() {
			row.Replicas, row.Decided, row.Changed, row.Delta = d.Replicas, d.Decided, d.Changed, d.Delta
		}
		if !row.Decided.IsZero() || row.Accelerator != "" {
			standing = append(standing, row)
		}
	}
	for _, a := range p.Advice {
		if a.Facts.Accelerator != "" {
			standing = append(standing, Standing{Variant: a.Variant, Accelerator: a.Facts.Accelerator})
		}
	}
	return standing
}
