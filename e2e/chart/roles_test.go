package chart

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
)

// granted returns the permissions of roles as "verb resource.group name", sorted.
func granted(t *testing.T, roles objects) []string {
	t.Helper()
	var allowed []string
	for _, o := range roles {
		// a Role has rules of the same form
		for _, rule := range as[rbacv1.ClusterRole](t, o).Rules {
			for _, verb := range rule.Verbs {
				for _, group := range rule.APIGroups {
					for _, resource := range rule.Resources {
						permission := strings.TrimSuffix(verb+" "+resource+"."+group, ".")
						allowed = append(allowed, strings.TrimSpace(permission+" "+strings.Join(rule.ResourceNames, " ")))
					}
				}
			}
		}
	}
	slices.Sort(allowed)
	require.Equal(t, slices.Compact(slices.Clone(allowed)), allowed, "nothing twice")
	return allowed
}

// inNamespace are the Roles of one namespace, but for those of the lease and of ConfigMaps.
func (all objects) inNamespace(name string) objects {
	return slices.DeleteFunc(all.all("Role"), func(o object) bool {
		return o.at("metadata", "namespace") != name || strings.HasSuffix(o.name(), "-lease") || strings.HasSuffix(o.name(), "-config")
	})
}

func TestRolesAllowToChangeNothingButEventsAndTheLease(t *testing.T) {
	withValues(t, func(t *testing.T, file string) {
		all := render(t, "--values", file)
		var writes []string
		for _, roles := range []objects{all.all("ClusterRole"), all.all("Role")} {
			for _, role := range roles {
				for _, permission := range granted(t, objects{role}) {
					verb, _, _ := strings.Cut(permission, " ")
					if !slices.Contains([]string{"get", "list", "watch"}, verb) {
						writes = append(writes, permission)
					}
				}
			}
		}
		slices.Sort(writes)
		writes = slices.Compact(writes)
		if strings.HasSuffix(file, "no-rbac.yaml") {
			require.Empty(t, writes)
			return
		}
		require.Equal(t, []string{"create events", "create leases.coordination.k8s.io", "patch events", "update leases.coordination.k8s.io wva-events"}, writes)
	})
}

func TestRolesInNamespacesAllowNothingElsewhere(t *testing.T) {
	all := render(t, "--set", "watchNamespaces={llm,chat}")
	require.Empty(t, all.all("ClusterRole"))
	require.Empty(t, all.all("ClusterRoleBinding"))
	require.Len(t, all.all("Role"), 3)
	everywhere := granted(t, render(t).all("ClusterRole"))
	for _, name := range []string{"llm", "chat"} {
		inside := granted(t, all.inNamespace(name))
		require.Subset(t, everywhere, inside)
		for _, permission := range everywhere {
			_, resource, _ := strings.Cut(permission, " ")
			if !slices.Contains(inside, permission) {
				require.Contains(t, []string{
					"nodes", "namespaces", "customresourcedefinitions.apiextensions.k8s.io", "nodepools.karpenter.sh", "configmaps cluster-autoscaler-status",
					"capacityquotas.autoscaling.x-k8s.io",
					"resourceslices.resource.k8s.io", "deviceclasses.resource.k8s.io", "devicetaintrules.resource.k8s.io",
					"clusterqueues.kueue.x-k8s.io", "cohorts.kueue.x-k8s.io", "resourceflavors.kueue.x-k8s.io",
				}, resource)
			}
		}
	}
}

func TestClusterReaderAddsTheRest(t *testing.T) {
	all := render(t, "--set", "watchNamespaces={llm},rbac.clusterReader=true")
	together := append(granted(t, all.inNamespace("llm")), granted(t, all.all("ClusterRole"))...)
	slices.Sort(together)
	require.Equal(t, granted(t, render(t).all("ClusterRole")), slices.Compact(together))
}

// Whoever may list ConfigMaps reads all of them, so that is turned on by a value, and for the
// release's namespace alone unless tenants are to have their own.
func TestConfigMapsAreReadableIfTheyAreTurnedOn(t *testing.T) {
	isRead := func(permission string) bool {
		return permission == "list configmaps" || permission == "watch configmaps"
	}
	everywhere := func(all objects) bool { return slices.ContainsFunc(granted(t, all.all("ClusterRole")), isRead) }
	own := func(all objects) (namespaces []any) {
		for _, role := range all.all("Role") {
			if slices.ContainsFunc(granted(t, objects{role}), isRead) {
				namespaces = append(namespaces, role.at("metadata", "namespace"))
			}
		}
		return namespaces
	}
	for _, test := range []struct {
		values     string
		everywhere bool
		namespaces []any
	}{
		{"configMaps=off", false, nil},
		{"configMaps=own", false, []any{namespace}},
		{"configMaps=all", true, []any{namespace}},
		{"configMaps=own,watchNamespaces={llm}", false, []any{namespace}},
		{"configMaps=all,watchNamespaces={llm}", false, []any{namespace, "llm"}},
		{"configMaps=all,rbac.create=false,serviceAccount.name=x", false, nil},
	} {
		all := render(t, "--set", test.values)
		require.Equal(t, test.everywhere, everywhere(all), test.values)
		require.ElementsMatch(t, test.namespaces, own(all), test.values)
	}
}

func TestScaleTargetsAreReadable(t *testing.T) {
	before := granted(t, render(t).all("ClusterRole"))
	after := granted(t, render(t, "--values", "testdata/values/scale-targets.yaml").all("ClusterRole"))
	more := slices.DeleteFunc(after, func(permission string) bool { return slices.Contains(before, permission) })
	require.Equal(t, []string{"get engines.serving.example.com", "list engines.serving.example.com", "watch engines.serving.example.com"}, more)
}

func TestBindingsNameTheServiceAccountOfThePods(t *testing.T) {
	withValues(t, func(t *testing.T, file string) {
		all := render(t, "--values", file)
		account := all.one(t, "Deployment").at("spec", "template", "spec", "serviceAccountName")
		for _, kind := range []string{"ClusterRoleBinding", "RoleBinding"} {
			for _, o := range all.all(kind) {
				binding := as[rbacv1.RoleBinding](t, o)
				require.Len(t, binding.Subjects, 1)
				require.Equal(t, account, binding.Subjects[0].Name)
				require.Equal(t, namespace, binding.Subjects[0].Namespace)
				all.named(t, binding.RoleRef.Kind, binding.RoleRef.Name)
			}
		}
		if strings.HasSuffix(file, "no-rbac.yaml") {
			require.Equal(t, "existing", account)
			return
		}
		require.Equal(t, account, all.one(t, "ServiceAccount").name())
	})
}
