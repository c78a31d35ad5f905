package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/wva-project/wva/app"
	"github.com/wva-project/wva/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// output returns standard output and standard error of a command line.
func output(t *testing.T, arguments ...string) (string, string, error) {
	t.Helper()
	var out, errs bytes.Buffer
	command := newCommand()
	command.SetArgs(arguments)
	command.SetOut(&out)
	command.SetErr(&errs)
	err := command.ExecuteContext(t.Context())
	return out.String(), errs.String(), err
}

func TestHelpNamesEveryFlag(t *testing.T) {
	help, _, err := output(t, "--help")
	require.NoError(t, err)
	for _, s := range config.Settings() {
		if s.Flag() != "" {
			require.Regexp(t, `(?m)^ +--`+s.Flag()+" ", help)
		}
	}
	require.Regexp(t, `(?m)^ +--config `, help)
	require.Contains(t, help, "WVA_PROMETHEUS_BEARER_TOKEN")
	for line := range strings.SplitSeq(help, "\n") {
		require.LessOrEqual(t, len(line), 125, line)
	}
}

func TestConfigPrintsTheEffectiveConfiguration(t *testing.T) {
	base := []string{"config", "--prometheus-url", "http://p", "--manifests", t.TempDir(), "--interval", "20s"}
	yaml, _, err := output(t, base...)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(yaml, "interval: 20s\nmaxPlanAge: 5m\n"), yaml)
	yaml, _, err = output(t, append(base, "--origins")...)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(yaml, "interval: 20s # flag --interval\nmaxPlanAge: 5m # default\n"), yaml)
	text, _, err := output(t, append(base, "--output", "json")...)
	require.NoError(t, err)
	var whole struct{ Interval string }
	require.NoError(t, json.Unmarshal([]byte(text), &whole))
	require.Equal(t, "20s", whole.Interval)
	text, _, err = output(t, append(base, "--output", "json", "--origins")...)
	require.NoError(t, err)
	var each map[string]struct{ Origin string }
	require.NoError(t, json.Unmarshal([]byte(text), &each))
	require.Equal(t, "flag --interval", each["interval"].Origin)
	_, _, err = output(t, append(base, "--output", "xml")...)
	require.EqualError(t, err, `output "xml" is unknown; write yaml or json`)
	_, warnings, err := output(t, append(base, "--scale-to-zero-retention", "48h")...)
	require.NoError(t, err)
	require.Contains(t, warnings, "warning: scaleToZero.retention of 48h")
}

func TestConfigReadsTheConfigMapsOfTheClusterIfItIsToldTo(t *testing.T) {
	directory := t.TempDir()
	for name, settings := range map[string]string{"wva": "interval: 30s", "team-a": "models: [{model: m, retention: 20m}]", "team-b": "interval: 1s"} {
		text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: " + name + ", labels: {wva.dev/config: \"true\"}}\ndata: {k: '" + settings + "'}\n"
		require.NoError(t, os.WriteFile(filepath.Join(directory, name+".yaml"), []byte(text), 0o600))
	}
	base := []string{
		"config", "--prometheus-url", "http://p", "--manifests", directory, "--origins", "--kubernetes-config-maps", "all", "--kubernetes-config-namespace", "wva",
	}
	yaml, _, err := output(t, base...)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(yaml, "interval: 15s # default\n"), yaml)
	yaml, _, err = output(t, append(base, "--cluster")...)
	require.ErrorContains(t, err, "ConfigMap team-b/c: key k: interval: is not a setting of a namespace; let the administrator set it in the server's namespace")
	require.True(t, strings.HasPrefix(yaml, "interval: 30s # ConfigMap wva/c, key k, line 1\n"), yaml)
	require.True(t, strings.HasSuffix(yaml, "\n# namespace team-a, for its own variants and within the limits of the administrator:\n"+
		"#   models: [{namespace: team-a, model: m, retention: 20m}] # ConfigMap team-a/c, key k, line 1\n"), yaml)
}

func TestErrorsOfTheConfigurationAreReportedAtOnce(t *testing.T) {
	for _, arguments := range [][]string{{}, {"config"}} {
		_, _, err := output(t, append(arguments, "--interval", "soon")...)
		require.EqualError(t, err, `the configuration is invalid:
  interval: "soon" is not a duration; write a duration from 1s to 1h, such as 15s (flag --interval)
  prometheus.url: is missing; write the URL of an HTTP API, such as http://prometheus.monitoring.svc:9090 (default)`)
	}
}

func TestVersionIsThatOfTheBinary(t *testing.T) {
	text, _, err := output(t, "version")
	require.NoError(t, err)
	require.Regexp(t, `^wva \S.*, go1\.\d+.*, \w+/\w+\n$`, text)
	text, _, err = output(t, "version", "--output", "json")
	require.NoError(t, err)
	var b app.Build
	require.NoError(t, json.Unmarshal([]byte(text), &b))
	require.Equal(t, app.BuildOf(""), b)
	_, _, err = output(t, "version", "--output", "xml")
	require.ErrorContains(t, err, "write text or json")
}

func TestTheCommandServesTheSamplesUntilItIsStopped(t *testing.T) {
	version = "v1.2.3"
	defer func() { version = "" }()
	log, stop := serve(t, "--manifests", "../../examples/manifests")
	starting := await(t, log, "msg=starting ")
	require.Contains(t, starting, `version="v1.2.3, `)
	require.Contains(t, starting, "prometheus="+nowhere)
	await(t, log, `msg="first plan posted, server ready"`)
	require.NoError(t, stop())
	await(t, log, "msg=stopped")
}

// nowhere is the address of no Prometheus: everything is held.
const nowhere = "http://127.0.0.1:1"

// serve runs the server until stop is called, and returns its log.
func serve(t *testing.T, arguments ...string) (log <-chan string, stop func() error) {
	t.Helper()
	read, write := io.Pipe()
	lines := make(chan string, 10_000)
	go func() {
		defer close(lines)
		for scanner := bufio.NewScanner(read); scanner.Scan(); {
			lines <- scanner.Text()
		}
	}()
	ctx, cancel := context.WithCancel(t.Context())
	command := newCommand()
	command.SetArgs(append([]string{"--prometheus-url", nowhere, "--grpc-address", "127.0.0.1:0", "--operators-address", "127.0.0.1:0", "--http-address", "127.0.0.1:0"}, arguments...))
	command.SetErr(write)
	ended := make(chan error, 1)
	go func() {
		ended <- command.ExecuteContext(ctx)
		_ = write.Close() // never fails
	}()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() { require.NoError(t, stop()) })
	return lines, stop
}

// await returns the next line of the log with the text.
func await(t *testing.T, log <-chan string, text string) string {
	t.Helper()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	var before []string
	for {
		select {
		case line, open := <-log:
			if strings.Contains(line, text) {
				return line
			}
			if before = append(before, line); !open {
				t.Fatalf("the log ended without %q:\n%s", text, strings.Join(before, "\n"))
			}
		case <-deadline.C:
			t.Fatalf("the log has no line %q:\n%s", text, strings.Join(before, "\n"))
		}
	}
}
