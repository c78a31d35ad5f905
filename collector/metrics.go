package collector

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are those of the collector itself.
type metrics struct {
	queries   *prometheus.CounterVec
	durations *prometheus.HistogramVec
	age       prometheus.Gauge
	scaleDown prometheus.Gauge
}

func newMetrics(registerer prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		queries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "wva_collector_queries_total",
			Help: "Queries sent to Prometheus, by query and by result (success or error).",
		}, []string{"query", "result"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "wva_collector_query_duration_seconds",
			Help:    "Time until Prometheus answered a query.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"query"}),
		age: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "wva_collector_newest_sample_age_seconds",
			Help: "Age of the newest sample of any engine when it was last collected.",
		}),
		scaleDown: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "wva_collector_scale_down_window_seconds",
			Help: "Scale-down window of the last cycle: the peak window, or twice the longest start-up of a target.",
		}),
	}
	if registerer == nil {
		return m, nil
	}
	var problems []error
	for _, collector := range []prometheus.Collector{m.queries, m.durations, m.age, m.scaleDown} {
		problems = append(problems, registerer.Register(collector))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("registering the collector's metrics: %w", err)
	}
	return m, nil
}

func (m *metrics) observe(query string, took time.Duration, err error) {
	result := "success"
	if err != nil {
		result = "error"
	}
	m.queries.WithLabelValues(query, result).Inc()
	m.durations.WithLabelValues(query).Observe(took.Seconds())
}
