package config_test

import (
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/wva-project/wva/config"
	"github.com/wva-project/wva/fleet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// needed is the beginning of a file with all required settings; the path of a directory follows.
const needed = "prometheus: {url: https://prometheus.example.com}\nmanifests: "

// given returns flags as a command line sets them, in an environment without our variables.
func given(t *testing.T, arguments ...string) *pflag.FlagSet {
	t.Helper()
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "WVA_") {
			t.Setenv(name, "")
			require.NoError(t, os.Unsetenv(name))
		}
	}
	flags := pflag.NewFlagSet("wva", pflag.ContinueOnError)
	config.AddFlags(flags)
	require.NoError(t, flags.Parse(arguments))
	return flags
}

// written returns the path of a new file.
func written(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "wva.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// complete returns the path of a file with all required settings, and more.
func complete(t *testing.T, more ...string) string {
	t.Helper()
	return written(t, needed+t.TempDir()+"\n"+strings.Join(more, "\n"))
}

// errorLines returns the lines of an error without the path of the file.
func errorLines(t *testing.T, err error, path string) []string {
	t.Helper()
	require.Error(t, err)
	return strings.Split(strings.ReplaceAll(err.Error(), path, "wva.yaml"), "\n")
}

func TestEverySettingHasItsDefaultIfNothingIsSet(t *testing.T) {
	c, err := config.Load(given(t, "--config", complete(t)))
	require.NoError(t, err)
	require.Equal(t, 15*time.Second, c.Interval)
	require.Equal(t, 10*time.Second, c.Prometheus.QueryTimeout)
	require.Equal(t, config.Windows{Latest: time.Minute, Peak: 5 * time.Minute, ShortPeak: 2 * time.Minute, Idle: 10 * time.Minute, Long: time.Hour}, c.Prometheus.Windows)
	require.Equal(t, ":9090", c.GRPC.Address)
	require.Equal(t, slog.LevelInfo, c.Log.Level)
	require.Equal(t, config.Saturation{KVThreshold: 0.8, QueueThreshold: 5, MaxThroughputShare: 0.85, MaxITLShare: 0.7, MaxITLStretch: 3}, c.Saturation)
	require.Equal(t, config.KVCache{Headroom: 0.1}, c.KVCache)
	require.Equal(t, config.Backlog{DrainWithin: time.Minute}, c.Backlog)
	require.Equal(t, config.ScaleUp{StartupTime: 2 * time.Minute}, c.ScaleUp)
	require.Equal(t, config.ScaleDown{Headroom: 0.2, MinReplicaLifetime: 5 * time.Minute}, c.ScaleDown)
	require.Equal(t, config.ScaleToZero{Enabled: true, Retention: 10 * time.Minute}, c.ScaleToZero)
	require.Equal(t, config.MissingData{KeepFor: 5 * time.Minute, GracePeriod: time.Minute}, c.MissingData)
	require.Equal(t, config.Sizing{Queueing: config.On, MaxSimulations: 32}, c.Sizing)
	require.Equal(t, config.SwitchingCost{Horizon: 30 * time.Minute}, c.SwitchingCost)
	require.Empty(t, c.Models)
	require.Empty(t, c.Profiles)
	require.Equal(t, config.On, c.ProfileCatalogue)
	require.Contains(t, c.Accelerators, fleet.AcceleratorSpec{Name: "H100", Speed: 3.2})
	require.Empty(t, c.Warnings())
	require.Equal(t, config.SourceDefault, c.Origin("interval").Source)
	require.Equal(t, config.SourceFile, c.Origin("manifests").Source)
}

func TestDefaultIsTheConfigurationThatSetsNothing(t *testing.T) {
	directory := t.TempDir()
	loaded, err := config.Load(given(t, "--prometheus-url", "http://p", "--manifests", directory))
	require.NoError(t, err)
	t.Setenv("WVA_INTERVAL", "20s")
	c, err := config.Default()
	require.NoError(t, err)
	c.Prometheus.URL, c.Manifests = "http://p", directory
	require.Equal(t, loaded.Effective(), c.Effective())
	require.Equal(t, loaded.EngineProfiles(), c.EngineProfiles())
	require.NotEmpty(t, c.EngineProfiles())
	require.Empty(t, c.Warnings())
}

func TestPrecedenceIsFlagEnvironmentFileDefault(t *testing.T) {
	file := "interval: 20s"
	tests := []struct {
		file, env, flag string
		want            time.Duration
		origin          string
	}{
		{"", "", "", 15 * time.Second, "default"},
		{file, "", "", 20 * time.Second, "file wva.yaml, line 3"},
		{"", "30s", "", 30 * time.Second, "environment variable WVA_INTERVAL"},
		{file, "30s", "", 30 * time.Second, "environment variable WVA_INTERVAL"},
		{"", "", "40s", 40 * time.Second, "flag --interval"},
		{file, "", "40s", 40 * time.Second, "flag --interval"},
		{"", "30s", "40s", 40 * time.Second, "flag --interval"},
		{file, "30s", "40s", 40 * time.Second, "flag --interval"},
		{"interval:", "", "", 15 * time.Second, "default"},
	}
	for _, test := range tests {
		t.Run(test.file+" "+test.env+" "+test.flag, func(t *testing.T) {
			path := complete(t, test.file)
			arguments := []string{"--config", path}
			if test.flag != "" {
				arguments = append(arguments, "--interval", test.flag)
			}
			flags := given(t, arguments...)
			t.Setenv("WVA_INTERVAL", test.env)
			c, err := config.Load(flags)
			require.NoError(t, err)
			require.Equal(t, test.want, c.Interval)
			require.Equal(t, test.origin, strings.ReplaceAll(c.Origin("interval").String(), path, "wva.yaml"))
		})
	}
}

func TestEverySettingCanComeFromEverySource(t *testing.T) {
	directory := t.TempDir()
	readable := written(t, "x")
	example := map[string]string{
		"duration": "17m", "number": "0.5", "word": "", "URL": "https://p.example.com/x", "address": "127.0.0.1:7", "file": readable, "directory": directory,
		"secret": "hush", "name": "host", "text": "one", "names": "[a, b]", "models": "[{namespace: a, model: b/c, scaleToZero: true, retention: 30s}]", "boolean": "false",
		"label matchers": `cluster="eu"`,
		"accelerators":   "[{name: X1, speed: 2, price: 0.5}]", "profiles": "[{model: m, accelerator: H100, alpha: 6}]", "classes": "[{name: gold, priority: 3, namespaces: [a, 'b-*'], ttft: 1s}, {name: rest, priority: -3}]",
		"maxima": "[{namespace: a, accelerator: H100, max: 8}, {namespace: '*', max: 16}]",
	}
	special := map[string]string{"log.level": "warn", "log.format": "json", "saturation.maxITLStretch": "2", "prometheus.windows.latest": "20s",
		"kvCache.headroom": "0.2", "interval": "3m", "prometheus.windows.long": "2h", "prometheus.queryOffset": "3s", "prometheus.queryTimeout": "9s", "saturation.queueThreshold": "7",
		"kubernetes.events": "off", "kubernetes.dryRunVariants": "off", "kubernetes.configMaps": "own", "profileCatalogue": "off", "sizing.queueing": "off", "sizing.maxSimulations": "7", "kubernetes.qps": "7", "kubernetes.burst": "8", "grpc.maxStreams": "700"}
	for _, s := range config.Settings() {
		value := special[s.Key]
		if value == "" {
			value = example[s.Type()]
		}
		partner := map[string]string{
			"prometheus.certFile": "prometheus.keyFile", "prometheus.keyFile": "prometheus.certFile", "grpc.tls.certFile": "grpc.tls.keyFile",
			"grpc.tls.keyFile": "grpc.tls.certFile",
		}[s.Key]
		base := []string{"--prometheus-url", "http://p", "--manifests", directory}
		switch {
		case partner != "":
			base = append(base, "--"+flagOf(t, partner), readable)
		case s.Key == "kubeconfig":
			base = slices.Delete(base, 2, 4)
		case s.Key == "grpc.tls.clientCAFile" || s.Key == "grpc.tls.allowedClients" || s.Key == "operators.allowedClients":
			base = append(base, "--grpc-tls-cert-file", readable, "--grpc-tls-key-file", readable)
			if s.Key != "grpc.tls.clientCAFile" {
				base = append(base, "--grpc-tls-client-ca-file", readable)
			}
		}
		without := slices.Clone(base)
		if i := slices.Index(without, "--"+s.Flag()); i >= 0 {
			without = slices.Delete(without, i, i+2)
		}
		t.Run(s.Key, func(t *testing.T) {
			check := func(c *config.Config, err error, want config.Source) {
				t.Helper()
				require.NoError(t, err)
				require.Equal(t, want, c.Origin(s.Key).Source)
				if s.Secret() {
					require.Equal(t, "hush", c.Prometheus.BearerToken)
				}
			}
			nested := value
			for _, part := range slices.Backward(strings.Split(s.Key, ".")) {
				nested = "{" + part + ": " + nested + "}"
			}
			fromFile, err := config.Load(given(t, append(without, "--config", written(t, nested))...))
			check(fromFile, err, config.SourceFile)

			text := strings.TrimSuffix(strings.TrimPrefix(value, "[a"), " b]")
			if text != value {
				text = "a, b"
			}
			flags := given(t, without...)
			t.Setenv(s.Env(), text)
			fromEnvironment, err := config.Load(flags)
			check(fromEnvironment, err, config.SourceEnvironment)
			require.Equal(t, fromFile.Effective(), fromEnvironment.Effective())
			if s.Flag() == "" {
				return
			}
			fromFlag, err := config.Load(given(t, append(without, "--"+s.Flag(), text)...))
			check(fromFlag, err, config.SourceFlag)
			require.Equal(t, fromFile.Effective(), fromFlag.Effective())
			require.NotEqual(t, defaultOf(t, without, s), fromFlag.Effective(), "the value is not that of the default")
		})
	}
}

func flagOf(t *testing.T, key string) string {
	t.Helper()
	for _, s := range config.Settings() {
		if s.Key == key {
			return s.Flag()
		}
	}
	t.Fatalf("no setting %s", key)
	return ""
}

// defaultOf returns the effective configuration without the setting; empty if it is required.
func defaultOf(t *testing.T, arguments []string, _ config.Setting) string {
	t.Helper()
	c, err := config.Load(given(t, arguments...))
	if err != nil {
		return ""
	}
	return c.Effective()
}

func TestAllValidationErrorsAreReportedAtOnceWithOriginAndRemedy(t *testing.T) {
	path := written(t, `interval: 15
prometheus:
  url: ftp://prometheus
  windows: {latest: 2m, idle: 1m}
  labels: {pod: "not a label"}
  caFile: /does/not/exist
promtheus: {}
log:
  lvel: debug
kvCache: {headroom: 0.9}
models:
- {model: team/org/llama, scaleToZero: true}
- {namespace: a/b, scaleToZero: yes, retention: 1s}
- {namespace: a, model: c}
- {namespace: a, retain: 5m, retention: 5m}
- 7
accelerators: {name: H100}
serviceClasses: [{name: gold, priority: 1.5}, {name: gold}, {priority: 1001}, {name: rest, priority: -1001}, {name: " ", priority: 1}, gold, {name: x, priority: 1, namespaces: a}, {name: y, priority: 1, namespaces: [A, [b], c]}]
grpc:
  tls: {certFile: `+"wva.go"+`}
`)
	flags := given(t, "--config", path, "--log-format", "xml", "--manifests", "/does/not/exist")
	t.Setenv("WVA_SCALE_DOWN_HEADROOM", "a lot")
	c, err := config.Load(flags)
	require.Nil(t, c)
	require.Equal(t, []string{
		`unknown key "promtheus"; did you mean prometheus? (file wva.yaml, line 7)`,
		`log: unknown key "lvel"; did you mean level? (file wva.yaml, line 9)`,
		`interval: "15" is not a duration; write a duration from 1s to 1h, such as 15s (file wva.yaml, line 1)`,
		`manifests: "/does/not/exist" cannot be read: no such file or directory; write the path of a directory that the server may read (flag --manifests)`,
		`log.format: "xml" is unknown; write text or json (flag --log-format)`,
		`prometheus.url: "ftp://prometheus" is not an http or https URL; write the URL of an HTTP API, such as http://prometheus.monitoring.svc:9090 (file wva.yaml, line 3)`,
		`prometheus.caFile: "/does/not/exist" cannot be read: no such file or directory; write the path of a file that the server may read (file wva.yaml, line 6)`,
		`prometheus.labels.pod: "not a label" is not a label name; write letters, digits and underscores, not beginning with a digit (file wva.yaml, line 5)`,
		`grpc.tls.certFile: "wva.go" cannot be read: no such file or directory; write the path of a file that the server may read (file wva.yaml, line 20)`,
		`scaleDown.headroom: "a lot" is not a number; write a number from 0.001 to 100 (environment variable WVA_SCALE_DOWN_HEADROOM)`,
		`models: model "team/org/llama" seems to begin with a namespace, which is a field of its own; write {namespace: team, model: org/llama}, or add namespace: "*" if this is the name of the model (file wva.yaml, line 12)`,
		"models: namespace \"a/b\" is not a namespace; write a namespace, with * for any characters, such as team-a or \"prod-*\" (file wva.yaml, line 13)",
		`models: scaleToZero "yes" is neither true nor false; write true or false (file wva.yaml, line 13)`,
		`models: retention "1s" is below 10s; write a duration from 10s to 720h, such as 30m (file wva.yaml, line 13)`,
		`models: has a row that sets nothing: {namespace: a, model: c}; add scaleToZero, retention, serviceClass, ttft or itl (file wva.yaml, line 14)`,
		`models: unknown key "retain"; write one of namespace, model, scaleToZero, retention, serviceClass, ttft, itl, percentile (file wva.yaml, line 15)`,
		`models: has a row that is a single value; write each row as {namespace: ..., model: ..., scaleToZero: ..., retention: ..., serviceClass: ..., ttft: ..., itl: ..., percentile: ...} (file wva.yaml, line 16)`,
		`serviceClasses: priority "1.5" is not a whole number; write a whole number from -1000 to 1000 (file wva.yaml, line 18)`,
		`serviceClasses: has a row without priority; write a whole number from -1000 to 1000 (file wva.yaml, line 18)`,
		`serviceClasses: has a row without name; write the name that variants use, such as premium (file wva.yaml, line 18)`,
		`serviceClasses: priority "1001" is above 1000; write a whole number from -1000 to 1000 (file wva.yaml, line 18)`,
		`serviceClasses: priority "-1001" is below -1000; write a whole number from -1000 to 1000 (file wva.yaml, line 18)`,
		`serviceClasses: name " " is not a name; write the name that variants use, such as premium (file wva.yaml, line 18)`,
		`serviceClasses: has a row that is a single value; write each row as {name: ..., priority: ..., namespaces: ..., ttft: ..., itl: ..., percentile: ...} (file wva.yaml, line 18)`,
		"serviceClasses: namespaces is a single value; write a list of namespaces, with * for any characters, such as [team-a, \"prod-*\"] (file wva.yaml, line 18)",
		"serviceClasses: namespaces contains \"A\", which is not a namespace; write a list of namespaces, with * for any characters, such as [team-a, \"prod-*\"] (file wva.yaml, line 18)",
		"serviceClasses: namespaces contains an entry, which is not a namespace; write a list of namespaces, with * for any characters, such as [team-a, \"prod-*\"] (file wva.yaml, line 18)",
		`accelerators: is a mapping; write a list such as [{name: H100, speed: 3.2, price: 4.1}] (file wva.yaml, line 17)`,
		`prometheus.windows.idle: 1m is shorter than prometheus.windows.latest, which is 2m; raise the first or lower the second (file wva.yaml, line 4)`,
		`kvCache.headroom: 0.9 is not below saturation.kvThreshold, which is 0.8; lower the first or raise the second (file wva.yaml, line 10)`,
	}, errorLines(t, err, path))
	var invalid *config.ValidationError
	require.ErrorAs(t, err, &invalid)
}

func TestRulesBetweenSettingsAreChecked(t *testing.T) {
	readable := written(t, "x")
	tests := []struct {
		name string
		give []string
		want string // part of the only error; empty: no error
	}{
		{"timeout above the interval", []string{"--prometheus-query-timeout", "15s"}, "prometheus.queryTimeout: 15s is not below the interval of 15s"},
		{"default timeout follows the interval", []string{"--interval", "3s"}, ""},
		{"plan ages within two intervals", []string{"--max-plan-age", "29s"}, "maxPlanAge: 29s is below two intervals of 15s"},
		{"default plan age follows the interval", []string{"--interval", "10m"}, ""},
		{"peak window below the latest", []string{"--prometheus-windows-peak", "30s"}, "prometheus.windows.peak: 30s is shorter than prometheus.windows.latest, which is 1m"},
		{"latest window above the others", []string{"--prometheus-windows-latest", "6m"}, "prometheus.windows.peak: 5m is shorter than prometheus.windows.latest, which is 6m; raise the first or lower the second (flag --prometheus-windows-latest)"},
		{"long window below the peak", []string{"--prometheus-windows-long", "2m"}, "prometheus.windows.long: 2m is shorter than prometheus.windows.peak"},
		{"certificate without key", []string{"--prometheus-cert-file", readable}, "prometheus.keyFile: is missing beside prometheus.certFile; set both or none (flag --prometheus-cert-file)"},
		{"key without certificate", []string{"--grpc-tls-key-file", readable}, "grpc.tls.certFile: is missing beside grpc.tls.keyFile"},
		{"client CA without TLS", []string{"--grpc-tls-client-ca-file", readable}, "grpc.tls.clientCAFile: requires client certificates on a port without TLS"},
		{"client names without CA", []string{"--grpc-tls-allowed-clients", "keda"}, "grpc.tls.allowedClients: allows names that no authority has signed"},
		{"one port for two", []string{"--http-address", ":9090"}, "http.address: \":9090\" is the address of gRPC too"},
		{"operators on KEDA's port", []string{"--operators-address", ":9090"}, "operators.address: \":9090\" is the address of another port too; use three ports"},
		{"operators without names", []string{"--operators-address", ":9091", "--grpc-tls-cert-file", readable, "--grpc-tls-key-file", readable, "--grpc-tls-client-ca-file", readable}, "operators.allowedClients: is missing: every client of grpc.tls.clientCAFile could read all decisions at operators.address; name the operators, or set operators.address to 127.0.0.1:9091"},
		{"operators with names", []string{"--operators-address", ":9091", "--operators-allowed-clients", "ops", "--grpc-tls-cert-file", readable, "--grpc-tls-key-file", readable, "--grpc-tls-client-ca-file", readable}, ""},
		{"operators on the loopback need none", []string{"--operators-address", "[::1]:9091", "--grpc-tls-cert-file", readable, "--grpc-tls-key-file", readable, "--grpc-tls-client-ca-file", readable}, ""},
		{"operators' names without CA", []string{"--operators-allowed-clients", "ops"}, "operators.allowedClients: allows names that no authority has signed"},
		{"two free ports", []string{"--http-address", "127.0.0.1:0", "--grpc-address", "127.0.0.1:0"}, ""},
		{"labels alike", []string{"--prometheus-labels-pod", "namespace"}, "two of the labels are equal"},
		{"matchers with braces", []string{"--prometheus-matchers", `{cluster="eu"}`}, `is no list of label matchers: unexpected left brace '{'; write label matchers as in PromQL without braces, such as cluster="eu-1"`},
		{"matchers without quotes", []string{"--prometheus-matchers", `cluster=eu`}, `is no list of label matchers`},
		{"matchers of names", []string{"--prometheus-matchers", `__name__=~"vllm.*"`}, `queries have names of their own`},
		{"matchers", []string{"--prometheus-matchers", `cluster="eu", env!="test"`}, ""},
		{"empty URL", []string{"--prometheus-url", ""}, "prometheus.url: is missing; write the URL of an HTTP API"},
		{"credentials in the URL", []string{"--prometheus-url", "http://me:hush@p"}, "prometheus.url: contains a user name or password, which would be shown"},
		{"no port", []string{"--grpc-address", "localhost"}, `grpc.address: "localhost" is not host:port`},
		{"infinite number", []string{"--scale-down-headroom", "Inf"}, `"Inf" is above 100`},
		{"zero would mean the default", []string{"--kv-cache-headroom", "0"}, `kvCache.headroom: "0" is below 0.001`},
		{"directory for a file", []string{"--prometheus-ca-file", t.TempDir()}, "is a directory"},
		{"file for a directory", []string{"--manifests", readable}, "cannot be read: not a directory"},
		{"no configuration file", []string{"--config", "/does/not/exist"}, "config: the file /does/not/exist cannot be read: no such file or directory; name a file that the server may read (flag --config)"},
		{"twice in a list", []string{"--models", "[{namespace: a, retention: 1m}, {namespace: a, model: '*', retention: 2m}]"}, `models: "{namespace: a, model: *}" is listed twice`},
		{"class twice", []string{"--service-classes", "[{name: a, priority: 1}, {name: a, priority: 2}]"}, `serviceClasses: "a" is listed twice`},
		{"list that is no YAML", []string{"--models", "[{model: a/b"}, "models: is not YAML"},
		{"fraction of a millisecond", []string{"--interval", "1000100us"}, "is not a whole number of milliseconds"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			base := []string{"--prometheus-url", "http://p", "--manifests", filepath.Dir(readable)}
			_, err := config.Load(given(t, append(base, test.give...)...))
			if test.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, test.want)
			require.NotContains(t, err.Error(), "\n", "one cause, one error")
			require.NotContains(t, err.Error(), "hush")
		})
	}
}

func TestErrorsOfTheFileNameTheLine(t *testing.T) {
	tests := []struct{ name, give, want string }{
		{"not YAML", "interval: [", "is not YAML: did not find expected node content"},
		{"tab", "log:\n\tlevel: info", "line 2"},
		{"twice", "interval: 15s\ninterval: 20s", `"interval" is given twice, first in line 1; remove one of the two (file wva.yaml, line 2)`},
		{"section that is a value", "log: info", "log: is a single value; write settings as key: value (file wva.yaml, line 1)"},
		{"value that is a section", "interval: {seconds: 15}", "interval: is a mapping; write a duration"},
		{"file that is a list", "- interval: 15s", "is a list; write settings as key: value"},
		{"two documents", "interval: 15s\n---\ninterval: 20s", "contains more than one YAML document"},
		{"alias", "prometheus: &p {url: http://x}\nlog: *p", "log: is a YAML alias"},
		{"merge", "log: {<<: {level: info}}", `unknown key "<<"`},
		{"key of another section", "url: http://x", "did you mean url below prometheus?"},
		{"name of the flag", "prometheus-ca-file: x", "did you mean caFile below prometheus?"},
		{"dotted key", "prometheus.url: http://x", "did you mean url below prometheus?"},
		{"removed key", "scaleUp: {reactionTime: 45s}", `scaleUp: unknown key "reactionTime"; remove it`},
		{"removed window", "prometheus: {windows: {trend: 2m}}", `prometheus.windows: unknown key "trend"; remove it`},
		{"key in other case", "Interval: 20s", `unknown key "Interval"; did you mean interval?`},
		{"nothing like it", "replicas: 3", "remove it; `wva --help` lists all settings"},
		{"mapping as a key", "{a: b}: c", "has a mapping as a key"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path := written(t, test.give)
			_, err := config.Load(given(t, "--config", path, "--prometheus-url", "http://p", "--manifests", t.TempDir()))
			require.Contains(t, strings.Join(errorLines(t, err, path), "\n"), test.want)
			require.Len(t, errorLines(t, err, path), 1)
		})
	}
}

func TestSecretsAreNeverShown(t *testing.T) {
	const secret = "s3cr3t-value"
	base := []string{"--prometheus-url", "http://p", "--manifests", t.TempDir()}
	for _, text := range []string{
		"prometheus: {bearerToken: " + secret + "}",
		"prometheus: {bearerToken: \"" + secret + "\\nx\"}",
		"prometheus: {bearerToken: {" + secret + ": " + secret + "}}",
		"prometheus: {bearerToken: [" + secret + "]}",
		"prometheus:\n  bearerToken: \"" + secret + ": [",
		"prometheus: {bearerToken: !!int " + secret + "}",
		"prometheus:\n  bearerToken: " + secret + ": x: y",
		"prometheus:\n  bearerToken: *" + secret,
		"prometheus: {bearerToken: " + secret + ", bearerTokenFile: /does/not/exist}",
	} {
		path := written(t, text)
		c, err := config.Load(given(t, append(base, "--config", path)...))
		if err != nil {
			require.NotContains(t, err.Error(), secret, text)
			continue
		}
		for _, shown := range []string{c.Effective(), c.EffectiveWithOrigins(), c.EffectiveJSON(), c.EffectiveJSONWithOrigins(), strings.Join(c.Warnings(), "\n")} {
			require.NotContains(t, shown, secret, text)
		}
		require.Contains(t, c.Effective(), "bearerToken: <redacted>")
	}
	flags := given(t, base...)
	t.Setenv("WVA_PROMETHEUS_BEARER_TOKEN", secret+" ")
	_, err := config.Load(flags)
	require.EqualError(t, err, "prometheus.bearerToken: contains a space; "+
		"write one line of printable characters, without spaces (environment variable WVA_PROMETHEUS_BEARER_TOKEN)")
	require.NotContains(t, flags.FlagUsages(), "--prometheus-bearer-token ")
}

func TestThePrintedPlaceholderIsNoToken(t *testing.T) {
	flags := given(t, "--config", complete(t))
	t.Setenv("WVA_PROMETHEUS_BEARER_TOKEN", "<redacted>")
	_, err := config.Load(flags)
	require.ErrorContains(t, err, "is the placeholder that `wva config` prints")
}

func TestEffectiveConfigurationIsAConfigurationFile(t *testing.T) {
	first, err := config.Load(given(t, "--config", complete(t, "interval: 90s", "models: [{namespace: a-*, model: b/c, scaleToZero: true, retention: 36h}, {model: 'x/y: #z', scaleToZero: false}]",
		"serviceClasses: [{name: a, priority: 1, namespaces: [x, '*']}]", "accelerators: [{name: X, speed: 1, price: 1e-3}]")))
	require.NoError(t, err)
	second, err := config.Load(given(t, "--config", written(t, first.Effective())))
	require.NoError(t, err)
	require.Equal(t, first.Effective(), second.Effective())
	third, err := config.Load(given(t, "--config", written(t, first.EffectiveWithOrigins())))
	require.NoError(t, err)
	require.Equal(t, first.Effective(), third.Effective())
	// JSON is YAML
	fourth, err := config.Load(given(t, "--config", written(t, first.EffectiveJSON())))
	require.NoError(t, err)
	require.Equal(t, first.Effective(), fourth.Effective())
	require.Contains(t, first.EffectiveWithOrigins(), "level: info # default\n")
	require.Regexp(t, `interval: 1m30s # file /\S+/wva.yaml, line 3\n`, first.EffectiveWithOrigins())
	require.Regexp(t, `"interval": \{\s+"value": "1m30s",\s+"origin": "file /\S+/wva.yaml, line 3"\s+\}`, first.EffectiveJSONWithOrigins())
}

func TestWarningsNameProbableMistakes(t *testing.T) {
	flags := given(t, "--config", complete(t,
		"scaleToZero: {retention: 25h}", "models: [{namespace: a, model: b, retention: 48h}, {model: c, retention: 5m, scaleToZero: false}]",
		"serviceClasses: [{name: gold, priority: 5}, {name: rest, priority: -5, namespaces: [a]}, {name: top, priority: 9, namespaces: ['*']}]", "fixedAccelerators: [H100, h100, h1000]"), "--prometheus-url", "http://p")
	t.Setenv("WVA_PROMETHEUS_BEARER_TOKEN", "x")
	t.Setenv("WVA_INTERVALL", "20s")
	t.Setenv("WVA_SERVICE_HOST", "10.0.0.1") // Kubernetes sets these for a Service named wva
	t.Setenv("WVA_SERVICE_PORT_GRPC", "9090")
	t.Setenv("WVA_PORT", "tcp://10.0.0.1:9090")
	t.Setenv("WVA_PORT_9090_TCP_ADDR", "10.0.0.1")
	c, err := config.Load(flags)
	require.NoError(t, err)
	const effect = " is long: each cycle queries Prometheus that far back, and samples must cover the whole time"
	require.Equal(t, []string{
		"environment variable WVA_INTERVALL sets nothing; did you mean WVA_INTERVAL?",
		"the bearer token is sent unencrypted: prometheus.url is not https",
		"scaleToZero.retention of 25h" + effect,
		"retention of 48h of models {namespace: a, model: b}" + effect,
		"retention of models {model: c} sets nothing: scaleToZero is false",
		`service class gold of priority 5 is granted to no namespace, so no variant has it; add namespaces: [team-a], or namespaces: ["*"] for all`,
		"namespaces of service class rest set nothing: priority -5 needs no grant",
		"fixedAccelerators names h1000, which is not in accelerators; nodes and variants must use the same name",
	}, c.Warnings())
	require.Equal(t, 48*time.Hour, c.IdleWindow(nil))
}

func TestNamesOfSettingsAreUnique(t *testing.T) {
	seen := map[string]bool{"config": true, "WVA_CONFIG": true}
	settings := config.Settings()
	for _, s := range settings {
		for _, name := range []string{s.Key, s.Env(), "--" + s.Flag()} {
			require.False(t, seen[name], name)
			seen[name] = name != "--"
		}
		require.NotRegexp(t, `_(SERVICE_HOST|SERVICE_PORT|PORT)(_|$)`, s.Env(), "Kubernetes sets such variables for Services")
		require.NotEmpty(t, s.Meaning)
		require.NotContains(t, s.Meaning, "`", "pflag takes it for the name of a type")
		for _, other := range settings {
			require.False(t, strings.HasPrefix(other.Key, s.Key+"."), "%s would be a value and a section", s.Key)
		}
	}
	require.True(t, seen["WVA_GRPC_TLS_CLIENT_CA_FILE"])
	require.True(t, seen["--saturation-kv-threshold"])
}

func TestEveryErrorIsAValidationError(t *testing.T) {
	_, err := config.Load(given(t, "--config", "/does/not/exist", "--interval", "x"))
	joined, ok := err.(interface{ Unwrap() []error })
	require.True(t, ok)
	var count int
	var walk func([]error)
	walk = func(errs []error) {
		for _, err := range errs {
			if more, ok := err.(interface{ Unwrap() []error }); ok {
				walk(more.Unwrap())
				continue
			}
			_, isValidation := errors.AsType[*config.ValidationError](err)
			require.True(t, isValidation, err)
			count++
		}
	}
	walk(joined.Unwrap())
	require.Equal(t, 2, count, "the file and the interval; a setting that is missing may be in the file")
}

func TestPartialConfigurationHasDefaultsForInvalidSettings(t *testing.T) {
	path := written(t, "interval: soon\nlog: {level: debug}\nmodels: [{model: a/b/c}]\nunknown: 1\n")
	flags := given(t, "--config", path, "--scale-down-headroom", "0.3", "--max-plan-age", "1y")
	c, err := config.LoadPartial(flags)
	require.Len(t, errorLines(t, err, path), 5, "unknown key, interval, plan age, URL and models")
	require.Equal(t, 15*time.Second, c.Interval)
	require.Equal(t, 5*time.Minute, c.MaxPlanAge)
	require.Equal(t, slog.LevelDebug, c.Log.Level)
	require.InDelta(t, 0.3, c.ScaleDown.Headroom, 0)
	require.Empty(t, c.Models)
	require.Equal(t, config.SourceDefault, c.Origin("interval").Source)
	require.Equal(t, config.SourceFile, c.Origin("log.level").Source)

	yaml := strings.ReplaceAll(c.EffectiveWithOrigins(), path, "wva.yaml")
	require.Contains(t, yaml, "interval: 15s # default; the value from file wva.yaml, line 1 is invalid\n")
	require.Contains(t, yaml, "maxPlanAge: 5m # default; the value from flag --max-plan-age is invalid\n")
	require.Contains(t, yaml, "  level: debug # file wva.yaml, line 2\n")
	require.Contains(t, yaml, "  url: \"\" # default; required, and missing\n")
	require.Contains(t, yaml, "models: [] # default; the value from file wva.yaml, line 3 is invalid\n")
	require.Contains(t, c.Effective(), "url: \"\" # required, and missing\n")
	var each map[string]struct{ Origin, Invalid string }
	require.NoError(t, json.Unmarshal([]byte(c.EffectiveJSONWithOrigins()), &each))
	require.Equal(t, "flag --max-plan-age", each["maxPlanAge"].Invalid)
	require.Empty(t, each["log.level"].Invalid)

	c, err = config.Load(flags)
	require.Error(t, err)
	require.Nil(t, c, "the server must not use it")
}

func TestPartialConfigurationOfAFileThatCannotBeRead(t *testing.T) {
	c, err := config.LoadPartial(given(t, "--config", "/does/not/exist", "--interval", "20s"))
	require.ErrorContains(t, err, "the file /does/not/exist cannot be read")
	require.Equal(t, 20*time.Second, c.Interval)
}

func TestAcceleratorsHaveNoMemory(t *testing.T) {
	path := complete(t, "accelerators: [{name: X1, speed: 2, memoryGiB: 80}]")
	_, err := config.Load(given(t, "--config", path))
	require.Equal(t, []string{
		`accelerators: unknown key "memoryGiB"; write one of name, speed, price (file wva.yaml, line 3)`,
	}, errorLines(t, err, path))
}
