package config

import (
	"slices"
	"strings"
	"time"

	"github.com/wva-project/wva/fleet"
)

// Warnings returns valid settings that may be mistakes, a sentence each.
func (c *Config) Warnings() []string {
	return slices.Concat(c.unknown, c.prometheusWarnings(), c.windowWarnings(), c.retentionWarnings(), c.acceleratorWarnings(), c.profileWarnings())
}

func (c *Config) prometheusWarnings() []string {
	p := c.Prometheus
	if !strings.HasPrefix(p.URL, "http://") {
		return nil
	}
	var warnings []string
	if p.BearerToken != "" || p.BearerTokenFile != "" {
		warnings = append(warnings, "the bearer token is sent unencrypted: prometheus.url is not https")
	}
	if p.CAFile != "" || p.CertFile != "" || p.ServerName != "" {
		warnings = append(warnings, "certificates for Prometheus are not used: prometheus.url is not https")
	}
	return warnings
}

// shortPeak is the peak window below which a bursty load loses replicas between two bursts, as
// measured in decision 4.
const shortPeak = 5 * time.Minute

func (c *Config) windowWarnings() []string {
	if peak := c.Prometheus.Windows.Peak; peak < shortPeak {
		return []string{"prometheus.windows.peak of " + formatDuration(peak) + " is short: replicas are stopped between two bursts, and miss in the second; set it to 5m or more"}
	}
	return nil
}

func (c *Config) retentionWarnings() []string {
	const effect = " is long: each cycle queries Prometheus that far back, and samples must cover the whole time"
	var warnings []string
	if retention := c.ScaleToZero.Retention; retention > longRetention {
		warnings = append(warnings, "scaleToZero.retention of "+formatDuration(retention)+effect)
	}
	for _, m := range c.Models {
		if m.Retention > longRetention {
			warnings = append(warnings, "retention of "+formatDuration(m.Retention)+" of model "+m.ID.String()+effect)
		}
		if m.Retention > 0 && !m.ScaleToZero {
			warnings = append(warnings, "retention of model "+m.ID.String()+" sets nothing: scaleToZero is false")
		}
	}
	return warnings
}

func (c *Config) acceleratorWarnings() []string {
	var warnings []string
	for _, name := range c.FixedAccelerators {
		isName := func(a fleet.AcceleratorSpec) bool { return a.Name.Is(name) }
		if !slices.ContainsFunc(c.Accelerators, isName) {
			warnings = append(warnings, "fixedAccelerators names "+name+", which is not in accelerators; nodes and variants must use the same name")
		}
	}
	return warnings
}
