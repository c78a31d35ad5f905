package scaler

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/wva-project/wva/fleet"
)

// listed is a decision or a recommendation, as people are told of it.
type listed struct {
	fleet.Decision

	dryRun bool
}

// list returns decisions and recommendations, sorted by variant.
func list(decisions, recommendations []fleet.Decision) []listed {
	all := make([]listed, 0, len(decisions)+len(recommendations))
	for _, d := range decisions {
		all = append(all, listed{Decision: d})
	}
	for _, d := range recommendations {
		all = append(all, listed{Decision: d, dryRun: true})
	}
	slices.SortStableFunc(all, func(a, b listed) int { return a.Variant.Compare(b.Variant) })
	return all
}

// dryRunMetrics counts the effects that recommendations would have had if they had been applied.
type dryRunMetrics struct {
	changes *prometheus.CounterVec // by namespace, model and direction
	cost    *prometheus.CounterVec // by namespace, model and direction
}

func newDryRunMetrics() dryRunMetrics {
	return dryRunMetrics{
		changes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "wva_recommended_changes_total", Help: "Changes of the recommended number of replicas of dry-run variants, by direction: up or down.",
		}, []string{"namespace", "model", "direction"}),
		cost: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "wva_recommended_cost_difference_total",
			Help: "Cost that recommendations of dry-run variants would have saved or added since the start: price per replica-hour by hours, by direction: saved or added.",
		}, []string{"namespace", "model", "direction"}),
	}
}

// count adds the cost that the previous recommendations would have saved until now, and the changes
// of the new ones. A plan that was the latest for longer than it may be acted on counts for that
// long. Models without recommendations lose their series.
func (m dryRunMetrics) count(before, after fleet.Plan, maxAge time.Duration) {
	hours := min(after.Time.Sub(before.Time), maxAge).Hours()
	if before.Time.IsZero() || hours <= 0 {
		return
	}
	defer m.forget(before.Recommendations, after.Recommendations)
	current := make(map[fleet.VariantID]fleet.Decision, len(after.Recommendations))
	for _, r := range after.Recommendations {
		current[r.Variant] = r
	}
	for _, previous := range before.Recommendations {
		next, found := current[previous.Variant]
		if !found {
			continue
		}
		namespace, model := validLabel(previous.Variant.Namespace), validLabel(previous.Facts.Model.Name)
		if saved, known := previous.Saved(); known && saved != 0 {
			direction := "saved"
			if saved < 0 {
				direction, saved = "added", -saved
			}
			m.cost.WithLabelValues(namespace, model, direction).Add(saved * hours)
		}
		switch {
		case !previous.Known || !next.Known || previous.Replicas == next.Replicas:
		case next.Replicas > previous.Replicas:
			m.changes.WithLabelValues(namespace, model, "up").Inc()
		default:
			m.changes.WithLabelValues(namespace, model, "down").Inc()
		}
	}
}

// forget drops the series of models that have no recommendation any more.
func (m dryRunMetrics) forget(before, after []fleet.Decision) {
	recommended := make(map[[2]string]bool)
	labels := func(d fleet.Decision) [2]string {
		return [2]string{validLabel(d.Variant.Namespace), validLabel(d.Facts.Model.Name)}
	}
	for _, r := range after {
		recommended[labels(r)] = true
	}
	for _, r := range before {
		if l := labels(r); !recommended[l] {
			gone := prometheus.Labels{"namespace": l[0], "model": l[1]}
			m.changes.DeletePartialMatch(gone)
			m.cost.DeletePartialMatch(gone)
		}
	}
}
