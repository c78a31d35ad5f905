package config

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/wva-project/wva/fleet"
)

// derive sets the defaults that depend on other settings.
func (c *Config) derive() {
	if c.isDefault("prometheus.queryTimeout") {
		c.Prometheus.QueryTimeout = min(c.Prometheus.QueryTimeout, (c.Interval * 2 / 3).Truncate(time.Millisecond))
	}
	if c.isDefault("maxPlanAge") {
		c.MaxPlanAge = max(c.MaxPlanAge, 4*c.Interval)
	}
}

func (c *Config) isDefault(key string) bool { return c.origins[key].Source == SourceDefault }

// rule is something that several settings must agree on.
type rule struct {
	key     string // whose fault it is
	others  []string
	broken  bool
	problem string
	remedy  string
}

// check returns the faults of settings that are right on their own and do not fit together. Those that are broken
// already are not looked at.
func (c *Config) check(broken map[string]bool) []error {
	var faults []error
	for _, r := range slices.Concat(c.timingRules(), c.credentialRules(), c.otherRules()) {
		if !r.broken || broken[r.key] || slices.ContainsFunc(r.others, func(key string) bool { return broken[key] }) {
			continue
		}
		faults = append(faults, &FaultError{Key: r.key, Origin: c.strongest(r), Problem: r.problem, Remedy: r.remedy})
	}
	return faults
}

// strongest returns where the rule's setting was set, or else the first of the others that was.
func (c *Config) strongest(r rule) Origin {
	for _, key := range append([]string{r.key}, r.others...) {
		if !c.isDefault(key) {
			return c.origins[key]
		}
	}
	return c.origins[r.key]
}

func (c *Config) timingRules() []rule {
	p, w := c.Prometheus, c.Prometheus.Windows
	rules := []rule{{
		key: "prometheus.queryTimeout", others: []string{"interval"}, broken: p.QueryTimeout >= c.Interval,
		problem: fmt.Sprintf("%s is not below the interval of %s", written(p.QueryTimeout), written(c.Interval)),
		remedy:  "lower it, or remove it: the default follows the interval",
	}, {
		key: "maxPlanAge", others: []string{"interval"}, broken: c.MaxPlanAge < 2*c.Interval,
		problem: fmt.Sprintf("%s is below two intervals of %s: one failed cycle would end all answers", written(c.MaxPlanAge), written(c.Interval)),
		remedy:  "raise it, or remove it: the default follows the interval",
	}}
	for _, order := range []struct {
		key, least      string
		length, atLeast time.Duration
	}{
		{"prometheus.windows.peak", "prometheus.windows.latest", w.Peak, w.Latest},
		{"prometheus.windows.idle", "prometheus.windows.latest", w.Idle, w.Latest},
		{"prometheus.windows.trend", "prometheus.windows.latest", w.Trend, w.Latest},
		{"prometheus.windows.long", "prometheus.windows.peak", w.Long, w.Peak},
	} {
		rules = append(rules, rule{
			key: order.key, others: []string{order.least}, broken: order.length < order.atLeast,
			problem: fmt.Sprintf("%s is shorter than %s, which is %s", written(order.length), order.least, written(order.atLeast)),
			remedy:  "raise the one or lower the other",
		})
	}
	return rules
}

func (c *Config) credentialRules() []rule {
	p, t := c.Prometheus, c.GRPC.TLS
	pair := func(section, cert, key string) rule {
		missing, there := section+"keyFile", section+"certFile"
		if cert == "" {
			missing, there = there, missing
		}
		return rule{
			key: missing, others: []string{there}, broken: (cert == "") != (key == ""),
			problem: "is missing beside " + there, remedy: "set both or none",
		}
	}
	return []rule{
		pair("prometheus.", p.CertFile, p.KeyFile),
		pair("grpc.tls.", t.CertFile, t.KeyFile),
		{
			key: "prometheus.bearerToken", others: []string{"prometheus.bearerTokenFile"}, broken: p.BearerToken != "" && p.BearerTokenFile != "",
			problem: "is set beside prometheus.bearerTokenFile", remedy: "keep one of the two",
		}, {
			key: "grpc.tls.clientCAFile", others: []string{"grpc.tls.certFile"}, broken: t.ClientCAFile != "" && t.CertFile == "" && t.KeyFile == "",
			problem: "asks for client certificates on a port without TLS", remedy: "set grpc.tls.certFile and grpc.tls.keyFile too",
		}, {
			key: "grpc.tls.allowedClients", others: []string{"grpc.tls.clientCAFile"}, broken: len(t.AllowedClients) > 0 && t.ClientCAFile == "",
			problem: "allows clients by a name that nobody vouches for", remedy: "set grpc.tls.clientCAFile too",
		},
	}
}

func (c *Config) otherRules() []rule {
	l := c.Prometheus.Labels
	return []rule{{
		key: "kubeconfig", others: []string{"manifests"}, broken: c.Kubernetes.Kubeconfig != "" && c.Manifests != "",
		problem: "is set beside manifests", remedy: "keep one of the two: a cluster is watched, or a directory is read",
	}, {
		key: "http.address", others: []string{"grpc.address"}, broken: c.HTTP.Address == c.GRPC.Address && !anyPort(c.HTTP.Address),
		problem: quoted(c.HTTP.Address) + " is that of gRPC too", remedy: "give each a port of its own",
	}, {
		key: "saturation.kvSpare", others: []string{"saturation.kvThreshold"}, broken: c.Saturation.KVSpare >= c.Saturation.KVThreshold,
		problem: fmt.Sprintf("%v is not below saturation.kvThreshold, which is %v", c.Saturation.KVSpare, c.Saturation.KVThreshold),
		remedy:  "lower the one or raise the other",
	}, {
		key: "prometheus.labels.model", others: []string{"prometheus.labels.namespace", "prometheus.labels.pod"},
		broken:  l.Model == l.Namespace || l.Model == l.Pod || l.Namespace == l.Pod,
		problem: "two labels have one name", remedy: "give the namespace, the pod and the model a label each",
	}}
}

func anyPort(address string) bool {
	_, port, err := net.SplitHostPort(address)
	return err == nil && strings.Trim(port, "0") == ""
}

// Warnings returns what is allowed and may not be meant, a sentence each.
func (c *Config) Warnings() []string {
	warnings := slices.Clone(c.unknown)
	p := c.Prometheus
	if strings.HasPrefix(p.URL, "http://") && (p.BearerToken != "" || p.BearerTokenFile != "") {
		warnings = append(warnings, "the bearer token travels in the clear: prometheus.url is not https")
	}
	if strings.HasPrefix(p.URL, "http://") && (p.CAFile != "" || p.CertFile != "" || p.ServerName != "") {
		warnings = append(warnings, "certificates for Prometheus are not used: prometheus.url is not https")
	}
	const why = " looks that far back in Prometheus in every cycle, and needs samples from the whole time"
	if c.Policy.Retention > longRetention {
		warnings = append(warnings, "policy.retention of "+written(c.Policy.Retention)+why)
	}
	for _, m := range c.Models {
		if m.Retention > longRetention {
			warnings = append(warnings, "retention of "+written(m.Retention)+" of model "+m.ID.String()+why)
		}
		if m.Retention > 0 && !m.ScaleToZero {
			warnings = append(warnings, "retention of model "+m.ID.String()+" sets nothing: scaleToZero is false")
		}
	}
	for _, name := range c.FixedAccelerators {
		if !slices.ContainsFunc(c.Accelerators, func(a fleet.AcceleratorSpec) bool { return strings.EqualFold(string(a.Name), name) }) {
			warnings = append(warnings, "fixedAccelerators names "+name+", which the list of accelerators does not have; nodes and variants have to call it that too")
		}
	}
	return append(warnings, c.profileWarnings()...)
}
