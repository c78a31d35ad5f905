package scenarios

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/wva-project/wva/e2e/cluster"
	wvav1alpha1 "github.com/wva-project/wva/proto/wva/v1alpha1"
)

// A ConfigMap of the administrator changes the next plan, an invalid text changes nothing, and a
// tenant's ConfigMap gets no more than the administrator grants.
func configMapsChangePlansWithinTheirLimits(t *testing.T, w *world) {
	const pool, administrators = "configuration", "administrators"
	w.addNode(pool, cluster.Node{Name: pool, Product: "NVIDIA-A30", GPUs: 8})
	w.createNamespace(administrators)
	global := w.configure(administrators, "global", `maxAccelerators: [{namespace: "*", max: 2}]`)

	v := spec{name: "chat", model: "org/chat", accelerator: "A30", cost: 2, replicas: 1, min: 1, max: 6, startup: "1s", pool: pool, gpus: 1}
	w.player.ask(v.model, 6*capacity)
	s := w.start("--kubernetes-config-maps", "all", "--kubernetes-config-namespace", administrators)
	s.awaitReady()
	w.declare(v)
	seen := w.follow(deployments, v.name)
	limitedTo := func(most int32) {
		t.Helper()
		s.await(v.name, "has the maximum of its namespace", func(v *wvav1alpha1.Variant) bool {
			return v.GetDesiredReplicas() == most && v.GetCurrentReplicas() == most && v.GetReason() == "QuotaReached"
		})
	}
	limitedTo(2)
	w.configure(administrators, global.Name, `maxAccelerators: [{namespace: "*", max: 3}]`)
	limitedTo(3)

	w.configure(administrators, global.Name, `maxAccelerators: [{namespace: "*", max: lots}]`)
	rejected := w.awaitEvent(administrators, "ConfigurationRejected")
	require.Equal(t, global.UID, rejected.InvolvedObject.UID)
	require.Equal(t, corev1.EventTypeWarning, rejected.Type)
	require.Contains(t, rejected.Message, `max "lots" is not a number`)
	require.Contains(t, rejected.Message, "In use is its last valid text")

	w.configure(w.namespace, "own", "maxAccelerators: [{max: 400}]")
	finding := "in the ConfigMap " + w.namespace + "/own maxAccelerators is 400, and the administrator grants 3, which is used"
	event := w.awaitEvent(w.namespace, "SettingLimited")
	require.Equal(t, "ScaledObject", event.InvolvedObject.Kind)
	require.Equal(t, v.name, event.InvolvedObject.Name)
	require.Contains(t, event.Message, finding)
	s.await(v.name, "has the finding as a condition", func(v *wvav1alpha1.Variant) bool {
		return isFalse(v, "DefinitionAccepted", finding)
	})
	time.Sleep(settled)
	limitedTo(3)
	require.LessOrEqual(t, seen.high(), 3, "no plan is beyond the maximum")

	w.configure(w.namespace, "own", "maxAccelerators: [{max: 4}]")
	w.configure(administrators, global.Name, `maxAccelerators: [{namespace: "*", max: 5}]`)
	limitedTo(4)
	s.await(v.name, "has no finding any more", func(v *wvav1alpha1.Variant) bool { return !isFalse(v, "DefinitionAccepted", "") })
}

// configure applies a ConfigMap with configuration.
func (w *world) configure(namespace, name, settings string) *corev1.ConfigMap {
	w.Helper()
	object := applycorev1.ConfigMap(name, namespace).WithLabels(map[string]string{"wva.dev/config": "true"}).WithData(map[string]string{"wva.yaml": settings})
	applied, err := w.Client.CoreV1().ConfigMaps(namespace).Apply(w.Context(), object, metav1.ApplyOptions{FieldManager: "test"})
	require.NoError(w, err)
	return applied
}

// awaitEvent waits for an event with a reason.
func (w *world) awaitEvent(namespace, reason string) (found corev1.Event) {
	w.Helper()
	eventually(w, patience, "an event "+reason, func() bool {
		all, err := w.Client.CoreV1().Events(namespace).List(w.Context(), metav1.ListOptions{FieldSelector: "reason=" + reason})
		require.NoError(w, err)
		if len(all.Items) > 0 {
			found = all.Items[0]
		}
		return len(all.Items) > 0
	})
	return found
}

// isFalse reports whether a condition of a variant is False, with a text in its message.
func isFalse(v *wvav1alpha1.Variant, condition, text string) bool {
	return slices.ContainsFunc(v.GetConditions(), func(c *wvav1alpha1.Condition) bool {
		return c.GetType() == condition && c.GetStatus() == "False" && strings.Contains(c.GetMessage(), text)
	})
}

// The chart's roles allow to read the ConfigMaps of all namespaces, and to write events on them.
func TestRolesOfConfigMapsAreEnough(t *testing.T) {
	h := newHelmCluster(t, cluster.Options{})
	w := newWorldIn(t, h.Cluster, "llm", "--kubernetes-lease-namespace", "keda")
	w.withRolesOf(h.helm("template", "wva", helmChart, "--namespace", "keda", "--set", "configMaps=all"))
	global := w.configure("keda", "global", "models: [{model: org/chat, ttft: soon}]")
	w.configure(w.namespace, "own", "scaleToZero: {retention: 12h}")
	s := w.start("--kubernetes-config-maps", "all", "--kubernetes-config-namespace", "keda")
	s.awaitReady()
	w.declare(chat)
	require.Equal(t, global.UID, w.awaitEvent("keda", "ConfigurationRejected").InvolvedObject.UID)
	require.Contains(t, w.awaitEvent(w.namespace, "SettingLimited").Message, "in the ConfigMap llm/own retention is 12h")
	require.NotContains(t, s.whole(), "forbidden")
}
