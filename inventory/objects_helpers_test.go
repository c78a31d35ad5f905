package inventory

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/fleet"
)

// objectsOf reads valid manifests.
func objectsOf(t *testing.T, manifests ...string) Objects {
	t.Helper()
	read := readManifests("world.yaml", []byte(strings.Join(manifests, "\n---\n")))
	require.Empty(t, read.problems)
	var objects Objects
	for _, m := range read.manifests {
		objects.Append(m.objects)
	}
	return objects
}

// scaled returns a ScaledObject llm/NAME of the Deployment llm/NAME, with further metadata as "key:
// value".
func scaled(name string, metadata ...string) string {
	return scaledTo(name, "{name: "+name+"}", metadata...)
}

func scaledTo(name, target string, metadata ...string) string {
	keys := append([]string{"scalerAddress: wva:9090", "modelID: m"}, metadata...)
	return fmt.Sprintf(`apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: %s, namespace: llm, creationTimestamp: "2026-01-01T00:00:00Z"}
spec:
  scaleTargetRef: %s
  minReplicaCount: 1
  maxReplicaCount: 4
  triggers:
  - type: external-push
    metadata: {%s}`, name, target, strings.Join(keys, ", "))
}

// deployment returns the Deployment llm/NAME with one container and further lines of its pod's
// spec.
func deployment(name string, replicas int, container string, podSpec ...string) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: %s, namespace: llm}
spec:
  replicas: %d
  template:
    spec:
      containers: [{name: engine, %s}]
      %s`, name, replicas, container, strings.Join(podSpec, "\n      "))
}

// pod is a pod of namespace llm in a few words.
type pod struct {
	name     string
	owner    string // "Kind name"; empty: none
	version  string // of the owner; default apps/v1
	labels   string // inside braces
	meta     string // further lines of the metadata
	spec     string // lines of the spec; default: one container
	status   string // lines of the status
	readyAt  string // a time of 2026-01-01; empty: not ready
	created  string // a time of 2026-01-01; default 00:00:00
	restarts int
}

func (p pod) String() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("apiVersion: v1\nkind: Pod\nmetadata:\n  name: %s\n  namespace: llm\n  labels: {%s}", p.name, p.labels)
	line("  creationTimestamp: %q", "2026-01-01T"+orElse(p.created, "00:00:00")+"Z")
	if p.owner != "" {
		kind, name, _ := strings.Cut(p.owner, " ")
		line("  ownerReferences: [{apiVersion: %s, kind: %s, name: %s, controller: true, uid: u}]", orElse(p.version, "apps/v1"), kind, name)
	}
	if p.meta != "" {
		line("  %s", p.meta)
	}
	line("spec:\n  %s\nstatus:\n  %s", orElse(p.spec, "containers: [{name: engine}]"), orElse(p.status, "phase: Running"))
	if p.readyAt != "" {
		line("  conditions: [{type: Ready, status: \"True\", lastTransitionTime: %q}]", "2026-01-01T"+p.readyAt+"Z")
		line("  containerStatuses: [{name: engine, restartCount: %d, state: {running: {}}}]", p.restarts)
	}
	return b.String()
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// workloadOf returns the only workload of the tables.
func workloadOf(t *testing.T, manifests ...string) fleet.Workload {
	t.Helper()
	tables := objectsOf(t, manifests...).Tables(Options{})
	require.Len(t, tables.Workloads, 1)
	return tables.Workloads[0]
}

// podNames returns the names of a workload's pods.
func podNames(w fleet.Workload) []string {
	names := []string{}
	for _, pod := range w.Pods {
		names = append(names, pod.Name)
	}
	return names
}

// Counts returns how much was read.
func (d *Directory) Counts() Counts { return d.current.Load().counts }

// invalidText returns the validation errors of a variant, one a line.
func invalidText(v fleet.Variant) string {
	var lines []string
	for _, p := range v.Invalid {
		lines = append(lines, p.String())
	}
	return strings.Join(lines, "\n")
}
