package app

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/wva-project/wva/fleet"
)

// crashes counts and logs the models that are held because deciding them panicked.
type crashes struct{ held prometheus.Counter }

func newCrashes(registerer prometheus.Registerer) *crashes {
	c := &crashes{held: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "wva_crashed_models_total",
		Help: "Models that a cycle held because deciding them panicked; the log has the stack.",
	})}
	registerer.MustRegister(c.held)
	return c
}

// report counts and logs the crashes of a plan.
func (c *crashes) report(plan fleet.Plan, logger *slog.Logger) {
	for _, crash := range plan.Crashes {
		c.held.Inc()
		logger.Error("model crashed, held", "namespace", crash.Model.Namespace, "model", crash.Model.Name, "panic", crash.Panic, "stack", crash.Stack)
	}
}
