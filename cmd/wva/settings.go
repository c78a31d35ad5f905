package main

import (
	"cmp"
	"log/slog"
	"net/http"
	"slices"
	"strings"

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
	transport http.RoundTripper
	collector *collector.Collector
	metrics   *prometheus.Registry // the collector's own
}

func newSettings(c *config.Config, logger *slog.Logger) (*settings, error) {
	s := &settings{config: c, policy: policyOf(c), metrics: prometheus.NewRegistry()}
	var err error
	if s.transport, err = collector.NewTransport(transportOf(c.Prometheus)); err != nil {
		return nil, err
	}
	options := queriesOf(c)
	options.RoundTripper, options.Registerer, options.Logger = s.transport, s.metrics, logger
	if s.collector, err = collector.New(options); err != nil {
		return nil, err
	}
	return s, nil
}

// pools returns the observed pools. Those of fixed accelerators are not elastic. A fixed accelerator
// without an observed pool, because it has no nodes or they cannot be listed, has an empty pool under
// each name that variants give it: its replicas stay, and none is added.
func (s *settings) pools(observed []fleet.Pool, variants []fleet.Variant) []fleet.Pool {
	pools := slices.Clone(observed)
	for _, fixed := range s.config.FixedAccelerators {
		found := false
		for i := range pools {
			if same(string(pools[i].Accelerator), fixed) {
				pools[i].Elastic, found = false, true
			}
		}
		if found {
			continue
		}
		pools = append(pools, fleet.Pool{Accelerator: fleet.Accelerator(fixed)})
		for _, v := range variants {
			if same(string(v.Accelerator), fixed) {
				pools = append(pools, fleet.Pool{Accelerator: v.Accelerator})
			}
		}
	}
	slices.SortStableFunc(pools, func(a, b fleet.Pool) int { return cmp.Compare(a.Accelerator, b.Accelerator) })
	return slices.CompactFunc(pools, func(a, b fleet.Pool) bool { return a.Accelerator == b.Accelerator })
}

// catalogue returns the catalogue of accelerators. A row has the spelling of the nodes, which is that of
// the variants too. It keeps its own if nodes have that as well, or another row has the nodes'.
func (s *settings) catalogue(observed []fleet.Pool) []fleet.AcceleratorSpec {
	rows := slices.Clone(s.config.Accelerators)
	pooled := func(name fleet.Accelerator) bool {
		return slices.ContainsFunc(observed, func(p fleet.Pool) bool { return p.Accelerator == name })
	}
	listed := func(name fleet.Accelerator) bool {
		return slices.ContainsFunc(rows, func(row fleet.AcceleratorSpec) bool { return row.Name == name })
	}
	for i := range rows {
		for _, p := range observed {
			if !pooled(rows[i].Name) && !listed(p.Accelerator) && same(string(p.Accelerator), string(rows[i].Name)) {
				rows[i].Name = p.Accelerator
			}
		}
	}
	return rows
}

// same reports whether two names are those of one accelerator type.
func same(a, b string) bool { return strings.EqualFold(a, b) }

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
		Address: p.URL, Interval: c.Interval, Lag: p.Lag, Timeout: p.QueryTimeout,
		Window: p.Windows.Latest, PeakWindow: p.Windows.Peak, TrendWindow: p.Windows.Trend, IdleWindow: c.IdleWindow(), LongWindow: p.Windows.Long,
		SaturatedWaiting: c.Saturation.QueueThreshold,
		NamespaceLabel:   p.Labels.Namespace, PodLabel: p.Labels.Pod, ModelLabel: p.Labels.Model,
	}
}

func policyOf(c *config.Config) planner.Policy {
	policy := planner.Policy{
		SaturationAlone: c.Policy.Queueing == config.Off, Memo: &analyzer.Memo{}, Simulations: int(c.Policy.Simulations),
		DrainWithin: c.Policy.DrainWithin, KeepFor: c.Policy.HoldFor, Startup: c.Policy.Startup, Retention: c.Policy.Retention,
		MetricsGrace: c.Policy.MetricsGrace, ScaleDownHeadroom: c.Policy.ShrinkMargin, Reaction: c.Policy.Reaction, MinReplicaLifetime: c.Policy.Settle,
		Horizon: c.Policy.Horizon,
	}
	if policy.Simulations == 0 { // the policy's zero is its default
		policy.Simulations = -1
	}
	thresholds := &policy.Saturation
	thresholds.KVThreshold, thresholds.QueueThreshold, thresholds.KVHeadroom = c.Saturation.KVThreshold, c.Saturation.QueueThreshold, c.Saturation.KVSpare
	thresholds.ThroughputMargin, thresholds.ITLMargin, thresholds.ITLStretch = c.Saturation.ThroughputMargin, c.Saturation.ITLMargin, c.Saturation.ITLStretch
	return policy
}

func tlsOf(c *config.Config) scaler.TLSFiles {
	t := c.GRPC.TLS
	return scaler.TLSFiles{Cert: t.CertFile, Key: t.KeyFile, ClientCA: t.ClientCAFile, AllowedNames: t.AllowedClients}
}
