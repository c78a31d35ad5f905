package main

import (
	"bytes"
	"context"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/config"
)

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
	var b build
	require.NoError(t, json.Unmarshal([]byte(text), &b))
	require.Equal(t, builtFrom(), b)
	_, _, err = output(t, "version", "--output", "xml")
	require.ErrorContains(t, err, "write text or json")
}

func TestTheCommandServesTheSamplesUntilItIsStopped(t *testing.T) {
	w := newWorld(t)
	w.manifests = "../../examples/manifests"
	log := newJournal(t)
	ctx, cancel := context.WithCancel(t.Context())
	command := newCommand()
	command.SetArgs(w.arguments())
	command.SetErr(log)
	ended := make(chan error, 1)
	go func() { ended <- command.ExecuteContext(ctx) }()
	require.Equal(t, w.url, log.await("starting")["prometheus"])
	log.await("first plan posted")
	cancel()
	require.NoError(t, <-ended)
}

func TestEveryThresholdAndEveryTermOfThePolicyIsSetByTheConfiguration(t *testing.T) {
	c := newWorld(t).config()
	c.Sizing.Queueing = config.Off
	policy := reflect.ValueOf(policyOf(c))
	for _, part := range []reflect.Value{policy, policy.FieldByName("Saturation")} {
		for i := range part.NumField() {
			require.False(t, part.Field(i).IsZero(), part.Type().Field(i).Name)
		}
	}
}

// The packages state their defaults in comments. The table of settings must have the same.
func TestDefaultsAreThoseOfTheComments(t *testing.T) {
	w := newWorld(t)
	policy, queries := reflect.ValueOf(policyOf(w.config())), reflect.ValueOf(queriesOf(w.config()))
	checked := compareDefaults(t, "../../planner/policy.go", "Policy", policy) +
		compareDefaults(t, "../../analyzer/saturation.go", "Saturation", policy.FieldByName("Saturation")) +
		compareDefaults(t, "../../collector/options.go", "Options", queries)
	require.GreaterOrEqual(t, checked, 23)
}

var statedDefault = regexp.MustCompile(`Default:? ([0-9]+(?:\.[0-9]+)?)(?: (s|m|h))?[.;, ]`)

// compareDefaults compares the numbers and durations that the comments of a struct state with a
// value of it that was made of defaults, and returns how many it found. Fields that the
// configuration does not set are zero.
func compareDefaults(t *testing.T, file, name string, value reflect.Value) (checked int) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	require.NoError(t, err)
	ast.Inspect(parsed, func(node ast.Node) bool {
		declared, ok := node.(*ast.TypeSpec)
		if !ok || declared.Name.Name != name {
			return true
		}
		for _, field := range declared.Type.(*ast.StructType).Fields.List {
			stated := statedDefault.FindStringSubmatch(strings.ReplaceAll(field.Doc.Text()+" ", "\n", " "))
			if stated == nil || value.FieldByName(field.Names[0].Name).IsZero() {
				continue
			}
			checked++
			switch is := value.FieldByName(field.Names[0].Name).Interface().(type) {
			case time.Duration:
				want, err := time.ParseDuration(stated[1] + stated[2])
				require.NoError(t, err)
				require.Equal(t, want, is, field.Names[0].Name)
			case float64:
				var want float64
				require.NoError(t, json.Unmarshal([]byte(stated[1]), &want))
				require.InDelta(t, want, is, 1e-12, field.Names[0].Name)
			}
		}
		return false
	})
	return checked
}
