package config

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"time"
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

// rule is a condition on several settings.
type rule struct {
	key     string // the setting that the error names
	others  []string
	broken  bool
	problem string
	remedy  string
}

// check returns the errors of settings that are valid one by one and not together. Rules about a
// setting that is invalid by itself are left out.
func (c *Config) check() []error {
	isInvalid := func(key string) bool {
		_, invalid := c.invalid[key]
		return invalid
	}
	var errs []error
	for _, r := range slices.Concat(c.timingRules(), c.credentialRules(), c.otherRules()) {
		if r.broken && !isInvalid(r.key) && !slices.ContainsFunc(r.others, isInvalid) {
			errs = append(errs, &ValidationError{Key: r.key, Origin: c.originOf(r), Problem: r.problem, Remedy: r.remedy})
		}
	}
	return errs
}

// originOf returns the origin of the first setting of a rule that was set, the named one first.
func (c *Config) originOf(r rule) Origin {
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
		problem: fmt.Sprintf("%s is not below the interval of %s", formatDuration(p.QueryTimeout), formatDuration(c.Interval)),
		remedy:  "lower it, or remove it: the default follows the interval",
	}, {
		key: "maxPlanAge", others: []string{"interval"}, broken: c.MaxPlanAge < 2*c.Interval,
		problem: fmt.Sprintf("%s is below two intervals of %s: after one failed cycle KEDA would get errors", formatDuration(c.MaxPlanAge), formatDuration(c.Interval)),
		remedy:  "raise it, or remove it: the default follows the interval",
	}}
	for _, order := range []struct {
		key, least      string
		length, atLeast time.Duration
	}{
		{"prometheus.windows.peak", "prometheus.windows.latest", w.Peak, w.Latest},
		{"prometheus.windows.idle", "prometheus.windows.latest", w.Idle, w.Latest},
		{"prometheus.windows.long", "prometheus.windows.peak", w.Long, w.Peak},
	} {
		rules = append(rules, rule{
			key: order.key, others: []string{order.least}, broken: order.length < order.atLeast,
			problem: fmt.Sprintf("%s is shorter than %s, which is %s", formatDuration(order.length), order.least, formatDuration(order.atLeast)),
			remedy:  "raise the first or lower the second",
		})
	}
	return rules
}

func (c *Config) credentialRules() []rule {
	p, t := c.Prometheus, c.GRPC.TLS
	pair := func(section, cert, key string) rule {
		missing, present := section+"keyFile", section+"certFile"
		if cert == "" {
			missing, present = present, missing
		}
		return rule{
			key: missing, others: []string{present}, broken: (cert == "") != (key == ""),
			problem: "is missing beside " + present, remedy: "set both or none",
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
			problem: "requires client certificates on a port without TLS", remedy: "set grpc.tls.certFile and grpc.tls.keyFile too",
		}, {
			key: "grpc.tls.allowedClients", others: []string{"grpc.tls.clientCAFile"}, broken: len(t.AllowedClients) > 0 && t.ClientCAFile == "",
			problem: "allows names that no authority has signed", remedy: "set grpc.tls.clientCAFile too",
		}, {
			key: "operators.allowedClients", others: []string{"grpc.tls.clientCAFile"}, broken: len(c.Operators.AllowedClients) > 0 && t.ClientCAFile == "",
			problem: "allows names that no authority has signed", remedy: "set grpc.tls.clientCAFile too",
		}, {
			key: "operators.allowedClients", others: []string{"grpc.tls.clientCAFile", "operators.address"},
			broken:  len(c.Operators.AllowedClients) == 0 && t.ClientCAFile != "" && !c.Operators.Loopback(),
			problem: "is missing: every client of grpc.tls.clientCAFile could read all decisions at operators.address",
			remedy:  "name the operators, or set operators.address to 127.0.0.1:9091",
		},
	}
}

func (c *Config) otherRules() []rule {
	l := c.Prometheus.Labels
	return []rule{{
		key: "kubeconfig", others: []string{"manifests"}, broken: c.Kubernetes.Kubeconfig != "" && c.Manifests != "",
		problem: "is set beside manifests", remedy: "keep one of the two: either a cluster is watched or a directory is read",
	}, {
		key: "http.address", others: []string{"grpc.address"}, broken: c.HTTP.Address == c.GRPC.Address && !anyPort(c.HTTP.Address),
		problem: quoted(c.HTTP.Address) + " is the address of gRPC too", remedy: "use two ports",
	}, {
		key: "operators.address", others: []string{"grpc.address", "http.address"},
		broken:  (c.Operators.Address == c.GRPC.Address || c.Operators.Address == c.HTTP.Address) && !anyPort(c.Operators.Address),
		problem: quoted(c.Operators.Address) + " is the address of another port too", remedy: "use three ports",
	}, {
		key: "kvCache.headroom", others: []string{"saturation.kvThreshold"}, broken: c.KVCache.Headroom >= c.Saturation.KVThreshold,
		problem: fmt.Sprintf("%v is not below saturation.kvThreshold, which is %v", c.KVCache.Headroom, c.Saturation.KVThreshold),
		remedy:  "lower the first or raise the second",
	}, {
		key: "prometheus.labels.model", others: []string{"prometheus.labels.namespace", "prometheus.labels.pod"},
		broken:  l.Model == l.Namespace || l.Model == l.Pod || l.Namespace == l.Pod,
		problem: "two of the labels are equal", remedy: "use different labels for the namespace, the pod and the model",
	}}
}

// Loopback reports whether the port is reached from the same host or pod only.
func (o Operators) Loopback() bool {
	host, _, err := net.SplitHostPort(o.Address)
	return err == nil && (host == "localhost" || net.ParseIP(host).IsLoopback())
}

func anyPort(address string) bool {
	_, port, err := net.SplitHostPort(address)
	return err == nil && strings.Trim(port, "0") == ""
}
