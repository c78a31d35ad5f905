package config

import (
	"log/slog"
	"time"

	"github.com/spf13/pflag"

	"github.com/wva-project/wva/fleet"
)

// Config is everything that an administrator decides. It is made by Load, complete and valid, and must not be changed.
// What the fields mean, and their defaults, stands in the table of settings.
type Config struct {
	Interval   time.Duration
	MaxPlanAge time.Duration
	Manifests  string // empty: the cluster is watched
	// DumpSnapshot is the file that the input of decisions is written to; empty: none.
	DumpSnapshot string
	Kubernetes   Kubernetes
	Log          Log
	Prometheus   Prometheus
	GRPC         GRPC
	HTTP         HTTP
	Saturation   Saturation
	Policy       Policy

	Models         []fleet.Model
	ServiceClasses []fleet.ServiceClass
	// FixedAccelerators are the kinds of which no node autoscaler adds any to the cluster.
	FixedAccelerators []string
	Accelerators      []fleet.AcceleratorSpec
	// Profiles are the administrator's; EngineProfiles has the catalogue's too.
	Profiles         []fleet.Profile
	ProfileCatalogue string // On or Off

	flags     *pflag.FlagSet
	file      file
	origins   map[string]Origin // by key
	unknown   []string          // warnings about the environment
	catalogue []fleet.Profile
}

// Kubernetes says which cluster is watched, and how.
type Kubernetes struct {
	Kubeconfig         string // empty: the cluster that the server runs in
	Context            string // empty: the kubeconfig's current one
	WatchNamespaces    []string
	ExcludedNamespaces []string
	NamespaceSelector  string
	QPS                float64
	Burst              float64
	MaxCacheAge        time.Duration
	Events             string // On or Off
	Advisory           string // On or Off
	LeaseNamespace     string // empty: the server's own
}

// What is turned on or off.
const (
	On  = "on"
	Off = "off"
)

// Log says what is logged, and how.
type Log struct {
	Level  slog.Level
	Format string // FormatText or FormatJSON
}

// The formats of the log.
const (
	FormatText = "text"
	FormatJSON = "json"
)

// Prometheus says where Prometheus is, how it is reached, and what it is asked.
type Prometheus struct {
	URL             string
	CAFile          string
	CertFile        string
	KeyFile         string
	ServerName      string
	BearerToken     string // secret
	BearerTokenFile string
	QueryTimeout    time.Duration
	Lag             time.Duration
	Windows         Windows
	Labels          Labels
}

// Windows are how far back is looked.
type Windows struct{ Latest, Peak, Idle, Long, Trend time.Duration }

// Labels are the names of the labels of engine metrics.
type Labels struct{ Namespace, Pod, Model string }

// GRPC says how the gRPC port is served.
type GRPC struct {
	Address string
	TLS     TLS
}

// TLS secures the gRPC port where CertFile is set.
type TLS struct {
	CertFile       string
	KeyFile        string
	ClientCAFile   string
	AllowedClients []string
}

// HTTP says where health and metrics are served.
type HTTP struct{ Address string }

// Saturation holds the thresholds of the saturation analysis.
type Saturation struct {
	KVThreshold      float64
	QueueThreshold   float64
	KVSpare          float64
	ThroughputMargin float64
	ITLMargin        float64
	ITLStretch       float64
}

// Policy is what is wanted of all decisions.
type Policy struct {
	DrainWithin  time.Duration
	HoldFor      time.Duration
	Startup      time.Duration
	Retention    time.Duration
	MetricsGrace time.Duration
	ShrinkMargin float64
	Reaction     time.Duration
	Settle       time.Duration
	Horizon      time.Duration
	Queueing     string // On or Off
	Simulations  float64
}

// IdleWindow returns how far back the last use of a model is looked for: the idle window, or the longest retention where
// that is longer.
func (c *Config) IdleWindow() time.Duration {
	longest := max(c.Prometheus.Windows.Idle, c.Policy.Retention)
	for _, model := range c.Models {
		if model.ScaleToZero {
			longest = max(longest, model.Retention)
		}
	}
	return longest
}

// Origin returns where the value of a setting came from.
func (c *Config) Origin(key string) Origin { return c.origins[key] }

// File returns the path of the configuration file; empty where there is none.
func (c *Config) File() string { return c.file.path }
