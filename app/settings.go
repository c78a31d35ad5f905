package app

import (
	"log/slog"
	"net/http"
	"reflect"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/wva-project/wva/analyzer"
	"github.com/wva-project/wva/collector"
	"github.com/wva-project/wva/config"
	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/planner"
	"github.com/wva-project/wva/scaler"
)

// settings is a configuration with all that depends on it and is replaced when it is reloaded.
type settings struct {
	config    *config.Config
	policy    planner.Policy
	transport http.RoundTripper // to Prometheus
	collector *collector.Collector
	metrics   *prometheus.Registry // the collector's own
	matched   atomic.Bool          // the rows of the configuration were compared with a fleet
}

// newSettings makes the parts that depend on a configuration. A nil transport is made of it.
func newSettings(c *config.Config, transport http.RoundTripper, logger *slog.Logger) (*settings, error) {
	s := &settings{config: c, policy: policyOf(c), transport: transport}
	var err error
	if transport == nil {
		if s.transport, err = PrometheusTransport(c.Prometheus); err != nil {
			return nil, err
		}
	}
	s.metrics = prometheus.NewRegistry()
	options := queriesOf(s.config)
	options.RoundTripper, options.Registerer, options.Logger = s.transport, s.metrics, logger
	s.collector, err = collector.New(options)
	return s, err
}

// with returns the parts for another configuration. Those that do not depend on the change stay: a
// change in the ConfigMap of a tenant opens no connections.
func (s *settings) with(c *config.Config, transport http.RoundTripper, logger *slog.Logger) (*settings, error) {
	if c.Prometheus != s.config.Prometheus || !reflect.DeepEqual(queriesOf(c), queriesOf(s.config)) {
		return newSettings(c, transport, logger)
	}
	next := &settings{config: c, policy: policyOf(c), transport: s.transport, collector: s.collector, metrics: s.metrics}
	next.policy.Memo = s.policy.Memo
	return next, nil
}

// warnUnmatched logs the rows of the configuration that match nothing in the fleet: once for each
// configuration, as soon as there are variants.
func (s *settings) warnUnmatched(snapshot fleet.Snapshot, logger *slog.Logger) {
	if len(snapshot.Variants) == 0 || s.matched.Swap(true) {
		return
	}
	rows := s.config.Unmatched(snapshot.Variants, snapshot.Pools)
	if more := len(rows) - config.MostUnmatched; more > 0 {
		rows = rows[:config.MostUnmatched]
		logger.Warn("further configuration rows match nothing", "rows", more)
	}
	for _, row := range rows {
		attributes := []any{"section", row.Section, "row", row.Row}
		if row.Similar != "" {
			attributes = append(attributes, "similar", row.Similar)
		}
		logger.Warn("configuration row matches nothing", attributes...)
	}
}

// close closes idle connections.
func (s *settings) close() { (&http.Client{Transport: s.transport}).CloseIdleConnections() }

// PrometheusTransport returns the transport of requests to Prometheus with the TLS settings and
// credentials of a configuration, or an error that names every invalid one.
func PrometheusTransport(p config.Prometheus) (http.RoundTripper, error) {
	return collector.NewTransport(transportOf(p))
}

func transportOf(p config.Prometheus) collector.TransportOptions {
	return collector.TransportOptions{
		CAFile: p.CAFile, CertFile: p.CertFile, KeyFile: p.KeyFile, ServerName: p.ServerName,
		BearerToken: p.BearerToken, BearerTokenFile: p.BearerTokenFile,
	}
}

func queriesOf(c *config.Config) collector.Options {
	p := c.Prometheus
	return collector.Options{
		Address: p.URL, Interval: c.Interval, Lag: p.QueryOffset, Timeout: p.QueryTimeout,
		Window: p.Windows.Latest, PeakWindow: p.Windows.Peak, LongWindow: p.Windows.Long,
		BudgetWindow: c.ErrorBudget.Window, SaturatedWaiting: c.Saturation.QueueThreshold,
		NamespaceLabel: p.Labels.Namespace, PodLabel: p.Labels.Pod, ModelLabel: p.Labels.Model, Matchers: p.Matchers,
	}
}

func policyOf(c *config.Config) planner.Policy {
	policy := planner.Policy{
		Saturation: analyzer.Saturation{
			KVThreshold: c.Saturation.KVThreshold, QueueThreshold: c.Saturation.QueueThreshold, KVHeadroom: c.KVCache.Headroom,
			MaxThroughputShare: c.Saturation.MaxThroughputShare, MaxITLShare: c.Saturation.MaxITLShare, MaxITLStretch: c.Saturation.MaxITLStretch,
		},
		SaturationAlone: c.Sizing.Queueing == config.Off, Memo: &analyzer.Memo{}, Simulations: c.Sizing.MaxSimulations,
		DrainWithin: c.Backlog.DrainWithin, Startup: c.ScaleUp.StartupTime,
		ScaleDownHeadroom: c.ScaleDown.Headroom, MinReplicaLifetime: c.ScaleDown.MinReplicaLifetime, Retention: c.ScaleToZero.Retention,
		KeepFor: c.MissingData.KeepFor, MetricsGrace: c.MissingData.GracePeriod, Horizon: c.SwitchingCost.Horizon,
		BudgetWindow: c.ErrorBudget.Window, BudgetOff: !c.ErrorBudget.Enabled,
	}
	if policy.Simulations == 0 { // the policy's zero is its default
		policy.Simulations = -1
	}
	return policy
}

func tlsOf(c *config.Config) scaler.TLSFiles {
	t := c.GRPC.TLS
	return scaler.TLSFiles{Cert: t.CertFile, Key: t.KeyFile, ClientCA: t.ClientCAFile, AllowedNames: t.AllowedClients}
}

// operatorsTLSOf is that of KEDA's port with names of its own. A port of the loopback has none: it
// is reached through kubectl port-forward, which the API server authorizes.
func operatorsTLSOf(c *config.Config) scaler.TLSFiles {
	if c.Operators.Loopback() {
		return scaler.TLSFiles{}
	}
	files := tlsOf(c)
	files.AllowedNames = c.Operators.AllowedClients
	return files
}
