package cluster

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// clusterMetrics are the metrics of a cluster.
type metrics struct {
	errors   *prometheus.CounterVec
	rebuilds prometheus.Histogram
	objects  *prometheus.Desc
	failing  *prometheus.Desc
	states   func() []watchState
}

// newClusterMetrics registers the metrics if there is a registerer.
func newMetrics(registerer prometheus.Registerer, states func() []watchState) (*metrics, error) {
	m := &metrics{
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "wva_watch_errors_total", Help: "Requests to the API server that read a resource and failed.",
		}, []string{"resource"}),
		rebuilds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "wva_inventory_rebuild_seconds", Help: "Time to rebuild the tables from the cluster's objects.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 14),
		}),
		objects: prometheus.NewDesc("wva_inventory_objects", "Objects of a resource that are known.", []string{"resource"}, nil),
		failing: prometheus.NewDesc("wva_watch_failing", "1 while a watch of a resource fails, else 0.", []string{"resource"}, nil),
		states:  states,
	}
	if registerer == nil {
		return m, nil
	}
	return m, errors.Join(registerer.Register(m.errors), registerer.Register(m.rebuilds), registerer.Register(m))
}

// Describe describes the metrics of Collect.
func (m *metrics) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- m.objects
	descriptions <- m.failing
}

// Collect returns the state of the watches. A resource that is not watched any more has no series.
func (m *metrics) Collect(metrics chan<- prometheus.Metric) {
	states := m.states() // sorted by resource
	for i := 0; i < len(states); {
		name, objects, failing := states[i].id.name(), 0, 0.0
		for ; i < len(states) && states[i].id.name() == name; i++ {
			objects += states[i].rows
			if states[i].health.failure != nil {
				failing = 1
			}
		}
		metrics <- prometheus.MustNewConstMetric(m.objects, prometheus.GaugeValue, float64(objects), name)
		metrics <- prometheus.MustNewConstMetric(m.failing, prometheus.GaugeValue, failing, name)
	}
}
