package cluster

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// kueueKinds returns the kinds of Kueue in a version.
func kueueKinds(version string) []servedKind {
	return []servedKind{
		{"kueue.x-k8s.io", version, "clusterqueues", "ClusterQueue", false, false},
		{"kueue.x-k8s.io", version, "localqueues", "LocalQueue", true, false},
		{"kueue.x-k8s.io", version, "resourceflavors", "ResourceFlavor", false, false},
		{"kueue.x-k8s.io", version, "cohorts", "Cohort", false, false},
	}
}

// kueueObjects returns a workload whose pods a ClusterQueue admits.
func kueueObjects(version string) []string {
	objects := append(chat(2),
		"apiVersion: kueue.x-k8s.io/v1\nkind: LocalQueue\nmetadata: {name: team, namespace: llm}\nspec: {clusterQueue: team-a}",
		"apiVersion: kueue.x-k8s.io/v1\nkind: ResourceFlavor\nmetadata: {name: gpus}\nspec: {nodeLabels: {pool: gpus}}",
		"apiVersion: kueue.x-k8s.io/v1\nkind: Cohort\nmetadata: {name: all}\nspec: {parentName: company}",
		`apiVersion: kueue.x-k8s.io/v1
kind: ClusterQueue
metadata: {name: team-a}
spec: {cohort: all, resourceGroups: [{flavors: [{name: gpus, resources: [{name: pods, nominalQuota: 4, borrowingLimit: 2}]}]}]}
status: {flavorsUsage: [{name: gpus, resources: [{name: pods, total: 2}]}]}`,
	)
	for i, object := range objects {
		object = strings.Replace(object, "kueue.x-k8s.io/v1\n", "kueue.x-k8s.io/"+version+"\n", 1)
		if strings.Contains(object, "kind: Deployment") {
			object = strings.Replace(object, "template:", "template:\n    metadata: {labels: {app: chat, kueue.x-k8s.io/queue-name: team}}", 1)
		}
		objects[i] = object
	}
	return objects
}

func TestQuotasOfKueueAreSeenInAnyVersion(t *testing.T) {
	for _, version := range []string{"v1beta2", "v1beta1", "v1"} {
		t.Run(version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, Options{})
				w.api.serve(kueueKinds(version)...)
				w.api.apply(kueueObjects(version)...)
				w.run()
				w.settle()
				require.True(t, w.isSynced())
				quotas := w.Tables().Quotas
				require.Len(t, quotas, 1)
				require.Equal(t, "ClusterQueue team-a", quotas[0].Name)
				require.Equal(t, "pods of flavor gpus", quotas[0].Resource)
				require.Equal(t, []int{2, 6}, []int{quotas[0].Used, quotas[0].Hard}, "the cohort has a parent, so it may borrow 2")
				require.Empty(t, w.problems())
			})
		})
	}
}

func TestQuotasOfKueueAreSeenWhenItIsInstalled(t *testing.T) {
	inCluster(t, Options{}, chat(2), func(w *world) {
		require.Empty(t, w.Tables().Quotas)
		w.api.serve(kueueKinds("v1beta1")...)
		w.api.apply(kueueObjects("v1beta1")...)
		w.pass(optionalRetry + time.Second)
		require.Len(t, w.Tables().Quotas, 1)
		require.Empty(t, w.problems())
	})
}

func TestQuotasOfKueueThatMayNotBeReadAreAProblemBesideAQueue(t *testing.T) {
	for _, test := range []struct {
		name    string
		objects []string
		problem bool
	}{{"no queue", chat(2), false}, {"a queue", kueueObjects("v1beta2"), true}} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, Options{})
				w.api.serve(kueueKinds("v1beta2")...)
				w.api.apply(test.objects...)
				w.api.denyReading("clusterqueues.kueue.x-k8s.io", http.StatusForbidden)
				w.run()
				w.settle()
				require.True(t, w.isSynced())
				require.Empty(t, w.Tables().Quotas)
				require.Equal(t, test.problem, strings.Contains(w.problems(), "quotas of Kueue are not seen"), w.problems())
			})
		})
	}
}
