package scenarios

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/wva-project/wva/e2e/cluster/play"
	wvav1alpha1 "github.com/wva-project/wva/proto/wva/v1alpha1"
)

// The variants of a model at zero, on two accelerator types.
var (
	idleCheap     = spec{name: "cheap", model: "org/chat", accelerator: "L40S", cost: 2, min: 0, max: 10, startup: "2s"}
	idleExpensive = spec{name: "expensive", model: "org/chat", accelerator: "H100", cost: 9, min: 0, max: 10, startup: "2s"}
)

func serverStartsNothingThatNobodyAskedFor(t *testing.T, w *world) {
	silent := spec{name: "silent", model: "org/silent", accelerator: "L40S", cost: 2, min: 0, max: 10}
	readme := w.declareExampleOfReadme()
	for _, v := range []spec{idleCheap, idleExpensive, silent} {
		w.declare(v)
	}
	all := []string{idleCheap.name, idleExpensive.name, silent.name, readme}
	w.player.ask(idleCheap.model, 0)

	for _, start := range []string{"first start", "restart"} {
		s := w.start()
		s.awaitReady()
		for _, name := range all {
			s.await(name, "is decided at zero", func(v *wvav1alpha1.Variant) bool {
				return !v.GetHeld() && v.DesiredReplicas != nil && v.GetDesiredReplicas() == 0
			})
		}
		w.keeps(start, 8*time.Second, 0, all...)
		if start == "first start" {
			w.saysNoWakeSignal(s, silent.name)
			s.kill()
			continue
		}
		eventually(t, deadline, "KEDA listens on all streams", func() bool { return s.metric("wva_open_streams") >= float64(len(all)) })
	}

	asked := w.player.askAt(idleCheap.model, 1)
	eventually(t, deadline, "a request at the gateway starts the cheapest variant", func() bool { return w.replicas(idleCheap.name) > 0 })
	t.Logf("started %v after the sample", time.Since(<-asked).Round(time.Millisecond))
	w.keeps("a request", 4*time.Second, 0, idleExpensive.name, silent.name, readme)
}

// keeps requires that Deployments have a number of replicas in their specs for a while.
func (w *world) keeps(step string, while time.Duration, replicas int, names ...string) {
	w.Helper()
	for end := time.Now().Add(while); time.Now().Before(end); time.Sleep(5 * tick) {
		for _, name := range names {
			require.Equal(w, replicas, w.replicas(name), "%s: %s", step, name)
		}
	}
}

// saysNoWakeSignal requires the condition and the event of a model at zero that nothing would
// start.
func (w *world) saysNoWakeSignal(s *server, name string) {
	w.Helper()
	s.await(name, "has the condition", func(v *wvav1alpha1.Variant) bool {
		for _, c := range v.GetConditions() {
			if c.GetReason() == "NoWakeSignal" {
				return c.GetType() == "OptimizationReady" && c.GetStatus() == "False"
			}
		}
		return false
	})
	eventually(w, patience, "an event tells it", func() bool {
		event := w.event(name, "NoWakeSignal")
		return event != nil && event.Type == corev1.EventTypeWarning
	})
}

// event returns the event of a reason on a ScaledObject; nil if there is none.
func (w *world) event(name, reason string) *corev1.Event {
	w.Helper()
	all, err := w.Client.CoreV1().Events(w.namespace).List(w.Context(), metav1.ListOptions{})
	require.NoError(w, err)
	for i := range all.Items {
		e := &all.Items[i]
		if e.InvolvedObject.Kind == "ScaledObject" && e.InvolvedObject.Name == name && e.Reason == reason {
			return e
		}
	}
	return nil
}

// declareExampleOfReadme creates the ScaledObject with which README.md begins, with a minimum of 0
// and for a workload without replicas, and returns its name.
func (w *world) declareExampleOfReadme() string {
	w.Helper()
	page, err := os.ReadFile(filepath.Join(play.Repository(), "README.md"))
	require.NoError(w, err)
	_, rest, _ := strings.Cut(string(page), "```yaml\n")
	block, _, found := strings.Cut(rest, "```")
	require.True(w, found)
	object := &unstructured.Unstructured{}
	require.NoError(w, yaml.Unmarshal([]byte(block), &object.Object))
	require.Equal(w, "ScaledObject", object.GetKind())
	object.SetNamespace(w.namespace)
	object.Object["spec"].(map[string]any)["minReplicaCount"] = int64(0)
	keys := metadata(object.Object)
	keys["scalerAddress"] = w.address
	w.deploy(spec{name: object.GetName(), model: keys["modelID"].(string)})
	w.create(object)
	return object.GetName()
}

func onlyAModelWithAGatewayGoesToZeroAfterItsRetention(t *testing.T, w *world) {
	const after = 15 * time.Second // longer than the retention of the configuration
	gated := spec{name: "gated", model: "org/gated", accelerator: "L40S", cost: 2, replicas: 1, min: 0, max: 10}
	ungated := spec{name: "ungated", model: "org/ungated", accelerator: "L40S", cost: 2, replicas: 1, min: 0, max: 10}
	for _, v := range []spec{gated, ungated} {
		w.deploy(v)
		object := v.scaledObject(w.address)
		metadata(object.Object)["scaleToZeroAfter"] = after.String()
		w.create(object)
		w.player.ask(v.model, 1)
	}
	w.player.withoutGateway(ungated.model)
	s := w.start()
	s.awaitReady()
	for _, v := range []spec{gated, ungated} {
		s.await(v.name, "is decided", func(v *wvav1alpha1.Variant) bool { return !v.GetHeld() && v.GetDesiredReplicas() == 1 })
	}
	w.keeps("load", after, 1, gated.name, ungated.name) // the retention has to be covered, too

	w.player.ask(gated.model, 0)
	w.player.ask(ungated.model, 0)
	idle := time.Now()
	eventually(t, deadline, "the model with a gateway goes to zero", func() bool { return w.replicas(gated.name) == 0 })
	t.Logf("at zero %v after the last request", time.Since(idle).Round(100*time.Millisecond))
	require.Greater(t, time.Since(idle), after, "not before its retention")
	s.await(ungated.name, "keeps its last replica", func(v *wvav1alpha1.Variant) bool {
		return v.GetReason() == "LastReplica" && strings.Contains(v.GetMessage(), "gateway")
	})
	w.keeps("no gateway", after, 1, ungated.name)
}
