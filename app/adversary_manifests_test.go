package app

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// manifests returns the objects of the tenants as YAML: the nodes belong to nobody.
func (a *arena) manifests(tenant string) string {
	var documents []string
	add := func(format string, arguments ...any) {
		documents = append(documents, fmt.Sprintf(format, arguments...))
	}
	if tenant == "" {
		for _, node := range a.nodes {
			add(`apiVersion: v1
kind: Node
metadata: {name: %s, labels: {nvidia.com/gpu.product: %s}}
status: {allocatable: {nvidia.com/gpu: %d}, conditions: [{type: Ready, status: "True"}]}
`, node.name, node.product, node.gpus)
		}
	}
	for _, o := range a.objects {
		if o.namespace == tenant && !o.deleted {
			add("%s", o.yaml())
		}
	}
	for _, w := range a.workloads {
		if w.namespace == tenant && !w.deleted {
			add("%s", w.yaml())
		}
	}
	for p := range a.allPods() {
		if p.namespace == tenant {
			add("%s", p.yaml(a.now))
		}
	}
	if tenant == hostileTenant {
		documents = append(documents, a.extra...)
	}
	return strings.Join(documents, "---\n")
}

func (o *scaled) yaml() string {
	var b strings.Builder
	line := func(format string, arguments ...any) { fmt.Fprintf(&b, format+"\n", arguments...) }
	line("apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata:\n  name: %s\n  namespace: %s\n  creationTimestamp: %q", o.name, o.namespace, o.created.Format(time.RFC3339))
	line("  annotations: %s", flow(o.annotations))
	line("spec:\n  scaleTargetRef: {%sname: %s}", o.kindOfTarget(), o.target)
	for _, field := range [][2]string{{"minReplicaCount", o.min}, {"maxReplicaCount", o.max}, {"idleReplicaCount", o.idle}} {
		if field[1] != "" {
			line("  %s: %s", field[0], field[1])
		}
	}
	line("  triggers:\n  - type: %s\n    metadata: %s", cmp.Or(o.trigger, "external-push"), flow(o.metadata))
	return b.String()
}

func (o *scaled) kindOfTarget() string {
	if strings.HasSuffix(o.target, "-set") {
		return "apiVersion: apps/v1, kind: StatefulSet, "
	}
	return ""
}

// flow returns a map of texts in YAML's flow style, sorted.
func flow(m map[string]string) string {
	var pairs []string
	for key, value := range m {
		pairs = append(pairs, fmt.Sprintf("%s: %s", quoted(key), quoted(value)))
	}
	slices.Sort(pairs)
	return "{" + strings.Join(pairs, ", ") + "}"
}

// quoted returns a text in YAML's double quotes.
func quoted(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r >= 0x7f:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String() + `"`
}

func (w *workload) yaml() string {
	kind := "Deployment"
	if w.stateful {
		kind = "StatefulSet"
	}
	arguments := make([]string, len(w.args))
	for i, argument := range w.args {
		arguments[i] = quoted(argument)
	}
	return fmt.Sprintf(`apiVersion: apps/v1
kind: %s
metadata: {name: %s, namespace: %s}
spec:
  replicas: %d
  selector: {matchLabels: {app: %[2]s}}
  template:
    metadata: {labels: {app: %[2]s}}
    spec:
      nodeSelector: {nvidia.com/gpu.product: %[5]s}
      containers: [{name: engine, args: [%[6]s], resources: {limits: {nvidia.com/gpu: %[7]d}}}]
`, kind, w.name, w.namespace, w.replicas, w.product, strings.Join(arguments, ", "), w.gpus)
}

func (p *arenaPod) yaml(now time.Time) string {
	var b strings.Builder
	line := func(format string, arguments ...any) { fmt.Fprintf(&b, format+"\n", arguments...) }
	line("apiVersion: v1\nkind: Pod\nmetadata:\n  name: %s\n  namespace: %s\n  creationTimestamp: %q", p.name, p.namespace, p.created.Format(time.RFC3339))
	line("  labels: {app: %s, pod-template-hash: 5f}", cmp.Or(p.label, p.owner, "none"))
	switch {
	case p.owner == "":
	case p.stateful:
		line("  ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: %s, controller: true, uid: a}]", p.owner)
	default:
		line("  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: %s-5f, controller: true, uid: a}]", p.owner)
	}
	if p.terminating() {
		line("  deletionTimestamp: %q", p.gone.Format(time.RFC3339))
	}
	line("spec:")
	if p.node != "" {
		line("  nodeName: %s", p.node)
	}
	line("  containers: [{name: engine, resources: {limits: {nvidia.com/gpu: %d}, requests: {nvidia.com/gpu: %[1]d}}}]", p.gpus)
	switch {
	case p.failed:
		line("status: {phase: Failed, reason: OutOfnvidia.com/gpu}")
	case p.isReady(now) && !p.terminating():
		line("status: {phase: Running, conditions: [{type: Ready, status: \"True\", lastTransitionTime: %q}]}", p.ready.Format(time.RFC3339))
	case p.node == "":
		line("status: {phase: Pending, conditions: [{type: PodScheduled, status: \"False\", reason: Unschedulable}]}")
	default:
		line("status: {phase: Pending}")
	}
	return b.String()
}
