package app

import (
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

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
	config     *config.Config
	policy     planner.Policy
	transport  http.RoundTripper // to Prometheus
	collector  *collector.Collector
	idleWindow time.Duration        // of the collector
	metrics    *prometheus.Registry // the collector's own
	matched    atomic.Bool          // the rows of the configuration were compared with a fleet
}

// newSettings makes the parts that depend on a configuration. A nil transport is made of it.
func newSettings(c *config.Config, transport http.RoundTripper, logger *slog.Logger) (*settings, error) {
	s := &settings{config: c, policy: policyOf(c), transport: transport}
	var err error
	if transport == nil {
		if s.transport, err = collector.NewTransport(transportOf(c.Prometheus)); err != nil {
			return nil, err
		}
	}
	return s, s.collect(c.IdleWindow(nil), logger)
}

// collect makes the collector.
func (s *settings) collect(idleWindow time.Duration, logger *slog.Logger) (err error) {
	s.idleWindow, s.metrics = idleWindow, prometheus.NewRegistry()
	options := queriesOf(s.config)
	options.IdleWindow, options.RoundTripper, options.Registerer, options.Logger = idleWindow, s.transport, s.metrics, logger
	s.collector, err = collector.New(options)
	return err
}

// withIdleWindow returns the same settings with a collector of another idle window.
func (s *settings) withIdleWindow(window time.Duration, logger *slog.Logger) (*settings, error) {
	next := &settings{config: s.config, policy: s.policy, transport: s.transport}
	next.matched.Store(s.matched.Load())
	return next, next.collect(window, logger)
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
		Window: p.Windows.Latest, PeakWindow: p.Windows.Peak, TrendWindow: p.Windows.Trend, LongWindow: p.Windows.Long,
		SaturatedWaiting: c.Saturation.QueueThreshold,
		NamespaceLabel:   p.Labels.Namespace, PodLabel: p.Labels.Pod, ModelLabel: p.Labels.Model,
	}
}

func policyOf(c *config.Config) planner.Policy {
	policy := planner.Policy{
		Saturation: analyzer.Saturation{
			KVThreshold: c.Saturation.KVThreshold, QueueThreshold: c.Saturation.QueueThreshold, KVHeadroom: c.KVCache.Headroom,
			MaxThroughputShare: c.Saturation.MaxThroughputShare, MaxITLShare: c.Saturation.MaxITLShare, MaxITLStretch: c.Saturation.MaxITLStretch,
		},
		SaturationAlone: c.Sizing.Queueing == config.Off, Memo: &analyzer.Memo{}, Simulations: c.Sizing.MaxSimulations,
		DrainWithin: c.Backlog.DrainWithin, Startup: c.ScaleUp.StartupTime, Reaction: c.ScaleUp.ReactionTime,
		ScaleDownHeadroom: c.ScaleDown.Headroom, MinReplicaLifetime: c.ScaleDown.MinReplicaLifetime, Retention: c.ScaleToZero.Retention,
		KeepFor: c.MissingData.KeepFor, MetricsGrace: c.MissingData.GracePeriod, Horizon: c.SwitchingCost.Horizon,
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
