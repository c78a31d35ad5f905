package cluster

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/inventory"
	"github.com/wva-project/wva/inventory/manifesttest"
)

const (
	gpuCeiling = `apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityQuota
metadata: {name: gpu-ceiling}
spec: {selector: {matchLabels: {cloud.google.com/gke-nodepool: l4}}, limits: {resources: {cpu: 64}}}
status: {used: {resources: {cpu: 32}}}`
	ofGroup = "node group gke-l4-1"
)

func capacityQuotaKind(version string) servedKind {
	return servedKind{"autoscaling.x-k8s.io", version, "capacityquotas", "CapacityQuota", false, false}
}

// groupOfL4 returns a node of 32 processors, and its node group, which may have two more.
func groupOfL4() []string {
	node := strings.Replace(manifesttest.L4("node-a"), "nvidia.com/gpu.product:", "cloud.google.com/gke-nodepool: l4, nvidia.com/gpu.product:", 1)
	node = strings.Replace(node, "status: {", "status: {capacity: {cpu: 32, memory: 256Gi, pods: 110}, ", 1)
	return []string{node, `apiVersion: v1
kind: ConfigMap
metadata: {name: cluster-autoscaler-status, namespace: kube-system}
data: {status: "nodeGroups: [{name: gke-l4-1, health: {maxSize: 3}, scaleUp: {status: NoActivity}}]"}`}
}

func TestCapacityQuotasAreSeenInAnyVersion(t *testing.T) {
	for _, version := range []string{"v1beta1", "v1alpha1", "v1"} {
		t.Run(version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, Options{})
				w.api.serve(capacityQuotaKind(version))
				w.api.apply(append(chat(2), groupOfL4()...)...)
				w.api.apply(strings.Replace(gpuCeiling, "v1beta1", version, 1))
				w.run()
				w.settle()
				require.True(t, w.isSynced())
				require.Equal(t, "CapacityQuota gpu-ceiling", w.supply(), "one node of 32 processors more")
				require.Empty(t, w.problems())
			})
		})
	}
}

func TestCapacityQuotasAreFollowed(t *testing.T) {
	inCluster(t, Options{}, append(chat(2), groupOfL4()...), func(w *world) {
		require.Equal(t, ofGroup, w.supply(), "the API server does not serve quotas")
		require.Empty(t, w.problems())
		w.api.serve(capacityQuotaKind("v1beta1"))
		w.api.apply(gpuCeiling)
		w.pass(optionalRetry + time.Second)
		require.Equal(t, "CapacityQuota gpu-ceiling", w.supply())
		w.causes()
		w.api.apply(strings.Replace(gpuCeiling, "used: {resources: {cpu: 32}}", "used: {resources: {cpu: 64}}", 1))
		w.settle()
		require.Empty(t, w.causes(), "the use is not read")
		w.api.apply(strings.Replace(gpuCeiling, "cpu: 64", "cpu: 640", 1))
		w.settle()
		require.Equal(t, "node", w.causes())
		require.Equal(t, ofGroup, w.supply())
		w.api.apply(strings.Replace(gpuCeiling, "cpu: 64", "cpu: 63", 1))
		w.settle()
		require.Equal(t, "nodes", w.supply())
		w.api.apply(strings.Replace(gpuCeiling, "status: {", "status: {conditions: [{type: cluster-autoscaler.kubernetes.io/valid, status: 'False', reason: Invalid}], ", 1))
		w.settle()
		require.Equal(t, ofGroup, w.supply(), "it is not enforced")
		w.api.apply(gpuCeiling)
		w.settle()
		require.Equal(t, "CapacityQuota gpu-ceiling", w.supply())
		w.api.remove("capacityquotas.autoscaling.x-k8s.io /gpu-ceiling")
		w.settle()
		require.Equal(t, ofGroup, w.supply())
		require.Empty(t, w.problems())
	})
}

// A quota takes nodes away that a node group might add: while it is not known, the group's largest
// size is still a limit.
func TestNodeGroupsKeepTheirLimitsWhileCapacityQuotasCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.api.serve(capacityQuotaKind("v1beta1"))
		w.api.apply(append(append(chat(2), groupOfL4()...), gpuCeiling)...)
		w.api.denyReading("capacityquotas.autoscaling.x-k8s.io", http.StatusForbidden)
		w.run()
		w.settle()
		require.True(t, w.isSynced())
		require.Equal(t, ofGroup, w.supply())
		require.Contains(t, w.problems(), "list on capacityquotas.autoscaling.x-k8s.io")
		require.Contains(t, w.problems(), capacityQuotas.without)
		w.api.remove("configmaps kube-system/cluster-autoscaler-status")
		w.settle()
		require.Empty(t, w.problems(), "without node groups it limits nothing")
		w.api.denyReading("capacityquotas.autoscaling.x-k8s.io", 0)
		w.api.apply(groupOfL4()...)
		w.pass(time.Minute)
		require.Equal(t, "CapacityQuota gpu-ceiling", w.supply())
		require.Empty(t, w.problems())
		w.api.fail(connectionRefused())
		w.pass(5 * time.Minute)
		require.Equal(t, "CapacityQuota gpu-ceiling", w.supply(), "the last state is used")
	})
}

func TestCapacityQuotaThatCannotBeDecodedIsAProblem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.api.serve(capacityQuotaKind("v1beta1"))
		w.api.apply(append(chat(2), groupOfL4()...)...)
		w.api.apply(strings.Replace(gpuCeiling, "matchLabels: {", "matchExpressions: [{key: x, operator: Maybe}], matchLabels: {", 1))
		w.api.apply(strings.NewReplacer("gpu-ceiling", "other", "cpu: 64", "nodes: 2").Replace(gpuCeiling))
		w.run()
		w.settle()
		require.Equal(t, "CapacityQuota other", w.supply(), "others count")
		require.Contains(t, w.problems(), `CapacityQuota gpu-ceiling: spec.selector: "Maybe" is not a valid label selector operator`)
		w.api.apply(gpuCeiling)
		w.settle()
		require.Empty(t, w.problems())
	})
}

// TestMasksKeepTheFieldsOfQuotasOfNodes compares the tables of whole objects with those of the
// fields that are kept.
func TestMasksKeepTheFieldsOfQuotasOfNodes(t *testing.T) {
	for _, limits := range []string{"cpu: 64", "memory: 512Gi", "nodes: 2", "nvidia.com/gpu: 8"} {
		manifests := append(groupOfL4(), strings.Replace(gpuCeiling, "cpu: 64", limits, 1))
		var kept inventory.Objects
		for _, u := range manifesttest.Decode(manifests...) {
			mask := map[string]fieldMask{"Node": nodes.fields, "ConfigMap": autoscalerStatus.fields, "CapacityQuota": capacityQuotas.fields}[u.GetKind()]
			strip(u, mask)
			object, err := inventory.Decode(u)
			require.NoError(t, err)
			kept.Append(object)
		}
		whole := objectsOf(t, manifests...).Tables(inventory.Options{})
		require.Equal(t, "CapacityQuota gpu-ceiling", whole.Pools[0].LimitedBy, limits)
		require.Equal(t, whole, kept.Tables(inventory.Options{}))
	}
}
