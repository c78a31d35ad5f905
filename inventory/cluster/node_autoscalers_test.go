package cluster

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	gpuNodePool = `apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: gpu}
spec: {limits: {nvidia.com/gpu: 12}, template: {metadata: {labels: {nvidia.com/gpu.product: NVIDIA-L4}}, spec: {requirements: []}}}
status: {resources: {nvidia.com/gpu: 4}}`
	backsOff = `apiVersion: v1
kind: ConfigMap
metadata: {name: cluster-autoscaler-status, namespace: kube-system}
data: {status: "nodeGroups: [{name: other, health: {cloudProviderTarget: 0, maxSize: 3}, scaleUp: {status: NoActivity}}]"}`
)

var nodePoolKind = servedKind{"karpenter.sh", "v1", "nodepools", "NodePool", false, false}

// supply returns how the only pool grows.
func (w *world) supply() string {
	pool := w.Tables().Pools[0]
	switch {
	case !pool.Elastic:
		return "nodes"
	case pool.Adds > 0 || pool.BacksOff:
		return pool.LimitedBy
	}
	return "elastic"
}

func TestNodeAutoscalersAreSeenWhenTheyAreInstalled(t *testing.T) {
	inCluster(t, Options{}, chat(2), func(w *world) {
		require.Equal(t, "nodes", w.supply(), "none is installed")
		require.Empty(t, w.problems())
		w.api.apply(backsOff)
		w.settle()
		require.Equal(t, "elastic", w.supply(), "a node group without nodes may have any type")
		w.api.apply(strings.Replace(backsOff, "NoActivity", "Backoff", 1))
		w.settle()
		require.Equal(t, "node group other, which backs off", w.supply())
		w.api.apply(strings.NewReplacer("cluster-autoscaler-status", "another").Replace(backsOff))
		w.settle()
		require.Equal(t, "node group other, which backs off", w.supply(), "a ConfigMap of another name is not watched")
		w.api.remove("configmaps kube-system/cluster-autoscaler-status")
		w.settle()
		require.Equal(t, "nodes", w.supply())
		w.api.serve(nodePoolKind)
		w.api.apply(gpuNodePool)
		w.pass(optionalRetry + time.Second)
		require.Equal(t, "NodePool gpu", w.supply())
		require.Empty(t, w.problems())
		w.api.remove("nodepools.karpenter.sh /gpu")
		w.settle()
		require.Equal(t, "nodes", w.supply())
	})
}

// An object that cannot be read is not known, and no node autoscaler is not the same.
func TestPoolsAreElasticWhileNodeAutoscalersCannotBeRead(t *testing.T) {
	for _, resource := range []string{"nodepools.karpenter.sh", "configmaps"} {
		t.Run(resource, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, Options{})
				w.api.serve(nodePoolKind)
				w.api.apply(chat(2)...)
				w.api.denyReading(resource, http.StatusForbidden)
				w.run()
				w.settle()
				require.True(t, w.isSynced())
				require.Equal(t, "elastic", w.supply())
				require.Contains(t, w.problems(), "list on "+resource)
				require.Contains(t, w.problems(), "each accelerator type counts as elastic")
				w.api.denyReading(resource, 0)
				w.pass(time.Minute)
				require.Equal(t, "nodes", w.supply())
				require.Empty(t, w.problems())
			})
		})
	}
}

func TestNodePoolThatCannotBeDecodedIsNotKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.api.serve(nodePoolKind)
		w.api.apply(chat(2)...)
		w.api.apply(strings.Replace(gpuNodePool, "nvidia.com/gpu: 12", "nvidia.com/gpu: 1e1.5", 1))
		w.run()
		w.settle()
		require.Equal(t, "elastic", w.supply())
		require.Contains(t, w.problems(), "NodePool gpu")
		w.api.apply(gpuNodePool)
		w.settle()
		require.Equal(t, "NodePool gpu", w.supply())
		require.Empty(t, w.problems())
	})
}

func TestNodePoolsThatWereNotServedAndAreForbiddenAreNotKnown(t *testing.T) {
	inCluster(t, Options{}, chat(2), func(w *world) {
		require.Equal(t, "nodes", w.supply())
		w.api.serve(nodePoolKind)
		w.api.denyReading("nodepools.karpenter.sh", http.StatusForbidden)
		w.pass(2 * optionalRetry)
		require.Equal(t, "elastic", w.supply())
		require.Contains(t, w.problems(), "each accelerator type counts as elastic")
	})
}

func TestNodeAutoscalersStayKnownInAnOutage(t *testing.T) {
	inCluster(t, Options{}, chat(2), func(w *world) {
		require.Equal(t, "nodes", w.supply())
		w.api.fail(connectionRefused())
		w.pass(5 * time.Minute)
		require.Equal(t, "nodes", w.supply(), "NodePools were not served before")
		w.api.fail(nil)
		w.pass(time.Minute)
		require.Equal(t, "nodes", w.supply())
		require.Empty(t, w.problems())
	})
	inCluster(t, Options{}, append(chat(2), backsOff), func(w *world) {
		w.api.fail(connectionRefused())
		w.pass(5 * time.Minute)
		require.Equal(t, "elastic", w.supply(), "the last state is used")
	})
}

func TestProblemsOfNodeAutoscalersAreNoneWithoutNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.api.apply(chat(2)...)
		for _, resource := range []string{"nodes", "configmaps"} {
			w.api.denyReading(resource, http.StatusForbidden)
		}
		w.run()
		w.settle()
		require.Empty(t, w.Tables().Pools)
		require.Contains(t, w.problems(), "watch of nodes")
		require.NotContains(t, w.problems(), "configmaps")
	})
}
