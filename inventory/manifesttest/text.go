// Package manifesttest writes the objects of a small fleet as manifests, for the tests of the
// packages that read objects. All namespaced objects are in the namespace llm.
package manifesttest

import (
	"bytes"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// Decode returns the objects of manifests: of each document, or of each item of a list. It panics
// if one is no object.
func Decode(manifests ...string) []*unstructured.Unstructured {
	var objects []*unstructured.Unstructured
	for document := range strings.SplitSeq(strings.Join(manifests, "\n---\n"), "\n---\n") {
		data, err := yaml.YAMLToJSONStrict([]byte(document))
		if err != nil {
			panic(fmt.Sprintf("%v in\n%s", err, document))
		}
		if bytes.Equal(data, []byte("null")) {
			continue // comments
		}
		// Unlike encoding/json it reads whole numbers as int64, as the API machinery expects them.
		var fields map[string]any
		if err := utiljson.Unmarshal(data, &fields); err != nil {
			panic(fmt.Sprintf("%v in\n%s", err, document))
		}
		items, isList := fields["items"].([]any)
		if !isList {
			objects = append(objects, &unstructured.Unstructured{Object: fields})
		}
		for _, item := range items {
			objects = append(objects, &unstructured.Unstructured{Object: item.(map[string]any)})
		}
	}
	return objects
}

// Scaled returns a ScaledObject llm/NAME of the Deployment llm/NAME, with further metadata as "key:
// value".
func Scaled(name string, metadata ...string) string {
	return ScaledTo(name, "{name: "+name+"}", metadata...)
}

// ScaledTo returns such a ScaledObject of any target, as "{kind: K, name: N}".
func ScaledTo(name, target string, metadata ...string) string {
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

// Deployment returns the Deployment llm/NAME with one container and further lines of its pod's
// spec.
func Deployment(name string, replicas int, container string, podSpec ...string) string {
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

// Pod is a pod of namespace llm in a few words.
type Pod struct {
	Name         string
	Owner        string // "Kind name"; empty: none
	OwnerVersion string // of the owner; default apps/v1
	Labels       string // inside braces
	Metadata     string // further lines of the metadata
	Spec         string // lines of the spec; default: one container
	Status       string // lines of the status
	ReadyAt      string // a time of 2026-01-01; empty: not ready
	Scheduled    string // since when a ready pod has a node; empty: not known
	Created      string // a time of 2026-01-01; default 00:00:00
	Restarts     int
}

// String returns the pod as a manifest.
func (p Pod) String() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("apiVersion: v1\nkind: Pod\nmetadata:\n  name: %s\n  namespace: llm\n  labels: {%s}", p.Name, p.Labels)
	line("  creationTimestamp: %q", "2026-01-01T"+orElse(p.Created, "00:00:00")+"Z")
	if p.Owner != "" {
		kind, name, _ := strings.Cut(p.Owner, " ")
		line("  ownerReferences: [{apiVersion: %s, kind: %s, name: %s, controller: true, uid: u}]", orElse(p.OwnerVersion, "apps/v1"), kind, name)
	}
	if p.Metadata != "" {
		line("  %s", p.Metadata)
	}
	line("spec:\n  %s\nstatus:\n  %s", orElse(p.Spec, "containers: [{name: engine}]"), orElse(p.Status, "phase: Running"))
	if p.ReadyAt != "" {
		line("  conditions:\n  - {type: Ready, status: \"True\", lastTransitionTime: %q}", "2026-01-01T"+p.ReadyAt+"Z")
		if p.Scheduled != "" {
			line("  - {type: PodScheduled, status: \"True\", lastTransitionTime: %q}", "2026-01-01T"+p.Scheduled+"Z")
		}
		line("  containerStatuses: [{name: engine, restartCount: %d, state: {running: {}}}]", p.Restarts)
	}
	return b.String()
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// Node returns a node with 4 nvidia.com/gpu that is ready, with further lines of its spec.
func Node(name, product, spec string) string {
	label := ""
	if product != "" {
		label = "nvidia.com/gpu.product: " + product
	}
	return fmt.Sprintf(`apiVersion: v1
kind: Node
metadata: {name: %s, labels: {%s}}
spec: {%s}
status: {allocatable: {nvidia.com/gpu: 4}, conditions: [{type: Ready, status: "True"}]}`, name, label, spec)
}

// GPUHolder returns a pod that has GPUs of a node allocated.
func GPUHolder(name, node string, gpus int, status string) string {
	return Pod{
		Name: name, Status: status,
		Spec: fmt.Sprintf("nodeName: %s\n  containers: [{name: e, resources: {limits: {nvidia.com/gpu: %d}, requests: {nvidia.com/gpu: %d}}}]", node, gpus, gpus),
	}.String()
}

// HPA returns an HPA of the Deployment llm/a with further lines of its metadata.
func HPA(name, meta string) string {
	return HPAOf(name, "{apiVersion: apps/v1, kind: Deployment, name: a}", meta)
}

// HPAOf returns an HPA of any target with further lines of its metadata.
func HPAOf(name, target, meta string) string {
	return fmt.Sprintf(`apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: %s, namespace: llm, %s}
spec: {scaleTargetRef: %s, maxReplicas: 3}`, name, meta, target)
}

// KEDAHPA returns KEDA's HPA of the ScaledObject and Deployment llm/NAME, with more conditions as
// ", {type: x}".
func KEDAHPA(name, conditions string) string {
	return HPAOf("keda-hpa-"+name, "{apiVersion: apps/v1, kind: Deployment, name: "+name+"}", "labels: {scaledobject.keda.sh/name: "+name+"}") +
		"\nstatus: {conditions: [{type: AbleToScale, status: \"True\"}" + conditions + "]}"
}

// Conditions of an HPA that does not scale, to add to those of KEDAHPA.
const (
	FailingMetric     = `, {type: ScalingActive, status: "False", reason: FailedGetExternalMetric, message: "unable to get external metric llm/s0-wva: connection refused"}`
	AmbiguousSelector = `, {type: ScalingActive, status: "False", reason: AmbiguousSelector, message: "pods by selector app=llm are controlled by multiple HPAs: [llm/other llm/keda-hpa-a]"}`
)

// Model are annotations that declare a dry-run variant, as a line of metadata.
const Model = "annotations: {wva.dev/modelID: m}"

// AnnotatedDeployment returns the Deployment llm/NAME with further lines of its metadata.
func AnnotatedDeployment(name, meta string) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: %s, namespace: llm, creationTimestamp: "2026-01-01T00:00:00Z", %s}
spec:
  replicas: 3
  template: {spec: {nodeSelector: {nvidia.com/gpu.product: NVIDIA-L4}, containers: [{name: e, resources: {limits: {nvidia.com/gpu: 2}}}]}}`, name, meta)
}

// OtherObject returns the ScaledObject llm/NAME of a target, with a trigger of another scaler.
func OtherObject(name, target, meta string) string {
	return fmt.Sprintf(`apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: %s, namespace: llm, creationTimestamp: "2026-01-01T00:00:00Z", %s}
spec:
  scaleTargetRef: {name: %s}
  minReplicaCount: 2
  maxReplicaCount: 9
  triggers: [{type: prometheus, metadata: {query: up}}]`, name, meta, target)
}

// AsJob returns a ScaledObject as a ScaledJob.
func AsJob(manifest string) string {
	return strings.Replace(manifest, "kind: ScaledObject", "kind: ScaledJob", 1)
}

// L4 returns a node with GPUs of that type.
func L4(name string) string { return Node(name, "NVIDIA-L4", "") }
