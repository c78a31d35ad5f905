package app

import (
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// Build is the version of a binary, and of its tools.
type Build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Time     string `json:"time,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// BuildOf returns the build of this binary. An empty version is that of its build information.
func BuildOf(version string) Build {
	b := Build{Version: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, known := debug.ReadBuildInfo(); known {
		b.Version = info.Main.Version
		for _, setting := range info.Settings {
			switch setting.Key {
			case "vcs.revision":
				b.Revision = setting.Value
			case "vcs.time":
				b.Time = setting.Value
			case "vcs.modified":
				b.Modified = setting.Value == "true"
			}
		}
	}
	if version != "" {
		b.Version = version
	}
	return b
}

// String returns the build as one line.
func (b Build) String() string {
	parts := []string{b.Version}
	if b.Revision != "" {
		parts = append(parts, "revision "+b.Revision)
	}
	if b.Modified {
		parts = append(parts, "with local changes")
	}
	if b.Time != "" {
		parts = append(parts, b.Time)
	}
	return strings.Join(append(parts, b.Go, b.Platform), ", ")
}

// metric is the build as a constant gauge.
func (b Build) metric() prometheus.Collector {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "wva_build_info", Help: "Always 1; the labels are the version of the server.",
		ConstLabels: prometheus.Labels{"version": b.Version, "revision": b.Revision, "goversion": b.Go},
	})
	info.Set(1)
	return info
}
