package inventory

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// Renderings of the Helm chart with the roles for all namespaces, and for some.
const (
	deployedEverywhere   = "../deploy/wva.yaml"
	deployedInNamespaces = "../e2e/chart/testdata/namespaces.yaml"
)

// granted returns the permissions in the roles of a file, as "verb resource.group", each once.
func granted(t *testing.T, file string) []string {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	var allowed []string
	for document := range strings.SplitSeq(string(data), "\n---\n") {
		var role rbacv1.ClusterRole
		require.NoError(t, yaml.Unmarshal([]byte(document), &role))
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					allowed = append(allowed, verb+" "+schema.GroupResource{Group: rule.APIGroups[0], Resource: resource}.String())
				}
			}
			require.Len(t, rule.APIGroups, 1)
		}
	}
	slices.Sort(allowed)
	require.Equal(t, slices.Compact(slices.Clone(allowed)), allowed, "nothing twice")
	return allowed
}

func TestRolesAllowToWriteNothingButEventsAndTheLease(t *testing.T) {
	for _, file := range []string{deployedEverywhere, deployedInNamespaces} {
		var writes []string
		for _, allowed := range granted(t, file) {
			if verb, _, _ := strings.Cut(allowed, " "); !slices.Contains([]string{"get", "list", "watch"}, verb) {
				writes = append(writes, allowed)
			}
		}
		require.Equal(t, []string{"create events", "create leases.coordination.k8s.io", "patch events", "update leases.coordination.k8s.io"}, writes, file)
	}
}

func TestRolesAllowToWatchTheWatchedResources(t *testing.T) {
	cluster := granted(t, deployedEverywhere)
	for _, resource := range []schema.GroupVersionResource{
		scaledObjectsResource(), scaledJobsResource(), podsResource(), nodesResource(), namespacesResource(), autoscalersResource(),
	} {
		require.Contains(t, cluster, "list "+resource.GroupResource().String())
		require.Contains(t, cluster, "watch "+resource.GroupResource().String())
	}
}

func TestNamespacedRolesAllowTheSameButForClusterResources(t *testing.T) {
	cluster, namespaced := granted(t, deployedEverywhere), granted(t, deployedInNamespaces)
	require.Subset(t, cluster, namespaced)
	for _, allowed := range cluster {
		_, resource, _ := strings.Cut(allowed, " ")
		if !slices.Contains(namespaced, allowed) {
			require.Contains(t, []string{"nodes", "namespaces", "customresourcedefinitions.apiextensions.k8s.io"}, resource)
		}
	}
}
