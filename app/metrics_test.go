package app

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/credentials/insecure"
)

var update = flag.Bool("update", false, "rewrite "+metricsPage)

const metricsPage = "../docs/reference/metrics.md"

// metricRow is one row of the reference.
type metricRow struct {
	name, help string
	labels     []string
	kind       string // counter, gauge or histogram
}

func TestMetricsPageHasEveryMetric(t *testing.T) {
	rows := metricRows(t)
	for _, row := range rows {
		require.NotEmpty(t, unitOf(row), "%s has no unit: add its ending to metricUnits", row.name)
		for _, label := range row.labels {
			require.NotEmpty(t, labelMeanings()[label], "%s has the label %s: add it to labelMeanings", row.name, label)
		}
	}
	page := metricsPageOf(rows)
	if *update {
		require.NoError(t, os.WriteFile(metricsPage, page, 0o644))
	}
	current, err := os.ReadFile(metricsPage)
	require.NoError(t, err)
	for _, row := range rows {
		require.True(t, bytes.Contains(current, []byte("| `"+row.name+"` |")), "%s has no %s; write it with -update", metricsPage, row.name)
	}
	require.True(t, bytes.Equal(page, current), "%s is out of date; write it with -update, and read the difference", metricsPage)
}

func TestMetricsFollowTheNamingConventions(t *testing.T) {
	for _, row := range metricRows(t) {
		require.Regexp(t, `^wva_[a-z_]+$`, row.name)
		require.Equal(t, row.kind == "counter", strings.HasSuffix(row.name, "_total"), "%s is a %s", row.name, row.kind)
		require.True(t, strings.HasSuffix(row.help, "."), "%s: %q is not a sentence", row.name, row.help)
	}
}

// metricRows returns the metrics of the product in alphabetical order, from a server that watches a
// cluster and one that reads manifests.
func metricRows(t *testing.T) []metricRow {
	t.Helper()
	w := newWorld(t)
	rows := map[string]metricRow{}
	collect(t, rows, serverOfCluster(w))
	collect(t, rows, serverOfManifests(t, w))
	// gauges that only a cluster has, and those of a model with an objective
	unseen := []string{"wva_inventory_objects", "wva_watch_failing", "wva_model_headroom_factor", "wva_model_slo_attainment_ratio"}
	sorted := make([]metricRow, 0, len(rows))
	for _, row := range rows {
		if row.kind == "" {
			row.kind = "gauge"
			if strings.HasSuffix(row.name, "_total") {
				row.kind = "counter"
			} else {
				require.Contains(t, unseen, row.name, "the servers of this test give it no series, so its type is not known")
			}
		}
		sorted = append(sorted, row)
	}
	slices.SortFunc(sorted, func(a, b metricRow) int { return strings.Compare(a.name, b.name) })
	return sorted
}

// serverOfCluster returns a server that never runs, and would watch a cluster.
func serverOfCluster(w *world) *Server {
	w.Helper()
	kubeconfig := filepath.Join(w.TempDir(), "kubeconfig")
	require.NoError(w, os.WriteFile(kubeconfig, []byte(`{apiVersion: v1, kind: Config, current-context: c,
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}], contexts: [{name: c, context: {cluster: c}}]}`), 0o600))
	c := w.config("--manifests", "", "--kubeconfig", kubeconfig, "--kubernetes-lease-namespace", "wva")
	s, err := w.newServer(c, io.Discard)
	require.NoError(w, err)
	w.Cleanup(func() { s.settings.Load().close() })
	return s
}

// serverOfManifests returns a server with a decision of each type, which KEDA has called.
func serverOfManifests(t *testing.T, w *world) *Server {
	t.Helper()
	w.variant("chat", 1, "1")
	w.variant("invalid", 1, "cheap")
	w.load("chat-5f-0", time.Now(), 20, 2)
	w.write("again.yaml", strings.Replace(fmt.Sprintf(manifest, "chat", 1, "1"), "{name: chat,", "{name: again,", 1))
	w.write("dryrun.yaml", `apiVersion: apps/v1
kind: Deployment
metadata: {name: other, namespace: llm, annotations: {wva.dev/modelID: other}}
spec: {replicas: 2, selector: {matchLabels: {app: other}}, template: {metadata: {labels: {app: other}}, spec: {containers: [{name: engine}]}}}
`)
	s := w.start()
	s.log.await("first plan posted")
	keda := externalscaler.NewExternalScalerClient(s.dial(t, insecure.NewCredentials()))
	stream, err := keda.StreamIsActive(t.Context(), reference("chat"))
	require.NoError(t, err)
	_, err = stream.Header()
	require.NoError(t, err)
	return s.Server
}

var description = regexp.MustCompile(`^Desc\{fqName: "([^"]*)", help: ("(?:[^"\\]|\\.)*"), unit: "[^"]*", constLabels: \{(.*)\}, variableLabels: \{(.*)\}\}$`)

// collect adds the metrics that are registered, with or without a series. Those of the Go runtime
// and of the process are left out.
func collect(t *testing.T, rows map[string]metricRow, s *Server) {
	t.Helper()
	for _, registry := range []*prometheus.Registry{s.registry, s.settings.Load().metrics} {
		descriptions := make(chan *prometheus.Desc)
		go func() {
			registry.Describe(descriptions)
			close(descriptions)
		}()
		for d := range descriptions {
			found := description.FindStringSubmatch(d.String())
			require.NotNil(t, found, d.String())
			if !strings.HasPrefix(found[1], "wva_") {
				continue
			}
			var help string
			_, err := fmt.Sscanf(found[2], "%q", &help)
			require.NoError(t, err)
			row := metricRow{name: found[1], help: help, kind: rows[found[1]].kind}
			for pair := range strings.SplitSeq(found[3], ",") {
				if name, _, isPair := strings.Cut(pair, "="); isPair {
					row.labels = append(row.labels, name)
				}
			}
			if found[4] != "" {
				row.labels = append(row.labels, strings.Split(found[4], ",")...)
			}
			rows[row.name] = row
		}
		families, err := registry.Gather()
		require.NoError(t, err)
		for _, family := range families {
			if row, found := rows[family.GetName()]; found {
				row.kind = strings.ToLower(family.GetType().String())
				rows[family.GetName()] = row
			}
		}
	}
}

// metricUnits are the units by the endings of names.
func metricUnits() [][2]string {
	return [][2]string{
		{"_seconds", "seconds"}, {"_replicas", "replicas"}, {"_variants", "variants"}, {"_conflicts", "conflicts"}, {"_objects", "objects"},
		{"_streams", "streams"}, {"_calls", "calls"}, {"_level", "share"}, {"_info", "1"}, {"_decision", "1"}, {"_condition", "0 or 1"}, {"_failing", "0 or 1"},
		{"_cycles_total", "cycles"}, {"_triggers_total", "requests"}, {"_polls_total", "polls"}, {"_pushes_total", "pushes"},
		{"_requests_total", "requests"}, {"_queries_total", "queries"}, {"_errors_total", "requests"}, {"_changes_total", "changes"},
		{"_written_total", "events"}, {"_rejected_total", "rejections"}, {"_dropped_total", "events"}, {"_cost_difference_total", "cost"},
		{"_models_total", "models"}, {"_ratio", "share"}, {"_factor", "factor"},
	}
}

func unitOf(row metricRow) string {
	for _, unit := range metricUnits() {
		if strings.HasSuffix(row.name, unit[0]) {
			return unit[1]
		}
	}
	return ""
}

// labelMeanings are the values of labels.
func labelMeanings() map[string]string {
	return map[string]string{
		"namespace": "Namespace of the variant.", "target_name": "Name of the workload that the variant scales.",
		"target_kind": "Kind of the workload, such as Deployment.", "model": "`modelID` of the variant.",
		"accelerator": "Accelerator type of the variant; empty if unknown.",
		"decision":    "`up`, `down`, `none` or `hold`.",
		"reason":      "Of a decision or a held variant: a code of the [reference of reasons](reasons.md). Of a cycle: its trigger. Of a dropped event: the cause.",
		"type":        "Type of the condition, or of the conflict.",
		"result":      "Result of the cycle, the poll or the query.",
		"query":       "Name of the query.", "resource": "Resource of the Kubernetes API, in plural.",
		"method": "gRPC method.", "code": "gRPC status code.", "limit": "Limit that rejected: `connections`, `calls`, `streams`, `unknown_streams`, `reflection`, or `request` for one that was too large or did not arrive in time.",
		"direction": "`up` or `down`; of a cost, `saved` or `added`.",
		"version":   "Version of the server.", "revision": "Commit that it was built from.", "goversion": "Version of Go that it was built with.",
	}
}

// metricSections are the sections of the page; a metric belongs to the first that matches.
func metricSections() []struct{ title, text, names string } {
	return []struct{ title, text, names string }{
		{"Variants", "One series for each variant, from the latest plan. They end when the plan is older than\n`maxPlanAge`, and when the object is deleted.", `_replicas$|_level$|_decision$|_condition$`},
		{"Dry run", "The sum of the recommendations so far.", `^wva_recommended`},
		{"Plans and cycles", "The plan as a whole, and the loop that makes it.", `^wva_(held|conflicts|plan|cycle|queue)`},
		{"Calls of KEDA and operators", "The gRPC server.", `^wva_(grpc|open|pushes)`},
		{"Queries of Prometheus", "The collector.", `^wva_collector`},
		{"Kubernetes", "The inventory of the cluster, and events. A server that reads manifests does not have them.", `^wva_(inventory|watch|events)`},
		{"Server", "", ``},
	}
}

func metricsPageOf(rows []metricRow) []byte {
	var b bytes.Buffer
	b.WriteString(`# Metrics

<!-- Written by "go test ./app -run MetricsPage -update" from the registries of the server. -->

The server exports these metrics on ` + "`/metrics` of `http.address`" + `, in the formats of Prometheus. It
exports the usual metrics of the Go runtime (` + "`go_*`) and of the process (`process_*`" + `) too.
[Operations](../operations.md) has alerts on them.

A metric that has no value yet has no series. A series that is described as absent in a situation is
absent then, and not zero.
`)
	used := map[string]bool{}
	for _, section := range metricSections() {
		fmt.Fprintf(&b, "\n## %s\n\n", section.title)
		if section.text != "" {
			b.WriteString(section.text + "\n\n")
		}
		b.WriteString("| metric | type | labels | unit | meaning |\n|---|---|---|---|---|\n")
		for _, row := range rows {
			if used[row.name] || !regexp.MustCompile(section.names).MatchString(row.name) {
				continue
			}
			used[row.name] = true
			labels := make([]string, len(row.labels))
			for i, label := range row.labels {
				labels[i] = "`" + label + "`"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", row.name, row.kind, strings.Join(labels, ", "), unitOf(row), row.help)
		}
	}
	b.WriteString("\n## Labels\n\n| label | meaning |\n|---|---|\n")
	var names []string
	for _, row := range rows {
		names = append(names, row.labels...)
	}
	slices.Sort(names)
	for _, label := range slices.Compact(names) {
		fmt.Fprintf(&b, "| `%s` | %s |\n", label, labelMeanings()[label])
	}
	return b.Bytes()
}
