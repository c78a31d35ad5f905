package config

import (
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/wva-project/wva/fleet"
)

const day = 24 * time.Hour

// The limits of the window of the error budget.
const leastBudgetWindow, mostBudgetWindow = 10 * time.Minute, day

// Settings returns the table of settings, in the order of the file.
func Settings() []Setting {
	return slices.Concat(
		global(cycleSettings()...), generalSettings(), kubernetesSettings(), prometheusSettings(), global(windowSettings()...), portSettings(),
		global(saturationSettings()...), global(scalingSettings()...), global(sizingSettings()...), global(fleetSettings()...),
	)
}

func cycleSettings() []Setting {
	return []Setting{
		row("interval", "15s", "Time between two decisions. Prometheus is queried once for each.",
			bind(duration(time.Second, time.Hour, "15s"), func(c *Config) *time.Duration { return &c.Interval })),
		row("maxPlanAge", "5m", "Age at which a plan expires: KEDA then gets an error, and the server is not ready. If it is not set: 5m or four intervals, whichever is longer.",
			bind(duration(2*time.Second, day, "5m"), func(c *Config) *time.Duration { return &c.MaxPlanAge })),
	}
}

func generalSettings() []Setting {
	return []Setting{
		row("manifests", "", "Directory of ScaledObjects, workloads, pods and nodes as 'kubectl get -o yaml' prints them, to run without a cluster. It is read again when a file in it changes. Default: the cluster is watched.",
			bind(optional(directory()), func(c *Config) *string { return &c.Manifests })).needsRestart(),
		row("dumpSnapshot", "", "File to which the input of the first decision is written, and that of the latest one at each SIGUSR1; 'wvactl plan FILE' decides it again. Default: none, and SIGUSR1 writes a new file in the temporary directory.",
			bind(optional(oneLine()), func(c *Config) *string { return &c.DumpSnapshot })),
		row("log.level", "info", "Lowest level that is logged: debug, info, warn or error. info logs each changed target, debug each cycle.",
			bind(level(), func(c *Config) *slog.Level { return &c.Log.Level })),
		row("log.format", "text", "Format of the log on standard error: text or json.",
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
		row("kubeContext", "", "Context of the kubeconfig. Default: its current context.",
			bind(optional(oneLine()), k(func(k *Kubernetes) *string { return &k.Context }))).needsRestart(),
		row("watchNamespace", "", "Namespaces that are watched; a Role in each of them is then enough. Default: all namespaces.",
			names(func(c *Config) *[]string { return &c.Kubernetes.WatchNamespaces })).needsRestart(),
		row("excludeNamespace", "", "Namespaces whose objects are ignored.",
			names(func(c *Config) *[]string { return &c.Kubernetes.ExcludedNamespaces })).needsRestart(),
		row("namespaceSelector", "", "Labels that a namespace must have for its objects to be seen, such as team=llm,stage!=test. Default: none.",
			bind(optional(oneLine()), k(func(k *Kubernetes) *string { return &k.NamespaceSelector }))).needsRestart(),
		row("kubernetes.qps", "20", "Requests per second to the API server. Established watches do not count.",
			bind(number(1, 10_000), func(c *Config) *float64 { return &c.Kubernetes.QPS })).needsRestart(),
		row("kubernetes.burst", "40", "Requests that may be sent to the API server at once.",
			bind(number(1, 10_000), func(c *Config) *float64 { return &c.Kubernetes.Burst })).needsRestart(),
		row("kubernetes.maxCacheAge", "10m", "How long the last reported replicas are used while the API server does not report. After that, variants are held at their number.",
			bind(duration(10*time.Second, day, "10m"), func(c *Config) *time.Duration { return &c.Kubernetes.MaxCacheAge })).needsRestart(),
		row("kubernetes.dryRunVariants", On, "Whether variants that wva.dev/ annotations on workloads, HPAs and other ScaledObjects declare are decided as a dry run: on or off. A dry run gives recommendations and scales nothing. All other variants are scaled in either case.",
			bind(oneOf(On, Off), k(func(k *Kubernetes) *string { return &k.DryRunVariants }))).needsRestart(),
		row("kubernetes.events", On, "Whether Kubernetes events are written on ScaledObjects: on or off. Of several servers, one writes them.",
			bind(oneOf(On, Off), k(func(k *Kubernetes) *string { return &k.Events }))).needsRestart(),
		row("kubernetes.leaseNamespace", "", "Namespace of the Lease that selects the server which writes events. Default: the namespace of the pod. With a kubeconfig there is no default: without a namespace, no events are written.",
			bind(optional(oneLine()), k(func(k *Kubernetes) *string { return &k.LeaseNamespace }))).needsRestart(),
		row("kubernetes.configMaps", Off, "ConfigMaps with the label wva.dev/config=true that are read as configuration: off, own (those of the server's namespace, which apply to all) or all (those of watched namespaces too, each for the variants of its namespace).",
			bind(oneOf(Off, ConfigMapsOwn, ConfigMapsAll), k(func(k *Kubernetes) *string { return &k.ConfigMaps }))).needsRestart(),
		row("kubernetes.configNamespace", "", "Namespace whose ConfigMaps apply to all namespaces. Default: the namespace of the pod. With a kubeconfig there is no default.",
			bind(optional(oneLine()), k(func(k *Kubernetes) *string { return &k.ConfigNamespace }))).needsRestart(),
	}
}

func prometheusSettings() []Setting {
	path := optional(readableFile())
	p := func(field func(*Prometheus) *string) func(*Config) *string {
		return func(c *Config) *string { return field(&c.Prometheus) }
	}
	return []Setting{
		row("prometheus.url", "", "URL of the HTTP API of Prometheus or of a compatible server. Required.",
			bind(httpURL(), p(func(p *Prometheus) *string { return &p.URL }))),
		row("prometheus.caFile", "", "Certificates of the authorities (CA) of the server certificate, PEM. Default: those of the system.",
			bind(path, p(func(p *Prometheus) *string { return &p.CAFile }))),
		row("prometheus.certFile", "", "Client certificate, PEM.",
			bind(path, p(func(p *Prometheus) *string { return &p.CertFile }))),
		row("prometheus.keyFile", "", "Private key of the client certificate, PEM.",
			bind(path, p(func(p *Prometheus) *string { return &p.KeyFile }))),
		row("prometheus.serverName", "", "Name that the server certificate must have. Default: the host of the URL.",
			bind(optional(hostName()), p(func(p *Prometheus) *string { return &p.ServerName }))),
		row("prometheus.bearerToken", "", "Bearer token. It has no flag, because other processes can read flags. Prefer bearerTokenFile.",
			bind(optional(token()), p(func(p *Prometheus) *string { return &p.BearerToken }))),
		row("prometheus.bearerTokenFile", "", "File with the bearer token. It is read again when it changes.",
			bind(path, p(func(p *Prometheus) *string { return &p.BearerTokenFile }))),
		row("prometheus.queryTimeout", "10s", "Longest time for one query. It must be below the interval. If it is not set: 10s or two thirds of the interval, whichever is shorter.",
			bind(duration(100*time.Millisecond, time.Hour, "10s"), func(c *Config) *time.Duration { return &c.Prometheus.QueryTimeout })),
		row("prometheus.queryOffset", "2s", "How far in the past Prometheus is queried, so that scrapes have arrived. Each decision is later by this time.",
			bind(duration(time.Millisecond, 10*time.Minute, "2s"), func(c *Config) *time.Duration { return &c.Prometheus.QueryOffset })).needsRestart(),
		row("prometheus.labels.namespace", "namespace", "Label of engine metrics with the namespace of the pod.",
			bind(labelName(), func(c *Config) *string { return &c.Prometheus.Labels.Namespace })),
		row("prometheus.labels.pod", "pod", "Label of engine metrics with the name of the pod.",
			bind(labelName(), func(c *Config) *string { return &c.Prometheus.Labels.Pod })),
		row("prometheus.labels.model", "model_name", "Label of engine metrics with the served model name.",
			bind(labelName(), func(c *Config) *string { return &c.Prometheus.Labels.Model })),
		row("prometheus.matchers", "", "Label matchers that every series must meet, added to every selector of every query. They keep the series of other clusters out of one that Prometheus, such as a global Thanos, has beside those of this cluster.",
			bind(optional(labelMatchers()), p(func(p *Prometheus) *string { return &p.Matchers }))),
	}
}

func windowSettings() []Setting {
	window := func(example string, field func(*Windows) *time.Duration) binding {
		return bind(duration(4*time.Second, 30*day, example), func(c *Config) *time.Duration { return field(&c.Prometheus.Windows) })
	}
	return []Setting{
		row("prometheus.windows.latest", "1m", "Least window of rates. The window is doubled until it is as long as 3.5 scrape intervals, up to the peak window.",
			window("1m", func(w *Windows) *time.Duration { return &w.Latest })),
		row("prometheus.windows.peak", "5m", "Least window of the highest demand: below that demand, scale-down is blocked. The window is longer if twice the longest start-up of a target is, up to 30m. A longer window scales down later. At least the latest window.",
			window("5m", func(w *Windows) *time.Duration { return &w.Peak })),
		row("prometheus.windows.shortPeak", "2m", "Least window of the highest rate of a model that has spent at most 30 % of its error budget: it can afford to start replicas again. The window is longer if 1.5 times the longest start-up of a target is, not shorter than the latest window, and not longer than the scale-down window of others. It is off with a value of at least the peak window, and if a twentieth of errorBudget.window and the latest window together are longer than the scale-down window.",
			window("2m", func(w *Windows) *time.Duration { return &w.ShortPeak })),
		row("prometheus.windows.idle", "10m", "Window in which the last use of a model is searched, or the longest retention if that is longer; a scaleToZeroAfter of a variant counts up to the long window. At least the latest window.",
			window("10m", func(w *Windows) *time.Duration { return &w.Idle })),
		row("prometheus.windows.long", "1h", "Window of the best throughput and latency of a replica, and of the lengths of requests. At least the peak window.",
			window("1h", func(w *Windows) *time.Duration { return &w.Long })),
	}
}

func portSettings() []Setting {
	path := optional(readableFile())
	return []Setting{
		row("grpc.address", ":9090", "Address of the gRPC port, for KEDA.",
			bind(address(":9090"), func(c *Config) *string { return &c.GRPC.Address })).needsRestart(),
		row("grpc.maxStreams", "50000", "Largest number of open streams of all clients. KEDA opens two for each object. If none is free, the address with the most loses its newest ones to those with fewer.",
			bind(integer(100, 1_000_000), func(c *Config) *int { return &c.GRPC.MaxStreams })).needsRestart(),
		row("grpc.tls.certFile", "", "Certificate of the gRPC port, PEM. It turns on TLS, and is read again when it changes.",
			bind(path, func(c *Config) *string { return &c.GRPC.TLS.CertFile })).needsRestart(),
		row("grpc.tls.keyFile", "", "Private key of the certificate, PEM.",
			bind(path, func(c *Config) *string { return &c.GRPC.TLS.KeyFile })).needsRestart(),
		row("grpc.tls.clientCAFile", "", "Certificates of the authorities (CA) of client certificates, PEM. It turns on mTLS: clients without such a certificate are rejected.",
			bind(path, func(c *Config) *string { return &c.GRPC.TLS.ClientCAFile })).needsRestart(),
		row("grpc.tls.allowedClients", "", "Names, one of which a client certificate must have. Default: any name.",
			names(func(c *Config) *[]string { return &c.GRPC.TLS.AllowedClients })).needsRestart(),
		row("operators.address", "127.0.0.1:9091", "Address of the gRPC port of the operators' API, which has the decisions of all namespaces. A port of the loopback, which kubectl port-forward reaches, is plaintext; any other has the certificates of grpc.tls.",
			bind(address("127.0.0.1:9091"), func(c *Config) *string { return &c.Operators.Address })).needsRestart(),
		row("operators.allowedClients", "", "Names, one of which the certificate of an operator must have. Required with grpc.tls.clientCAFile if the port is not of the loopback.",
			names(func(c *Config) *[]string { return &c.Operators.AllowedClients })).needsRestart(),
		row("http.address", ":8080", "Address of the HTTP port, with /healthz, /readyz and /metrics.",
			bind(address(":8080"), func(c *Config) *string { return &c.HTTP.Address })).needsRestart(),
	}
}

func saturationSettings() []Setting {
	return []Setting{
		row("saturation.kvThreshold", "0.8", "KV cache usage at which a replica is saturated, as a share. A lower value starts more replicas.",
			bind(number(0.01, 1), func(c *Config) *float64 { return &c.Saturation.KVThreshold })),
		row("saturation.queueThreshold", "5", "Number of waiting requests at which a replica is saturated: its throughput then shows its capacity.",
			bind(number(0.1, 10_000), func(c *Config) *float64 { return &c.Saturation.QueueThreshold })),
		row("saturation.maxThroughputShare", "0.85", "Share of the throughput of a busy replica that counts as its capacity, if it has no profile; less if its start takes longer than a minute. A lower value starts more replicas.",
			bind(number(0.01, 1), func(c *Config) *float64 { return &c.Saturation.MaxThroughputShare })),
		row("saturation.maxITLShare", "0.7", "Limit on the mean ITL, as a share of the ITL objective, which is a percentile. A lower value starts more replicas.",
			bind(number(0.01, 1), func(c *Config) *float64 { return &c.Saturation.MaxITLShare })),
		row("saturation.maxITLStretch", "3", "Limit on the mean ITL without an ITL objective, as a multiple of the ITL of a nearly empty batch. A lower value starts more replicas.",
			bind(number(1, 1000), func(c *Config) *float64 { return &c.Saturation.MaxITLStretch })),
		row("kvCache.headroom", "0.1", "Share of the KV cache that is kept free below saturation.kvThreshold, of a replica without a profile or with a KV cache of unknown size; it must be below that threshold. Without a profile more is kept free if a start takes longer than a minute. A higher value starts more replicas.",
			bind(number(0.001, 0.99), func(c *Config) *float64 { return &c.KVCache.Headroom })),
	}
}

func scalingSettings() []Setting {
	upToADay := func(example string, field func(*Config) *time.Duration) binding {
		return bind(duration(time.Second, day, example), field)
	}
	return []Setting{
		row("backlog.drainWithin", "1m", "Time in which the backlog is to be served, or that of a request in a batch if it is longer, up to five times as long. A shorter time starts more replicas.",
			upToADay("1m", func(c *Config) *time.Duration { return &c.Backlog.DrainWithin })),
		row("scaleUp.startupTime", "2m", "Start-up time of a replica, if its workload has not shown one yet.",
			upToADay("2m", func(c *Config) *time.Duration { return &c.ScaleUp.StartupTime })),
		row("scaleDown.headroom", "0.2", "By how much the capacity after a scale-down exceeds the highest demand of the peak window, as a share of that demand; half of it for a model that profiles size for its SLO. A higher value scales down later.",
			bind(number(0.001, 100), func(c *Config) *float64 { return &c.ScaleDown.Headroom })),
		row("scaleDown.minReplicaLifetime", "5m", "How long a replica is kept at least after its start-up time, unless the model is idle or another variant is to serve it alone. A longer time scales down later.",
			upToADay("5m", func(c *Config) *time.Duration { return &c.ScaleDown.MinReplicaLifetime })),
		row(keyZeroEnabled, "true", "Whether models may scale to zero, if no row of models says so. A model is scaled to zero if minReplicaCount or idleReplicaCount is 0 on each of its variants, and a gateway reports its requests. With false, each model keeps a replica, whatever its ScaledObjects allow.",
			bind(boolean(), func(c *Config) *bool { return &c.ScaleToZero.Enabled })).forNamespaces(),
		row("scaleToZero.retention", "10m", "How long a model must be idle before it may scale to zero, if neither scaleToZeroAfter of its variants nor a row of models says so.",
			bind(duration(leastRetention, mostRetention, "10m"), func(c *Config) *time.Duration { return &c.ScaleToZero.Retention })).forNamespaces(),
		row("missingData.keepFor", "5m", "How long the previous decision is repeated if data are missing. Afterwards the current replicas count.",
			upToADay("5m", func(c *Config) *time.Duration { return &c.MissingData.KeepFor })),
		row("missingData.gracePeriod", "1m", "How long a ready replica may report no metrics before its data count as missing.",
			upToADay("1m", func(c *Config) *time.Duration { return &c.MissingData.GracePeriod })),
	}
}

func sizingSettings() []Setting {
	return []Setting{
		row("sizing.queueing", On, "Whether the queueing model sizes replicas for latency percentiles, if a profile is known: on or off. With off, saturation alone sizes them.",
			bind(oneOf(On, Off), func(c *Config) *string { return &c.Sizing.Queueing })),
		row("sizing.maxSimulations", "32", "Number of variants in a plan that may be sized by simulation, if the formula of the queueing model is known to be inaccurate for them; 0 is none. Namespaces take turns; of each, the models with the largest spend come first.",
			bind(integer(0, 10_000), func(c *Config) *int { return &c.Sizing.MaxSimulations })),
		row("switchingCost.horizon", "30m", "Time over which the price of running replicas is compared with the cost of starting others. A longer time switches to a cheaper mix sooner.",
			bind(duration(time.Minute, 30*day, "30m"), func(c *Config) *time.Duration { return &c.SwitchingCost.Horizon })),
		row("errorBudget.enabled", "true", "Whether the headroom of a model is corrected so that the share of its requests within their latency objective stays at the objective's percentile.",
			bind(boolean(), func(c *Config) *bool { return &c.ErrorBudget.Enabled })),
		row("errorBudget.window", "1h", "Window in which that share is counted. The correction looks back over three windows, which Prometheus must keep. A window of less than 45m keeps it from its bounds.",
			bind(duration(leastBudgetWindow, mostBudgetWindow, "1h"), func(c *Config) *time.Duration { return &c.ErrorBudget.Window })),
	}
}

func fleetSettings() []Setting {
	return []Setting{
		row("models", "", "Models that may scale to zero or not, and their retention. A row applies to the models that match its namespace and its model, in which * stands for any characters; a field that is left out matches all. Later rows override earlier ones field by field, so write the general ones first.",
			models(func(c *Config) *[]ModelRow { return &c.Models })).forNamespaces(),
		row("serviceClasses", "", "Service classes, which triggers select by serviceClass. If models compete for accelerators, a higher priority is served first. A model has the highest priority of its variants, and 0 without a class. A priority above 0 is granted: it counts only in the namespaces that the class lists, in which * stands for any characters.",
			classes(func(c *Config) *[]fleet.ServiceClass { return &c.ServiceClasses })),
		row("maxAccelerators", "", "Most accelerators that the replicas of a namespace may have together: of an accelerator type, or of all if the row names none. Of the rows that match a namespace and name the same type the last counts. No further replica is started beyond it; minReplicaCount of a ScaledObject is KEDA's, and is kept all the same.",
			maxima(func(c *Config) *[]MaxRow { return &c.MaxAccelerators })).forNamespaces(),
		row("fixedAccelerators", "", "Accelerator types whose nodes are all there are, whether a node autoscaler is seen or not. Case does not matter.",
			names(func(c *Config) *[]string { return &c.FixedAccelerators })),
		row("elasticAccelerators", "", "Accelerator types to which a node autoscaler adds as many nodes as are needed, though WVA cannot see it. Case does not matter. It sees Karpenter and Cluster Autoscaler; of any other type the nodes are all there are.",
			names(func(c *Config) *[]string { return &c.ElasticAccelerators })),
		row("accelerators", starterCatalogue, "Accelerator catalogue: the relative speed of each accelerator type, and its price for an hour, which weighs a shortage. Without a price it is the median over namespaces of the prices that variants state. A list replaces the whole catalogue.",
			accelerators(func(c *Config) *[]fleet.AcceleratorSpec { return &c.Accelerators })),
		row("profiles", "", "Time of one engine iteration for a model on an accelerator type, in milliseconds. Of several rows that fit a variant the first counts, and all of them precede the shipped profiles.",
			profiles(func(c *Config) *[]fleet.Profile { return &c.Profiles })).forNamespaces(),
		row("profileCatalogue", On, "Whether the shipped profiles are used if no row of profiles fits: on or off.",
			bind(oneOf(On, Off), func(c *Config) *string { return &c.ProfileCatalogue })).noted(func(c *Config) string {
			return fmt.Sprintf("%d shipped profiles", len(c.catalogue))
		}),
	}
}

// starterCatalogue has as the speed the geometric mean of memory bandwidth and dense 16-bit
// throughput from the makers' data sheets, relative to an L40S: the bandwidth limits decode, the
// throughput prefill. The measured capacity of replicas takes precedence.
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
