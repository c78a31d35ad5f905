package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
)

// version is set by the linker for a release: -ldflags "-X main.version=v1.2.3".
var version string

// build is the version of the binary, and of its tools.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Time     string `json:"time,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func builtFrom() build {
	b := build{Version: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
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
func (b build) String() string {
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
func (b build) metric() prometheus.Collector {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "wva_build_info", Help: "Always 1; the labels are the version of the server.",
		ConstLabels: prometheus.Labels{"version": b.Version, "revision": b.Revision, "goversion": b.Go},
	})
	info.Set(1)
	return info
}

func newVersionCommand() *cobra.Command {
	var output string
	command := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			switch output {
			case "text":
				_, err := fmt.Fprintln(command.OutOrStdout(), "wva", builtFrom())
				return err
			case "json":
				return json.NewEncoder(command.OutOrStdout()).Encode(builtFrom())
			}
			return fmt.Errorf("output %q is unknown; write text or json", output)
		},
	}
	command.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	return command
}
