package app

import (
	"log/slog"
	"net/http"
	"os"
	"time"

	"k8s.io/utils/clock"

	"github.com/wva-project/wva/config"
)

// Options are the inputs of a server.
type Options struct {
	// Config is the configuration, complete and valid. Required.
	Config *config.Config
	// Version is that of a release. Default: the version in the build information of the binary.
	Version string
	// Source has the variants and workloads. Default: the directory of manifests or the cluster of
	// the configuration.
	Source *Source
	// Transport sends the queries to Prometheus. Default: one with the TLS settings and credentials
	// of the configuration, which is replaced when they are reloaded.
	Transport http.RoundTripper
	// Clock is the clock of the loop and of all answers. Default: the real one.
	Clock clock.Clock
	// Seed determines the jitter of pushes. Default: drawn at random.
	Seed uint64
	// Logger takes the log. Default: nothing is logged.
	Logger *slog.Logger
	// Level is the level of the logger. It follows log.level when that is reloaded. Default: the
	// logger keeps its level.
	Level *slog.LevelVar
	// DumpRequests delivers a value for each request to write the input of the latest decision to a
	// file. Default: none comes.
	DumpRequests <-chan os.Signal
	// ConfigPollInterval is the time between two polls of the configuration file. Default: 2 s.
	ConfigPollInterval time.Duration
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Level == nil {
		o.Level = new(slog.LevelVar)
	}
	return o
}
