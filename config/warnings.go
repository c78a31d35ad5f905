package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/wva-project/wva/fleet"
)

// Warnings returns valid settings that may be mistakes, a sentence each.
func (c *Config) Warnings() []string {
	return slices.Concat(c.unknown, c.prometheusWarnings(), c.operatorsWarnings(), c.windowWarnings(), c.retentionWarnings(), c.grantWarnings(), c.acceleratorWarnings(), c.profileWarnings())
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

func (c *Config) operatorsWarnings() []string {
	switch o, t := c.Operators, c.GRPC.TLS; {
	case o.Loopback() && len(o.AllowedClients) > 0:
		return []string{"operators.allowedClients has no effect: operators.address is of the loopback, which asks for no certificate"}
	case !o.Loopback() && t.ClientCAFile == "":
		return []string{"operators.address is not of the loopback, and grpc.tls.clientCAFile is not set: anybody who reaches the port reads all decisions"}
	}
	return nil
}

// usualPeak is the peak window below which a bursty load loses replicas between two bursts, as
// measured in decision 4.
const usualPeak = 5 * time.Minute

func (c *Config) windowWarnings() []string {
	if peak := c.Prometheus.Windows.Peak; peak < usualPeak {
		return []string{"prometheus.windows.peak of " + formatDuration(peak) + " is short: replicas are stopped between two bursts, and miss in the second; set it to 5m or more"}
	}
	return nil
}

// grantWarnings names service classes that nobody has, or whose grants have no effect.
func (c *Config) grantWarnings() []string {
	var warnings []string
	for _, class := range c.ServiceClasses {
		switch granted := len(class.Namespaces) > 0; {
		case class.Priority > 0 && !granted:
			warnings = append(warnings, fmt.Sprintf(`service class %s of priority %d is granted to no namespace, so no variant has it; add namespaces: [team-a], or namespaces: ["*"] for all`, class.Name, class.Priority))
		case class.Priority <= 0 && granted:
			warnings = append(warnings, fmt.Sprintf("namespaces of service class %s set nothing: priority %d needs no grant", class.Name, class.Priority))
		}
	}
	return warnings
}

func (c *Config) acceleratorWarnings() []string {
	var warnings []string
	for _, list := range c.acceleratorLists() {
		for _, name := range list.names {
			isName := func(a fleet.AcceleratorSpec) bool { return a.Name.Is(name) }
			if !slices.ContainsFunc(c.Accelerators, isName) {
				warnings = append(warnings, list.setting+" names "+name+", which is not in accelerators; nodes and variants must use the same name")
			}
		}
	}
	for _, name := range c.ElasticAccelerators {
		if containsFold(c.FixedAccelerators, name) {
			warnings = append(warnings, name+" is in fixedAccelerators and in elasticAccelerators; it counts as fixed: remove it from one of the two")
		}
	}
	return warnings
}

// acceleratorList is a setting that lists accelerator types.
type acceleratorList struct {
	setting string
	names   []string
}

func (c *Config) acceleratorLists() []acceleratorList {
	limited := acceleratorList{setting: "maxAccelerators"}
	for _, row := range c.MaxAccelerators {
		if name := string(row.Accelerator); name != "" && !containsFold(limited.names, name) {
			limited.names = append(limited.names, name)
		}
	}
	return []acceleratorList{limited, {"fixedAccelerators", c.FixedAccelerators}, {"elasticAccelerators", c.ElasticAccelerators}}
}
