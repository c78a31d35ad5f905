package scenarios

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/e2e/cluster"
	wvav1alpha1 "github.com/wva-project/wva/proto/wva/v1alpha1"
)

// asDeployed runs wva with the roles of a rendering of the Helm chart, and nothing else.
func (w *world) asDeployed(file string, change func(manifest string) string) {
	w.Helper()
	manifest, err := os.ReadFile(filepath.Join("..", "..", "..", filepath.FromSlash(file)))
	require.NoError(w, err)
	w.withRolesOf(change(string(manifest)))
}

// withRolesOf applies a rendering of the chart and runs wva with its roles.
func (w *world) withRolesOf(manifest string) {
	w.Helper()
	account, err := w.Account(w.Context(), "keda", "wva") // makes both
	require.NoError(w, err)
	require.NoError(w, w.Apply(w.Context(), []byte(manifest)))
	w.kubeconfig = account.Kubeconfig
}

func unchanged(manifest string) string { return manifest }

func TestTheDeployedRolesAreEnough(t *testing.T) {
	w := newWorld(t, cluster.Options{})
	w.asDeployed("deploy/wva.yaml", unchanged)
	s := w.start()
	s.awaitReady()
	w.declare(chat)
	s.await(chat.name, "is shown with its workload", func(v *wvav1alpha1.Variant) bool { return v.GetCurrentReplicas() == 3 })
	require.NotContains(t, s.whole(), "forbidden")
}

func TestMissingRoleIsNamedAndTheRestGoesOn(t *testing.T) {
	w := newWorld(t, cluster.Options{})
	w.asDeployed("deploy/wva.yaml", func(manifest string) string { return strings.ReplaceAll(manifest, "statefulsets", "nosuchthings") })
	s := w.start()
	s.awaitReady()
	w.declare(chat)
	other := chat
	other.name, other.model = "other", "org/other"
	object := other.scaledObject(w.address)
	object.Object["spec"].(map[string]any)["scaleTargetRef"] = map[string]any{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "other"}
	w.create(object)
	s.await(chat.name, "is shown with its workload", func(v *wvav1alpha1.Variant) bool { return v.GetCurrentReplicas() == 3 })
	s.await(other.name, "is held", func(v *wvav1alpha1.Variant) bool { return v.GetHeld() && v.GetReason() == "TargetUnreadable" })
	eventually(t, patience, "the missing role is named", func() bool {
		return strings.Contains(s.whole(), "list on statefulsets.apps") && strings.Contains(s.whole(), "forbidden")
	})
}

func TestRolesInOneNamespaceAreEnoughForIt(t *testing.T) {
	w := newWorld(t, cluster.Options{})
	w.asDeployed("e2e/chart/testdata/namespaces.yaml", unchanged)
	s := w.start("--watch-namespace", w.namespace)
	s.awaitReady()
	w.declare(chat)
	s.await(chat.name, "is shown with its workload", func(v *wvav1alpha1.Variant) bool { return v.GetCurrentReplicas() == 3 })
}
