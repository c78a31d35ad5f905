package config

import (
	"log/slog"
	"time"

	"github.com/spf13/pflag"

	"github.com/wva-project/wva/fleet"
)

// Config is the configuration of the server. Load makes it, complete and valid; it must not be
// changed. Default makes that of a program without a file and flags. The table of settings has the
// meaning and the default of each field.
type Config struct {
	Interval   time.Duration
	MaxPlanAge time.Duration
	Manifests  string // empty: the cluster is watched
	// DumpSnapshot is the file that the input of decisions is written to; empty: none.
	DumpSnapshot string
	Log          Log
	Kubernetes   Kubernetes
	Prometheus   Prometheus
	GRPC         GRPC
	Operators    Operators
	HTTP         HTTP

	Saturation    Saturation
	KVCache       KVCache
	Backlog       Backlog
	ScaleUp       ScaleUp
	ScaleDown     ScaleDown
	ScaleToZero   ScaleToZero
	MissingData   MissingData
	Sizing        Sizing
	ErrorBudget   ErrorBudget
	SwitchingCost SwitchingCost

	// Models are rows of patterns; ModelsOf joins them with a fleet.
	Models         []ModelRow
	ServiceClasses []fleet.ServiceClass
	// MaxAccelerators are rows of patterns of namespaces; LimitsOf joins them with a fleet.
	MaxAccelerators []MaxRow
	// FixedAccelerators are the accelerator types of which no node autoscaler adds any.
	FixedAccelerators []string
	// ElasticAccelerators are those to which a node autoscaler adds nodes, though none is seen.
	ElasticAccelerators []string
	Accelerators        []fleet.AcceleratorSpec
	// Profiles are the administrator's; EngineProfiles returns the shipped ones too.
	Profiles         []fleet.Profile
	ProfileCatalogue string // On or Off

	flags     *pflag.FlagSet
	file      file
	parts     []file                // of the global ConfigMaps, in their order
	tenants   map[string]*overrides // by namespace
	origins   map[string]Origin     // by key
	merged    map[string][]Origin   // by key: further documents with rows of a list
	invalid   map[string]Origin     // by key, of values that are replaced by the default
	unknown   []string              // warnings about the environment
	catalogue []fleet.Profile
}

// Kubernetes selects the cluster and the objects in it.
type Kubernetes struct {
	Kubeconfig         string // empty: the cluster that the server runs in
	Context            string // empty: the current context of the kubeconfig
	WatchNamespaces    []string
	ExcludedNamespaces []string
	NamespaceSelector  string
	QPS                float64
	Burst              float64
	MaxCacheAge        time.Duration
	DryRunVariants     string // On or Off
	Events             string // On or Off
	LeaseNamespace     string // empty: the server's own
	ConfigMaps         string // Off, ConfigMapsOwn or ConfigMapsAll
	ConfigNamespace    string // empty: the server's own
}

// The values of kubernetes.configMaps beside Off.
const (
	ConfigMapsOwn = "own"
	ConfigMapsAll = "all"
)

// The values of a switch.
const (
	On  = "on"
	Off = "off"
)

// Log is the level and the format of the log.
type Log struct {
	Level  slog.Level
	Format string // FormatText or FormatJSON
}

// The formats of the log.
const (
	FormatText = "text"
	FormatJSON = "json"
)

// Prometheus is how Prometheus is reached and queried.
type Prometheus struct {
	URL             string
	CAFile          string
	CertFile        string
	KeyFile         string
	ServerName      string
	BearerToken     string // secret
	BearerTokenFile string
	QueryTimeout    time.Duration
	QueryOffset     time.Duration
	Windows         Windows
	Labels          Labels
	Matchers        string
}

// Windows are the time ranges of queries.
type Windows struct{ Latest, Peak, ShortPeak, Idle, Long time.Duration }

// Labels are the names of the labels of engine metrics.
type Labels struct{ Namespace, Pod, Model string }

// GRPC is the gRPC port for KEDA.
type GRPC struct {
	Address    string
	MaxStreams int
	TLS        TLS
}

// Operators is the gRPC port of the operators' API.
type Operators struct {
	Address        string
	AllowedClients []string
}

// TLS secures the gRPC port if CertFile is set, and that of operators if it is not of the loopback.
type TLS struct {
	CertFile       string
	KeyFile        string
	ClientCAFile   string
	AllowedClients []string
}

// HTTP is the port of health and metrics.
type HTTP struct{ Address string }

// Saturation has the limits of a replica.
type Saturation struct {
	KVThreshold        float64
	QueueThreshold     float64
	MaxThroughputShare float64
	MaxITLShare        float64
	MaxITLStretch      float64
}

// KVCache is about the KV cache of engines.
type KVCache struct{ Headroom float64 }

// Backlog is about requests that wait.
type Backlog struct{ DrainWithin time.Duration }

// ScaleUp has the times by which demand is extrapolated.
type ScaleUp struct{ StartupTime time.Duration }

// ScaleDown limits how soon replicas are removed.
type ScaleDown struct {
	Headroom           float64
	MinReplicaLifetime time.Duration
}

// ScaleToZero is the default of all models.
type ScaleToZero struct {
	Enabled   bool
	Retention time.Duration
}

// MissingData is about metrics that are missing.
type MissingData struct{ KeepFor, GracePeriod time.Duration }

// Sizing selects how replicas are sized for latency objectives.
type Sizing struct {
	Queueing       string // On or Off
	MaxSimulations int
}

// ErrorBudget is the correction of the headroom by the share of requests within their objective.
type ErrorBudget struct {
	Enabled bool
	Window  time.Duration
}

// SwitchingCost weighs running replicas against starting others.
type SwitchingCost struct{ Horizon time.Duration }

// Origin returns the origin of a setting's value.
func (c *Config) Origin(key string) Origin { return c.origins[key] }

// File returns the path of the configuration file; empty if there is none.
func (c *Config) File() string { return c.file.path }
