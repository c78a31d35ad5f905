package cluster

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

// roleFile is a file with the roles of the server, and other objects.
type roleFile struct {
	path string
	// namespaced is true if the roles are for a server that watches some namespaces only.
	namespaced bool
}

// roleFiles are the files that have to allow the same as the table of resources says.
func roleFiles() []roleFile {
	return []roleFile{{"../../deploy/wva.yaml", false}, {"../../e2e/chart/testdata/namespaces.yaml", true}}
}

// granted returns the permissions in the roles of a file, as "verb resource.group", sorted.
func (f roleFile) granted(t *testing.T) []string {
	t.Helper()
	data, err := os.ReadFile(f.path)
	require.NoError(t, err)
	var allowed []string
	for document := range strings.SplitSeq("\n"+string(data), "\n---\n") {
		var role rbacv1.ClusterRole
		require.NoError(t, yaml.Unmarshal([]byte(document), &role))
		if role.Kind != "ClusterRole" && role.Kind != "Role" {
			continue
		}
		for _, rule := range role.Rules {
			require.Len(t, rule.APIGroups, 1)
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					allowed = append(allowed, verb+" "+schema.GroupResource{Group: rule.APIGroups[0], Resource: resource}.String())
				}
			}
		}
	}
	slices.Sort(allowed)
	return slices.Compact(allowed)
}

// needed returns the permissions that the server needs, and those that it may have besides.
func (f roleFile) needed() (needed, allowed []string) {
	scales := schema.GroupResource{Group: "*", Resource: "*/scale"}
	needed = []string{
		"get " + scales.String(),
		"create events", "patch events",
		"create leases.coordination.k8s.io", "get leases.coordination.k8s.io", "update leases.coordination.k8s.io",
	}
	if !f.namespaced { // those of further targets
		needed = append(needed, "get customresourcedefinitions.apiextensions.k8s.io")
	}
	for _, r := range resources {
		if r.labels != "" {
			continue // the ConfigMaps of configuration are off by default
		}
		if r == furtherTargets || (f.namespaced && (r.isClusterScoped || r == autoscalerStatus)) {
			continue // a further target needs a rule of its own
		}
		name := r.gvr.GroupResource().String()
		needed = append(needed, "list "+name, "watch "+name)
		allowed = append(allowed, "get "+name)
	}
	return needed, allowed
}

func TestRolesAllowToReadTheWatchedResourcesAndToWriteEventsAndTheLeaseOnly(t *testing.T) {
	for _, file := range roleFiles() {
		t.Run(file.path, func(t *testing.T) {
			needed, allowed := file.needed()
			granted := slices.DeleteFunc(file.granted(t), func(permission string) bool { return slices.Contains(allowed, permission) })
			require.ElementsMatch(t, needed, granted)
		})
	}
}
