package scaler

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/wva-project/wva/fleet"
)

// listed is what people are told of a variant: what was decided of it, or what is advised.
type listed struct {
	fleet.Decision

	dryRun bool
}

// list returns decisions and advice, sorted by variant.
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

// adviceMetrics counts what would have been done if advice had been followed.
type adviceMetrics struct {
	changes *prometheus.CounterVec // by namespace, model and direction
	cost    *prometheus.CounterVec // by namespace, model and direction
}

func newAdviceMetrics() adviceMetrics {
	return adviceMetrics{
		changes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "wva_advised_changes_total", Help: "Changes of the number of replicas that was advised, by direction: up or down.",
		}, []string{"namespace", "model", "direction"}),
		cost: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "wva_advised_cost_difference_total",
			Help: "What following the advice would have saved, or cost more, since the start: price per replica-hour by hours, by direction: saved or added.",
		}, []string{"namespace", "model", "direction"}),
	}
}

// count adds what the advice that stood until now would have saved, and what changed. A plan that stood for longer than it
// may be acted on counts that long. Models without advice lose their series.
func (m adviceMetrics) count(before, after fleet.Plan, maxAge time.Duration) {
	hours := min(after.Time.Sub(before.Time), maxAge).Hours()
	if before.Time.IsZero() || hours <= 0 {
		return
	}
	defer m.forget(before.Recommendations, after.Recommendations)
	now := make(map[fleet.VariantID]fleet.Decision, len(after.Recommendations))
	for _, a := range after.Recommendations {
		now[a.Variant] = a
	}
	for _, a := range before.Recommendations {
		next, stands := now[a.Variant]
		if !stands {
			continue
		}
		namespace, model := validLabel(a.Variant.Namespace), validLabel(a.Facts.Model.Name)
		if saved, known := a.Saved(); known && saved != 0 {
			direction := "saved"
			if saved < 0 {
				direction, saved = "added", -saved
			}
			m.cost.WithLabelValues(namespace, model, direction).Add(saved * hours)
		}
		switch {
		case !a.Known || !next.Known || a.Replicas == next.Replicas:
		case next.Replicas > a.Replicas:
			m.changes.WithLabelValues(namespace, model, "up").Inc()
		default:
			m.changes.WithLabelValues(namespace, model, "down").Inc()
		}
	}
}

// forget drops the series of models that have no advice any more.
func (m adviceMetrics) forget(before, after []fleet.Decision) {
	advised := make(map[[2]string]bool)
	labels := func(a fleet.Decision) [2]string {
		return [2]string{validLabel(a.Variant.Namespace), validLabel(a.Facts.Model.Name)}
	}
	for _, a := range after {
		advised[labels(a)] = true
	}
	for _, a := range before {
		if l := labels(a); !advised[l] {
			gone := prometheus.Labels{"namespace": l[0], "model": l[1]}
			m.changes.DeletePartialMatch(gone)
			m.cost.DeletePartialMatch(gone)
		}
	}
}
