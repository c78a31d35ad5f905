package config

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/wva-project/wva/fleet"
)

// Setting is one row of the table of what there is to set.
type Setting struct {
	// Key is the place in the file, such as "prometheus.caFile".
	Key string
	// Default is what counts where nothing is set, as it would be written.
	Default string
	// Meaning is a sentence or two for people.
	Meaning string
	// Reloadable settings act as soon as the file has changed; the others need a restart.
	Reloadable bool

	binding binding
	// note is what the effective configuration says beside the value; nil where it says nothing.
	note func(*Config) string
}

// Env returns the name of the setting's environment variable.
func (s Setting) Env() string {
	return environmentPrefix + strings.ToUpper(strings.Join(words(s.Key), "_"))
}

// Flag returns the name of the setting's flag; empty for a secret, which other processes could read there.
func (s Setting) Flag() string {
	if s.Secret() {
		return ""
	}
	return strings.Join(words(s.Key), "-")
}

// Kind returns the name of the setting's type.
func (s Setting) Kind() string { return s.binding.kind() }

// Allowed returns what may be written.
func (s Setting) Allowed() string { return s.binding.allowed() }

// Secret reports whether the value is never shown.
func (s Setting) Secret() bool { return s.binding.secret() }

// Settings returns the table, in the order of the file.
func Settings() []Setting {
	var table []Setting
	for _, rows := range [][]Setting{
		generalSettings(), kubernetesSettings(), prometheusSettings(), windowSettings(), servingSettings(), saturationSettings(), policySettings(), fleetSettings(),
	} {
		table = append(table, rows...)
	}
	return table
}

func row(key, fallback, meaning string, b binding) Setting {
	return Setting{Key: key, Default: fallback, Meaning: meaning, Reloadable: true, binding: b}
}

func (s Setting) needsRestart() Setting {
	s.Reloadable = false
	return s
}

func (s Setting) noted(note func(*Config) string) Setting {
	s.note = note
	return s
}

const day = 24 * time.Hour

func generalSettings() []Setting {
	return []Setting{
		row("interval", "15s", "Time between two decisions. Prometheus is asked once in it.",
			bind(duration(time.Second, time.Hour, "15s"), func(c *Config) *time.Duration { return &c.Interval })),
		row("maxPlanAge", "5m", "Age from which a plan is no longer answered from: KEDA then gets an error, and readiness is lost. Where it is not set, 5m or four intervals, whichever is longer.",
			bind(duration(2*time.Second, day, "5m"), func(c *Config) *time.Duration { return &c.MaxPlanAge })),
		row("manifests", "", "Directory of ScaledObjects, workloads, pods and nodes as 'kubectl get -o yaml' prints them, to work without a cluster. It is read again when a file in it changes. Default: the cluster is watched.",
			bind(optional(directory()), func(c *Config) *string { return &c.Manifests })).needsRestart(),
		row("dumpSnapshot", "", "File that the input of the first decision is written to, and that of the latest one at each SIGUSR1; 'wvactl plan FILE' decides it again. Default: none, and SIGUSR1 writes a new file in the temporary directory.",
			bind(optional(oneLine()), func(c *Config) *string { return &c.DumpSnapshot })),
		row("log.level", "info", "The least level that is logged: debug, info, warn or error. info has a line for each changed target, debug one for each cycle.",
			bind(level(), func(c *Config) *slog.Level { return &c.Log.Level })),
		row("log.format", "text", "Form of the log's lines on standard error: text or json.",
			bind(oneOf(FormatText, FormatJSON), func(c *Config) *string { return &c.Log.Format })).needsRestart(),
	}
}

func kubernetesSettings() []Setting {
	k := func(field func(*Kubernetes) *string) func(*Config) *string {
		return func(c *Config) *string { return field(&c.Kubernetes) }
	}
	return []Setting{
		row("kubeconfig", "", "File that says how to reach the cluster. Default: the cluster that the server runs in.",
			bind(optional(readableFile()), k(func(k *Kubernetes) *string { return &k.Kubeconfig }))).needsRestart(),
		row("kubeContext", "", "Context of the kubeconfig. Default: its current one.",
			bind(optional(oneLine()), k(func(k *Kubernetes) *string { return &k.Context }))).needsRestart(),
		row("watchNamespace", "", "Namespaces that are watched; a role in each of them is then enough. Default: all.",
			names(func(c *Config) *[]string { return &c.Kubernetes.WatchNamespaces })).needsRestart(),
		row("excludeNamespace", "", "Namespaces whose objects are left alone.",
			names(func(c *Config) *[]string { return &c.Kubernetes.ExcludedNamespaces })).needsRestart(),
		row("namespaceSelector", "", "Labels that a namespace must have for its objects to be seen, such as team=llm,stage!=test. Default: none.",
			bind(optional(oneLine()), k(func(k *Kubernetes) *string { return &k.NamespaceSelector }))).needsRestart(),
		row("kubernetes.qps", "20", "Requests a second to the API server. Watches are not counted once they stand.",
			bind(number(1, 10_000), func(c *Config) *float64 { return &c.Kubernetes.QPS })).needsRestart(),
		row("kubernetes.burst", "40", "Requests to the API server that may be made at once.",
			bind(number(1, 10_000), func(c *Config) *float64 { return &c.Kubernetes.Burst })).needsRestart(),
		row("kubernetes.maxCacheAge", "10m", "How long replicas are believed that the API server has stopped reporting. After it, variants are held at their number.",
			bind(duration(10*time.Second, day, "10m"), func(c *Config) *time.Duration { return &c.Kubernetes.MaxCacheAge })).needsRestart(),
		row("kubernetes.advisory", On, "Whether variants that are declared by wva.dev/ annotations on workloads, HPAs and ScaledObjects of others are looked for: on or off. They are decided and explained, and nothing is done.",
			bind(oneOf(On, Off), k(func(k *Kubernetes) *string { return &k.Advisory }))).needsRestart(),
		row("kubernetes.events", On, "Whether Kubernetes events are written on ScaledObjects: on or off. One of several replicas writes them.",
			bind(oneOf(On, Off), k(func(k *Kubernetes) *string { return &k.Events }))).needsRestart(),
		row("kubernetes.leaseNamespace", "", "Namespace of the lease that says which replica writes events. Default: that of the pod. With a kubeconfig, no events are written unless it is set.",
			bind(optional(oneLine()), k(func(k *Kubernetes) *string { return &k.LeaseNamespace }))).needsRestart(),
	}
}

func prometheusSettings() []Setting {
	path := optional(readableFile())
	p := func(field func(*Prometheus) *string) func(*Config) *string {
		return func(c *Config) *string { return field(&c.Prometheus) }
	}
	return []Setting{
		row("prometheus.url", "", "URL of Prometheus' HTTP API, or of what answers like it.",
			bind(httpURL(), p(func(p *Prometheus) *string { return &p.URL }))),
		row("prometheus.caFile", "", "Certificates of the authorities that may vouch for Prometheus, PEM. Default: those of the system.",
			bind(path, p(func(p *Prometheus) *string { return &p.CAFile }))),
		row("prometheus.certFile", "", "Client certificate to show to Prometheus, PEM.",
			bind(path, p(func(p *Prometheus) *string { return &p.CertFile }))),
		row("prometheus.keyFile", "", "Key of the client certificate, PEM.",
			bind(path, p(func(p *Prometheus) *string { return &p.KeyFile }))),
		row("prometheus.serverName", "", "Name that the certificate of Prometheus must have. Default: the host of the URL.",
			bind(optional(hostName()), p(func(p *Prometheus) *string { return &p.ServerName }))),
		row("prometheus.bearerToken", "", "Token to show to Prometheus. It has no flag, since other processes can read those; prefer bearerTokenFile.",
			bind(optional(token()), p(func(p *Prometheus) *string { return &p.BearerToken }))),
		row("prometheus.bearerTokenFile", "", "File that holds the token to show to Prometheus. It is read again when it changes.",
			bind(path, p(func(p *Prometheus) *string { return &p.BearerTokenFile }))),
		row("prometheus.queryTimeout", "10s", "How long a query may take; it must be below the interval. Where it is not set, 10s or two thirds of the interval, whichever is shorter.",
			bind(duration(100*time.Millisecond, time.Hour, "10s"), func(c *Config) *time.Duration { return &c.Prometheus.QueryTimeout })),
		row("prometheus.lag", "2s", "How far behind the present Prometheus is asked, so that scrapes have arrived. Decisions are made that long after each multiple of the interval.",
			bind(duration(time.Millisecond, 10*time.Minute, "2s"), func(c *Config) *time.Duration { return &c.Prometheus.Lag })).needsRestart(),
		row("prometheus.labels.namespace", "namespace", "Label of engine metrics that holds the namespace.",
			bind(labelName(), func(c *Config) *string { return &c.Prometheus.Labels.Namespace })),
		row("prometheus.labels.pod", "pod", "Label of engine metrics that holds the pod's name.",
			bind(labelName(), func(c *Config) *string { return &c.Prometheus.Labels.Pod })),
		row("prometheus.labels.model", "model_name", "Label of engine metrics that holds the served model's name.",
			bind(labelName(), func(c *Config) *string { return &c.Prometheus.Labels.Model })),
	}
}

func windowSettings() []Setting {
	window := func(example string, field func(*Windows) *time.Duration) binding {
		return bind(duration(4*time.Second, 30*day, example), func(c *Config) *time.Duration { return field(&c.Prometheus.Windows) })
	}
	return []Setting{
		row("prometheus.windows.latest", "1m", "Window of rates. It must hold four scrapes.",
			window("1m", func(w *Windows) *time.Duration { return &w.Latest })),
		row("prometheus.windows.peak", "5m", "How far back the highest demand is looked for, below which nothing shrinks. At least the latest window.",
			window("5m", func(w *Windows) *time.Duration { return &w.Peak })),
		row("prometheus.windows.idle", "10m", "How far back the last use of a model is looked for; the longest retention where that is longer. At least the latest window.",
			window("10m", func(w *Windows) *time.Duration { return &w.Idle })),
		row("prometheus.windows.long", "1h", "How far back the best of a replica and the lengths of requests are looked for. At least the peak window.",
			window("1h", func(w *Windows) *time.Duration { return &w.Long })),
		row("prometheus.windows.trend", "2m", "How far back the trend of the demand is fitted. At least the latest window.",
			window("2m", func(w *Windows) *time.Duration { return &w.Trend })),
	}
}

func servingSettings() []Setting {
	path := optional(readableFile())
	return []Setting{
		row("grpc.address", ":9090", "Where KEDA and operators are answered.",
			bind(address(":9090"), func(c *Config) *string { return &c.GRPC.Address })).needsRestart(),
		row("grpc.tls.certFile", "", "Certificate of the gRPC port, PEM; it secures the port. It is read again when it changes.",
			bind(path, func(c *Config) *string { return &c.GRPC.TLS.CertFile })).needsRestart(),
		row("grpc.tls.keyFile", "", "Key of the certificate, PEM.",
			bind(path, func(c *Config) *string { return &c.GRPC.TLS.KeyFile })).needsRestart(),
		row("grpc.tls.clientCAFile", "", "Authorities of client certificates, PEM. Where it is set, only their holders are answered (mTLS).",
			bind(path, func(c *Config) *string { return &c.GRPC.TLS.ClientCAFile })).needsRestart(),
		row("grpc.tls.allowedClients", "", "Names, one of which a client's certificate must have. Default: any that the authorities vouch for.",
			names(func(c *Config) *[]string { return &c.GRPC.TLS.AllowedClients })).needsRestart(),
		row("http.address", ":8080", "Where /healthz, /readyz and /metrics are served.",
			bind(address(":8080"), func(c *Config) *string { return &c.HTTP.Address })).needsRestart(),
	}
}

func saturationSettings() []Setting {
	threshold := func(least, most float64, field func(*Saturation) *float64) binding {
		return bind(number(least, most), func(c *Config) *float64 { return field(&c.Saturation) })
	}
	return []Setting{
		row("saturation.kvThreshold", "0.8", "Share of the KV cache at which a replica is saturated.",
			threshold(0.01, 1, func(s *Saturation) *float64 { return &s.KVThreshold })),
		row("saturation.queueThreshold", "5", "Number of waiting requests at which a replica is saturated.",
			threshold(0.1, 10_000, func(s *Saturation) *float64 { return &s.QueueThreshold })),
		row("saturation.kvSpare", "0.1", "Share of the KV cache that is kept free below the threshold; it must be below it.",
			threshold(0.001, 0.99, func(s *Saturation) *float64 { return &s.KVSpare })),
		row("saturation.throughputMargin", "0.85", "Part of the throughput of a busy replica that it is asked to carry.",
			threshold(0.01, 1, func(s *Saturation) *float64 { return &s.ThroughputMargin })),
		row("saturation.itlMargin", "0.7", "Part of the objective's inter-token latency that the mean is kept within.",
			threshold(0.01, 1, func(s *Saturation) *float64 { return &s.ITLMargin })),
		row("saturation.itlStretch", "3", "By how much tokens may slow down against a nearly empty batch where there is no objective.",
			threshold(1, 1000, func(s *Saturation) *float64 { return &s.ITLStretch })),
	}
}

func policySettings() []Setting {
	within := func(least, most time.Duration, example string, field func(*Policy) *time.Duration) binding {
		return bind(duration(least, most, example), func(c *Config) *time.Duration { return field(&c.Policy) })
	}
	return []Setting{
		row("policy.drainWithin", "1m", "Time in which a backlog is to be served.",
			within(time.Second, day, "1m", func(p *Policy) *time.Duration { return &p.DrainWithin })),
		row("policy.holdFor", "5m", "How long a standing number is repeated on missing data. After it, the replicas that are there count.",
			within(time.Second, day, "5m", func(p *Policy) *time.Duration { return &p.HoldFor })),
		row("policy.startup", "2m", "How long a replica takes to load where its workload has not shown it.",
			within(time.Second, day, "2m", func(p *Policy) *time.Duration { return &p.Startup })),
		row("policy.retention", "10m", "How long a model stays up unused before it may go to zero, where the model does not say.",
			within(leastRetention, mostRetention, "10m", func(p *Policy) *time.Duration { return &p.Retention })),
		row("policy.metricsGrace", "1m", "How long a ready replica may report nothing before that counts as missing.",
			within(time.Second, day, "1m", func(p *Policy) *time.Duration { return &p.MetricsGrace })),
		row("policy.shrinkMargin", "0.2", "By how much the capacity that is left after a scale-down exceeds the highest demand of the peak window.",
			bind(number(0.001, 100), func(c *Config) *float64 { return &c.Policy.ShrinkMargin })),
		row("policy.reaction", "45s", "Time from a change of the load until a replica is asked for: scrape, decision, HPA.",
			within(time.Second, day, "45s", func(p *Policy) *time.Duration { return &p.Reaction })),
		row("policy.settle", "5m", "How long a replica that was started is kept at least.",
			within(time.Second, day, "5m", func(p *Policy) *time.Duration { return &p.Settle })),
		row("policy.horizon", "1h", "Time over which a running replica is weighed against the price of starting one.",
			within(time.Minute, 30*day, "1h", func(p *Policy) *time.Duration { return &p.Horizon })),
		row("policy.queueing", On, "Whether objectives size replicas by profiles, percentiles and the queueing model: on or off. Off leaves it to saturation.",
			bind(oneOf(On, Off), func(c *Config) *string { return &c.Policy.Queueing })),
		row("policy.simulations", "32", "How many variants of a plan may be sized by simulation where the queueing model's formula is known to be far off: the first, by the names of their models; 0 is none.",
			bind(number(0, 10_000), func(c *Config) *float64 { return &c.Policy.Simulations })),
	}
}

func fleetSettings() []Setting {
	return []Setting{
		row("models", "", "What belongs to a model: whether it may go to zero, and after how long without use. A model that is not listed stays up.",
			models(func(c *Config) *[]fleet.Model { return &c.Models })),
		row("serviceClasses", "", "The classes that variants name as serviceClass. Where models compete for accelerators, those of a higher priority are served first; a model has the highest of its variants' classes, and 0 without one.",
			classes(func(c *Config) *[]fleet.ServiceClass { return &c.ServiceClasses })),
		row("fixedAccelerators", "", "Accelerators of which the cluster has no more than its nodes show, as the catalogue names them, in capitals or not; where it shows none, none is added. Of the others a node autoscaler is taken to add what is asked for. Those of a directory of manifests are fixed all.",
			names(func(c *Config) *[]string { return &c.FixedAccelerators })),
		row("accelerators", starterCatalogue, "The catalogue of accelerators: throughput of one, of which only ratios count, and memory. A list replaces the whole catalogue.",
			accelerators(func(c *Config) *[]fleet.AcceleratorSpec { return &c.Accelerators })),
		row("profiles", "", "What an iteration costs the engine that serves a model on an accelerator, in milliseconds. Of several entries that fit a variant the first counts, and each goes before the catalogue.",
			profiles(func(c *Config) *[]fleet.Profile { return &c.Profiles })),
		row("profileCatalogue", On, "Whether the shipped profiles count where none of the list above fits: on or off.",
			bind(oneOf(On, Off), func(c *Config) *string { return &c.ProfileCatalogue })).noted(func(c *Config) string {
			return fmt.Sprintf("%d shipped profiles", len(c.catalogue))
		}),
	}
}

// starterCatalogue has, as the speed, the geometric mean of memory bandwidth and dense 16-bit throughput by the makers'
// data sheets, relative to an L40S: decoding is bound by the one, prefill by the other. What replicas are seen to carry
// takes precedence over it.
const starterCatalogue = `[
  {name: T4, speed: 0.26},
  {name: L4, speed: 0.34},
  {name: A10G, speed: 0.37},
  {name: L40S, speed: 1},
  {name: A100-40GB, speed: 1.2},
  {name: A100, speed: 1.4},
  {name: H100, speed: 3.2},
  {name: H200, speed: 3.9},
  {name: B200, speed: 7.6},
  {name: MI300X, speed: 4.7},
  {name: MI325X, speed: 5},
  {name: Gaudi2, speed: 1.8},
  {name: Gaudi3, speed: 4.7},
]`
