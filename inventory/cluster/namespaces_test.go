package cluster

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/wva-project/wva/inventory/manifesttest"
)

// in moves manifests of namespace llm to another namespace.
func in(namespace string, manifests ...string) []string {
	moved := make([]string, len(manifests))
	for i, manifest := range manifests {
		moved[i] = strings.ReplaceAll(manifest, "namespace: llm", "namespace: "+namespace)
	}
	return moved
}

func namespace(name, labels string) string {
	return "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + name + ", labels: {" + labels + "}}"
}

// gpuPod is a pod with two of node-a's GPUs allocated.
func gpuPod() string {
	return manifesttest.Pod{
		Name: "holder", Spec: "nodeName: node-a\n  containers: [{name: c, resources: {limits: {nvidia.com/gpu: 2, cpu: 4}}}]",
	}.String()
}

func TestExcludedNamespaceIsNotInTheTablesButItsAcceleratorsAreAllocated(t *testing.T) {
	manifests := append(chat(2), in("staging", append(chat(9), gpuPod())...)...)
	inCluster(t, Options{ExcludedNamespaces: []string{"staging"}}, manifests, func(w *world) {
		require.Equal(t, "llm/chat", w.variants())
		require.Equal(t, "chat=2/2", w.workloads())
		require.Equal(t, 2, w.Tables().Pools[0].Nodes[0].Allocated)
		require.Empty(t, w.problems())
	})
}

func TestNamespacesAreSelectedByTheirLabels(t *testing.T) {
	selector, err := labels.Parse("wva=on")
	require.NoError(t, err)
	manifests := append(chat(2), append(in("staging", chat(9)...), namespace("llm", `wva: "on"`), namespace("staging", ""))...)
	inCluster(t, Options{NamespaceSelector: selector}, manifests, func(w *world) {
		require.Equal(t, "llm/chat", w.variants())
		w.causes()
		w.api.apply(namespace("staging", `wva: "on"`), namespace("llm", ""))
		w.settle()
		require.Equal(t, "staging/chat", w.variants())
		require.Equal(t, "chat=9/2", w.workloads())
		require.Equal(t, "namespace", w.causes())
	})
}

func TestUnreadableNamespacesSelectNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{NamespaceSelector: labels.Everything()})
		w.api.deny("list namespaces", 403)
		w.api.deny("watch namespaces", 403)
		w.api.apply(chat(2)...)
		w.run()
		w.settle()
		require.True(t, w.isSynced())
		require.Empty(t, w.variants())
		require.Contains(t, w.problems(), "list on namespaces is forbidden")
	})
}

func TestNamedNamespacesNeedNoRolesElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{Namespaces: []string{"one", "two"}})
		for _, resource := range []string{"scaledobjects.keda.sh", "scaledjobs.keda.sh", "horizontalpodautoscalers.autoscaling", "pods", "nodes", "deployments.apps"} {
			w.api.denyOutside(resource, "one", "two")
		}
		w.api.apply(in("one", chat(1)...)...)
		w.api.apply(in("two", chat(2)...)...)
		w.api.apply(in("three", chat(3)...)...)
		w.run()
		w.settle()
		require.True(t, w.isSynced())
		require.Equal(t, "one/chat two/chat", w.variants())
		require.Equal(t, "chat=1/2 chat=2/2", w.workloads())
		require.Nil(t, w.Tables().Pools)
		require.Len(t, w.Tables().Problems, 2)
		require.Contains(t, w.problems(), "watch of nodes: list on nodes is forbidden")
		require.Contains(t, w.problems(), "watch of pods: list on pods in all namespaces is forbidden, so the accelerators allocated to other pods")
		w.api.apply(in("two", manifesttest.Deployment("chat", 4, "image: vllm"))...)
		w.settle()
		require.Equal(t, "chat=1/2 chat=4/2", w.workloads())
	})
}

func TestNamedNamespacesShowPoolsIfAllPodsMayBeRead(t *testing.T) {
	manifests := append(in("one", chat(1)...), in("three", append(chat(3), gpuPod())...)...)
	inCluster(t, Options{Namespaces: []string{"one"}}, manifests, func(w *world) {
		require.Equal(t, "one/chat", w.variants())
		require.Equal(t, "chat=1/2", w.workloads())
		require.Equal(t, 2, w.Tables().Pools[0].Nodes[0].Allocated)
		require.Zero(t, w.api.asked("watch scaledobjects.keda.sh in three"))
		require.Empty(t, w.problems())
	})
}

func TestForbiddenNamespaceIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{Namespaces: []string{"one", "two"}})
		w.api.denyOutside("deployments.apps", "one")
		w.api.apply(in("one", chat(1)...)...)
		w.api.apply(in("two", chat(2)...)...)
		w.run()
		w.settle()
		require.Equal(t, "one/chat two/chat", w.variants())
		require.Equal(t, "chat=1/2", w.workloads())
		require.Contains(t, w.problems(), "list on deployments.apps in namespace two is forbidden")
	})
}

func TestMetricsShowTheStateOfWatches(t *testing.T) {
	registry := prometheus.NewRegistry()
	inCluster(t, Options{Registerer: registry}, chat(2), func(w *world) {
		require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP wva_inventory_objects Objects of a resource that are known.
# TYPE wva_inventory_objects gauge
wva_inventory_objects{resource="capacityquotas.autoscaling.x-k8s.io"} 0
wva_inventory_objects{resource="clusterqueues.kueue.x-k8s.io"} 0
wva_inventory_objects{resource="cohorts.kueue.x-k8s.io"} 0
wva_inventory_objects{resource="configmaps"} 0
wva_inventory_objects{resource="deployments.apps"} 1
wva_inventory_objects{resource="deviceclasses.resource.k8s.io"} 0
wva_inventory_objects{resource="devicetaintrules.resource.k8s.io"} 0
wva_inventory_objects{resource="horizontalpodautoscalers.autoscaling"} 1
wva_inventory_objects{resource="localqueues.kueue.x-k8s.io"} 0
wva_inventory_objects{resource="nodepools.karpenter.sh"} 0
wva_inventory_objects{resource="nodes"} 1
wva_inventory_objects{resource="pods"} 2
wva_inventory_objects{resource="resourceclaims.resource.k8s.io"} 0
wva_inventory_objects{resource="resourceclaimtemplates.resource.k8s.io"} 0
wva_inventory_objects{resource="resourceflavors.kueue.x-k8s.io"} 0
wva_inventory_objects{resource="resourcequotas"} 0
wva_inventory_objects{resource="resourceslices.resource.k8s.io"} 0
wva_inventory_objects{resource="scaledjobs.keda.sh"} 0
wva_inventory_objects{resource="scaledobjects.keda.sh"} 1
`), "wva_inventory_objects"))
		w.api.deny("watch pods", 403)
		w.api.deny("list pods", 403)
		w.pass(time.Minute)
		require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP wva_watch_failing 1 while a watch of a resource fails, else 0.
# TYPE wva_watch_failing gauge
wva_watch_failing{resource="capacityquotas.autoscaling.x-k8s.io"} 0
wva_watch_failing{resource="clusterqueues.kueue.x-k8s.io"} 0
wva_watch_failing{resource="cohorts.kueue.x-k8s.io"} 0
wva_watch_failing{resource="configmaps"} 0
wva_watch_failing{resource="deployments.apps"} 0
wva_watch_failing{resource="deviceclasses.resource.k8s.io"} 0
wva_watch_failing{resource="devicetaintrules.resource.k8s.io"} 0
wva_watch_failing{resource="horizontalpodautoscalers.autoscaling"} 0
wva_watch_failing{resource="localqueues.kueue.x-k8s.io"} 0
wva_watch_failing{resource="nodepools.karpenter.sh"} 0
wva_watch_failing{resource="nodes"} 0
wva_watch_failing{resource="pods"} 1
wva_watch_failing{resource="resourceclaims.resource.k8s.io"} 0
wva_watch_failing{resource="resourceclaimtemplates.resource.k8s.io"} 0
wva_watch_failing{resource="resourceflavors.kueue.x-k8s.io"} 0
wva_watch_failing{resource="resourcequotas"} 0
wva_watch_failing{resource="resourceslices.resource.k8s.io"} 0
wva_watch_failing{resource="scaledjobs.keda.sh"} 0
wva_watch_failing{resource="scaledobjects.keda.sh"} 0
`), "wva_watch_failing"))
		require.Greater(t, testutil.ToFloat64(w.metrics.errors.WithLabelValues("pods")), 2.0)
		w.api.remove("scaledobjects.keda.sh llm/chat")
		w.settle()
		count, err := testutil.GatherAndCount(registry, "wva_watch_errors_total", "wva_watch_failing")
		require.NoError(t, err)
		require.Equal(t, 36, count, "a resource that is not watched any more has no series")
	})
}

// TestRowsOfATenantNameNoObjectOfAnother guards the texts that reach the owner of a variant, by
// events and by errors of RPCs. Another tenant's objects occur in problems only, which are logged.
func TestRowsOfATenantNameNoObjectOfAnother(t *testing.T) {
	broken := func(name string) []string {
		return []string{
			manifesttest.Scaled(name, "role: cook"), manifesttest.ScaledTo(name+"-again", "{name: "+name+"}"), manifesttest.ScaledTo(name+"-gone", "{kind: StatefulSet, name: x}"),
			manifesttest.Deployment(name, 2, "image: x") + "\nstatus: {conditions: [{type: ReplicaFailure, status: \"True\", reason: FailedCreate, message: exceeded quota}]}",
			manifesttest.HPAOf(name+"-cpu", "{apiVersion: apps/v1, kind: Deployment, name: "+name+"}", ""), manifesttest.KEDAHPA(name, strings.ReplaceAll(manifesttest.AmbiguousSelector, "keda-hpa-a", "keda-hpa-"+name)),
			manifesttest.AnnotatedDeployment(name+"-dry", manifesttest.Model), manifesttest.OtherObject(name+"-dry", name+"-dry", manifesttest.Model),
		}
	}
	for name, options := range map[string]Options{
		"all namespaces": {MaxAge: time.Minute, DryRun: true}, "two": {MaxAge: time.Minute, DryRun: true, Namespaces: []string{"tenant-a", "tenant-b"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, options)
				w.api.apply(in("tenant-a", broken("mine")...)...)
				w.api.apply(in("tenant-b", broken("theirs")...)...)
				w.run()
				w.settle()
				w.api.deny("watch deployments.apps", 500)
				w.api.deny("list deployments.apps", 500)
				w.pass(time.Hour)
				seen := 0
				for _, v := range w.Tables().Variants {
					if v.ID.Namespace == "tenant-a" {
						seen++
						requireNoneOf(t, v)
					}
				}
				for _, row := range w.Tables().Workloads {
					if row.ID.Namespace == "tenant-a" {
						seen++
						requireNoneOf(t, row)
					}
				}
				require.Equal(t, 6, seen)
				require.Contains(t, w.problems(), "theirs", "the log names them")
			})
		})
	}
}

// requireNoneOf fails if a row of tenant-a names an object of tenant-b.
func requireNoneOf(t *testing.T, row any) {
	t.Helper()
	data, err := json.Marshal(row)
	require.NoError(t, err)
	require.Contains(t, string(data), "mine")
	require.NotContains(t, string(data), "theirs")
	require.NotContains(t, string(data), "tenant-b")
}
