package scenarios

import (
	"fmt"
	"testing"
	"time"

	"github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wva-project/wva/e2e/cluster"
	wvav1alpha1 "github.com/wva-project/wva/proto/wva/v1alpha1"
)

var chat = spec{name: "chat", model: "org/chat", accelerator: "L40S", cost: 2, replicas: 3, min: 1, max: 10}

func answersFollowTheObjects(t *testing.T, w *world) {
	s := w.start()
	s.awaitReady()

	w.declare(chat)
	applied := time.Now()
	s.await(chat.name, "is shown with its workload", func(v *wvav1alpha1.Variant) bool { return v.GetCurrentReplicas() == 3 && v.DesiredReplicas != nil })
	t.Logf("shown %v after it was applied", time.Since(applied).Round(time.Millisecond))
	replicas, err := s.desired(chat.name)
	require.NoError(t, err)
	require.Equal(t, 3, replicas, "its load is not known, so it is held at its current replicas")

	w.change(chat.name, func(object map[string]any) { metadata(object)["variantCost"] = "3.5" })
	s.await(chat.name, "has its new price", func(v *wvav1alpha1.Variant) bool { return v.GetCostPerReplicaHour() == 3.5 })

	w.change(chat.name, func(object map[string]any) { metadata(object)["variantCost"] = "cheap" })
	s.await(chat.name, "is held for its validation error", func(v *wvav1alpha1.Variant) bool { return v.GetHeld() && v.GetReason() == "InvalidDefinition" })
	w.change(chat.name, func(object map[string]any) { metadata(object)["variantCost"] = "2" })
	s.await(chat.name, "is valid again", func(v *wvav1alpha1.Variant) bool { return v.GetReason() != "InvalidDefinition" })

	w.change(chat.name, func(object map[string]any) {
		object["metadata"].(map[string]any)["annotations"] = map[string]any{"autoscaling.keda.sh/paused-replicas": "4"}
	})
	s.await(chat.name, "is paused", func(v *wvav1alpha1.Variant) bool { return v.GetReason() == "Paused" && v.GetDesiredReplicas() == 4 })
	w.change(chat.name, func(object map[string]any) { delete(object["metadata"].(map[string]any), "annotations") })
	s.await(chat.name, "is not paused any more", func(v *wvav1alpha1.Variant) bool { return v.GetReason() != "Paused" })

	second := chat
	second.name = "second"
	object := second.scaledObject(w.address)
	object.Object["spec"].(map[string]any)["scaleTargetRef"] = map[string]any{"name": chat.name}
	w.create(object)
	s.await(second.name, "repeats its owner's number", func(v *wvav1alpha1.Variant) bool {
		return v.GetReason() == "DuplicateTarget" && v.GetDesiredReplicas() == 3
	})

	w.change(chat.name, func(object map[string]any) {
		object["spec"].(map[string]any)["triggers"].([]any)[0].(map[string]any)["metricType"] = "Value"
	})
	eventually(t, patience, "an unsupported trigger is an error", func() bool {
		_, err := s.desired(chat.name)
		return status.Code(err) == codes.FailedPrecondition
	})

	require.NoError(t, w.objects.Delete(t.Context(), chat.name, metav1.DeleteOptions{}))
	require.NoError(t, w.objects.Delete(t.Context(), second.name, metav1.DeleteOptions{}))
	eventually(t, patience, "deleted objects are gone", func() bool { return len(s.variants()) == 0 })
	_, err = s.desired(chat.name)
	require.Equal(t, codes.Unavailable, status.Code(err), "%v", err)
	require.Zero(t, s.metric("wva_desired_replicas"), "no series of a deleted object is left")
}

func oneChangedObjectOfManyMakesOneCycle(t *testing.T, w *world) {
	const many = 500
	for i := range many {
		v := chat
		v.name, v.model, v.replicas = fmt.Sprintf("chat-%03d", i), fmt.Sprintf("org/chat-%03d", i), 0
		w.declare(v)
	}
	s := w.start("--interval", "1h")
	s.awaitReady()
	eventually(t, patience, "all are in the plan", func() bool { return len(s.variants()) == many })
	triggers := func() float64 { return s.labelled("wva_cycle_triggers_total", "reason", "scaledobject") }
	before := triggers()
	w.change("chat-250", func(object map[string]any) { metadata(object)["variantCost"] = "7" })
	s.await("chat-250", "has its new price", func(v *wvav1alpha1.Variant) bool { return v.GetCostPerReplicaHour() == 7 })
	time.Sleep(time.Second) // a second one would come by now
	require.InDelta(t, before+1, triggers(), 0, "and each makes one cycle at most")
}

func TestExcludedNamespaceGetsNoAnswer(t *testing.T) {
	w := newWorld(t, cluster.Options{})
	s := w.start("--exclude-namespace", w.namespace)
	s.awaitReady()
	w.declare(chat)
	time.Sleep(time.Second)
	require.Empty(t, s.variants())
	_, err := s.keda.IsActive(t.Context(), &externalscaler.ScaledObjectRef{Namespace: w.namespace, Name: chat.name})
	require.Equal(t, codes.Unavailable, status.Code(err), "%v", err)
}
