package cluster

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/wva-project/wva/inventory"
)

// labelled is a ConfigMap with configuration.
func labelled(namespace, name, text string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s, labels: {wva.dev/config: \"true\"}}\ndata: {k: %q}", name, namespace, text)
}

// configMaps returns the ConfigMaps in the tables as "namespace/name=text".
func (w *world) configMaps() string {
	var rows []string
	for _, m := range w.Tables().ConfigMaps {
		rows = append(rows, fmt.Sprintf("%s/%s=%s", m.Namespace, m.Name, m.Data["k"]))
	}
	return strings.Join(rows, " ")
}

func TestConfigMapsAreWatchedByTheirLabelOnly(t *testing.T) {
	manifests := []string{
		labelled("wva", "global", "a"), labelled("team-a", "own", "b"), labelled("secret", "own", "c"),
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other, namespace: wva}\ndata: {k: x}",
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: no, namespace: team-a, labels: {wva.dev/config: \"false\"}}\ndata: {k: x}",
	}
	for _, test := range []struct {
		name    string
		options Options
		want    string
	}{
		{"off", Options{}, ""},
		{"own", Options{ConfigNamespace: "wva"}, "wva/global=a"},
		{"all", Options{ConfigNamespace: "wva", TenantConfig: true}, "secret/own=c team-a/own=b wva/global=a"},
		{"excluded", Options{ConfigNamespace: "wva", TenantConfig: true, ExcludedNamespaces: []string{"secret", "wva"}}, "team-a/own=b wva/global=a"},
		{"some namespaces", Options{ConfigNamespace: "wva", TenantConfig: true, Namespaces: []string{"team-a", "wva"}}, "team-a/own=b wva/global=a"},
	} {
		t.Run(test.name, func(t *testing.T) {
			inCluster(t, test.options, manifests, func(w *world) {
				require.True(t, w.isSynced())
				require.Equal(t, test.want, w.configMaps())
				w.causes()
				w.api.apply(strings.Replace(manifests[3], "k: x", "k: y", 1))
				w.settle()
				require.Empty(t, w.causes(), "a ConfigMap without the label")
			})
		})
	}
}

func TestAChangeOfAConfigMapIsOneChange(t *testing.T) {
	inCluster(t, Options{ConfigNamespace: "wva", TenantConfig: true}, []string{labelled("wva", "global", "a")}, func(w *world) {
		w.causes()
		w.api.apply(labelled("wva", "global", "b"))
		w.settle()
		require.Equal(t, "wva/global=b", w.configMaps())
		require.Equal(t, "config", w.causes())
		w.api.remove("configmaps wva/global")
		w.settle()
		require.Empty(t, w.configMaps())
		require.Equal(t, "config", w.causes())
	})
}

func TestConfigMapsThatMayNotBeReadAreAProblemAndBlockNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{ConfigNamespace: "wva", TenantConfig: true})
		w.api.apply(labelled("wva", "global", "a"), labelled("team-a", "own", "b"))
		w.api.denyOutside("configmaps", "wva")
		w.run()
		w.settle()
		require.True(t, w.isSynced())
		require.Equal(t, "wva/global=a", w.configMaps(), "those of the server's namespace are read all the same")
		require.Contains(t, w.problems(), "configmaps is forbidden since")
		require.Contains(t, w.problems(), "the configuration of namespaces is that of the administrator")
	})
}

// A plan without the maxima of namespaces would start replicas that they forbid.
func TestTheFirstDecisionAwaitsTheConfigMapsOfTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{ConfigNamespace: "wva"})
		w.api.apply(labelled("wva", "global", "a"))
		w.api.denyReading("configmaps", http.StatusInternalServerError)
		w.run()
		w.pass(3 * firstReadLimit)
		require.False(t, w.isSynced())
		require.Contains(t, w.problems(), "configmaps")
		w.api.denyReading("configmaps", 0)
		w.pass(3 * time.Minute)
		require.True(t, w.isSynced())
		require.Equal(t, "wva/global=a", w.configMaps())
	})
}

func TestListedConfigMapsAreThoseOfSelectedNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		selector, err := ParseSelector("team=yes")
		require.NoError(t, err)
		w := newWorld(t, Options{})
		w.api.apply(labelled("wva", "global", "a"), labelled("team-a", "own", "b"), labelled("team-b", "own", "c"),
			"apiVersion: v1\nkind: Namespace\nmetadata: {name: team-a, labels: {team: \"yes\"}}", "apiVersion: v1\nkind: Namespace\nmetadata: {name: team-b}")
		found, err := ConfigMaps(t.Context(), Options{
			Config: &rest.Config{Host: "http://api.test", Transport: w.api}, ConfigNamespace: "wva", TenantConfig: true, NamespaceSelector: selector,
		})
		require.NoError(t, err)
		var namespaces []string
		for _, m := range found {
			namespaces = append(namespaces, m.Namespace)
		}
		require.Equal(t, []string{"wva", "team-a"}, namespaces)
	})
}

func TestConfigMapsKeepTheirLastStateInAnOutage(t *testing.T) {
	inCluster(t, Options{ConfigNamespace: "wva"}, []string{labelled("wva", "global", "a")}, func(w *world) {
		w.api.denyReading("configmaps", http.StatusInternalServerError)
		w.pass(defaultMaxAge * 2)
		require.Equal(t, "wva/global=a", w.configMaps())
	})
}

// The server may run in the namespace of Cluster Autoscaler's ConfigMap.
func TestConfigMapsOfKubeSystemAreReadBesideThatOfClusterAutoscaler(t *testing.T) {
	inCluster(t, Options{ConfigNamespace: inventory.AutoscalerStatusNamespace}, []string{labelled("kube-system", "global", "a")}, func(w *world) {
		require.Equal(t, "kube-system/global=a", w.configMaps())
		require.Positive(t, w.api.asked("watch configmaps in kube-system"))
		require.Empty(t, w.problems())
	})
}

func TestATooLargeConfigMapIsNotKept(t *testing.T) {
	inCluster(t, Options{ConfigNamespace: "wva"}, []string{labelled("wva", "global", strings.Repeat("a", 64<<10))}, func(w *world) {
		require.Equal(t, []inventory.ConfigMap{{Namespace: "wva", Name: "global", UID: "uid", TooLarge: true}}, w.Tables().ConfigMaps)
	})
}
