package chart

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/wva-project/wva/config"
)

// container returns the container of the Deployment.
func (all objects) container(t *testing.T) corev1.Container {
	t.Helper()
	return as[appsv1.Deployment](t, all.one(t, "Deployment")).Spec.Template.Spec.Containers[0]
}

// settings returns the text of the configuration file.
func (all objects) settings(t *testing.T) string {
	t.Helper()
	return as[corev1.ConfigMap](t, all.one(t, "ConfigMap")).Data["config.yaml"]
}

// load returns the configuration that a server makes of a rendering: by its own code, from the
// rendered arguments and files. Files of Secrets have the keys that the settings name.
func load(t *testing.T, all objects) *config.Config {
	t.Helper()
	directory, text := t.TempDir(), all.settings(t)
	for word := range strings.FieldsSeq(text) {
		if path, isPath := strings.CutPrefix(word, "/etc/wva-tls/"); isPath {
			path = filepath.Join(directory, path)
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
			require.NoError(t, os.WriteFile(path, nil, 0o600))
		}
	}
	file := filepath.Join(directory, "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(text, "/etc/wva-tls", directory)), 0o600))
	flags := pflag.NewFlagSet("wva", pflag.ContinueOnError)
	config.AddFlags(flags)
	container := all.container(t)
	require.Equal(t, []string{"--config", "/etc/wva/config.yaml"}, container.Args[:2])
	require.NoError(t, flags.Parse(append([]string{"--config", file}, container.Args[2:]...)))
	for _, variable := range container.Env {
		value := variable.Value
		if variable.ValueFrom != nil {
			value = "from-a-secret"
		}
		t.Setenv(variable.Name, value)
	}
	c, err := config.Load(flags)
	require.NoError(t, err, text)
	require.Empty(t, c.Warnings())
	return c
}

func TestServerAcceptsEveryConfiguration(t *testing.T) {
	files, err := filepath.Glob("testdata/values/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) { // not parallel: it sets variables
			all := render(t, "--values", file)
			c := load(t, all)
			require.Equal(t, ":9090", c.GRPC.Address)
			require.Equal(t, ":8080", c.HTTP.Address)
			for _, mount := range all.container(t).VolumeMounts {
				if mount.MountPath == "/etc/wva-tls/server" {
					require.NotEmpty(t, c.GRPC.TLS.ClientCAFile, "mTLS")
				}
			}
			require.Equal(t, len(all.container(t).VolumeMounts) > 2, strings.Contains(all.settings(t), "/etc/wva-tls") || file == "testdata/values/extras.yaml")
		})
	}
}

func TestSettingsReachTheServer(t *testing.T) {
	c := load(t, render(t, "--values", "testdata/values/settings.yaml"))
	require.Equal(t, "30s", c.Interval.String())
	require.Equal(t, config.Off, c.Kubernetes.Events, "an unquoted off is a boolean for Helm")
	require.Equal(t, config.On, c.Kubernetes.DryRunVariants)
	require.Equal(t, []string{"scratch"}, c.Kubernetes.ExcludedNamespaces)
	require.Len(t, c.Models, 2)
	require.False(t, *c.Models[0].ScaleToZero)
	require.Equal(t, config.ScaleToZero{Retention: 20 * time.Minute}, c.ScaleToZero)
	require.True(t, c.ServiceClasses[0].GrantedTo("prod-eu"))
	require.InDelta(t, 4.1, c.Accelerators[0].Price, 0)
	require.Equal(t, "http://prometheus-operated.monitoring.svc:9090", c.Prometheus.URL)

	require.Equal(t, config.Off, c.Kubernetes.ConfigMaps)
	c = load(t, render(t, "--values", "testdata/values/config-maps.yaml"))
	require.Equal(t, config.ConfigMapsAll, c.Kubernetes.ConfigMaps)

	c = load(t, render(t, "--values", "testdata/values/tls-generate-other-namespace.yaml"))
	require.Equal(t, []string{"keda-operator.keda-system.svc", "operator.example.com"}, c.GRPC.TLS.AllowedClients)
	c = load(t, render(t, "--values", "testdata/values/tls-secret.yaml"))
	require.Empty(t, c.GRPC.TLS.AllowedClients)
	c = load(t, render(t))
	require.True(t, c.Operators.Loopback())
	c = load(t, render(t, "--values", "testdata/values/operators.yaml"))
	require.Equal(t, config.Operators{Address: ":9091", AllowedClients: []string{"dashboard.ops.svc"}}, c.Operators)
	require.Equal(t, 100_000, c.GRPC.MaxStreams)
	require.Equal(t, ":9090", c.GRPC.Address)
	c = load(t, render(t, "--values", "testdata/values/everything.yaml"))
	require.Equal(t, []string{"llm", "chat"}, c.Kubernetes.WatchNamespaces)
	require.True(t, strings.HasSuffix(c.Prometheus.BearerTokenFile, "/prometheus/token"), c.Prometheus.BearerTokenFile)
}

// TestRestartFollowsTheServersSettings checks that the pods are replaced exactly for the settings
// that the server does not read again.
func TestRestartFollowsTheServersSettings(t *testing.T) {
	annotation := func(flags ...string) any {
		return render(t, flags...).one(t, "Deployment").at("spec", "template", "metadata", "annotations", "wva.dev/restart-settings")
	}
	before := annotation()
	require.NotEmpty(t, before)
	for _, s := range config.Settings() {
		flags := []string{"--set-string", "config." + s.Key + "=changed"}
		switch {
		case s.Key == "watchNamespace":
			flags = []string{"--set", "watchNamespaces={changed}"}
		case s.Key == "kubernetes.configMaps":
			flags = []string{"--set", "configMaps=own"}
		case s.Key == "prometheus.url":
			flags = []string{"--set", "prometheus.url=http://changed"}
		case s.Key == "grpc.tls.allowedClients":
			flags = []string{"--set", "tls.mode=secret,tls.allowedClients={changed}"}
		case s.Key == "operators.allowedClients":
			flags = []string{"--set", "tls.mode=secret,operators.expose=true,operators.allowedClients={changed}"}
		case s.Key == "grpc.address" || strings.HasPrefix(s.Key, "grpc.tls.") || s.Key == "operators.address" || s.Key == "http.address":
			continue // fixed
		case s.Secret():
			continue // not in a file
		case s.Type() != "string":
			flags[1] = "config." + s.Key + "=changed"
		}
		flags = append(flags, "--skip-schema-validation")
		require.Equal(t, s.Reloadable, before == annotation(flags...), s.Key)
	}
}

func TestSettingsOfTheChartCannotBeSetTwice(t *testing.T) {
	for _, key := range []string{"prometheus.url", "watchNamespace", "kubernetes.configMaps", "grpc.tls.certFile", "grpc.address", "operators.address", "http.address"} {
		reason := rejection(t, "--set", "config."+key+"=x", "--skip-schema-validation")
		require.Regexp(t, `config\.[a-zA-Z.]+ .*; (set|remove)|; remove them from config`, reason, key)
	}
	reason := rejection(t, "--set", "prometheus.existingSecret.name=x,prometheus.existingSecret.caKey=ca.crt,config.prometheus.caFile=/x")
	require.Contains(t, reason, "config.prometheus.caFile is made from the values of prometheus")
}
