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

func TestAnswersFollowTheObjects(t *testing.T) {
	w := newWorld(t, cluster.Options{})
	s := w.start()
	s.awaitReady()

	w.declare(chat)
	applied := time.Now()
	s.await(chat.name, "is shown with its workload", func(v *wvav1alpha1.Variant) bool { return v.GetCurrentReplicas() == 3 && v.GetKnown() })
	t.Logf("shown %v after it was applied", time.Since(applied).Round(time.Millisecond))
	replicas, err := s.desired(chat.name)
	require.NoError(t, err)
	require.Equal(t, 3, replicas, "nothing is known of its load, so it is held at what runs")

	w.change(chat.name, func(object map[string]any) { metadata(object)["variantCost"] = "3.5" })
	s.await(chat.name, "has its new price", func(v *wvav1alpha1.Variant) bool { return v.GetCostPerReplicaHour() == 3.5 })

	w.change(chat.name, func(object map[string]any) { metadata(object)["variantCost"] = "cheap" })
	s.await(chat.name, "is held for its fault", func(v *wvav1alpha1.Variant) bool { return v.GetHeld() && v.GetReasonCode() == "InvalidDefinition" })
	w.change(chat.name, func(object map[string]any) { metadata(object)["variantCost"] = "2" })
	s.await(chat.name, "is right again", func(v *wvav1alpha1.Variant) bool { return v.GetReasonCode() != "InvalidDefinition" })

	w.change(chat.name, func(object map[string]any) {
		object["metadata"].(map[string]any)["annotations"] = map[string]any{"autoscaling.keda.sh/paused-replicas": "4"}
	})
	s.await(chat.name, "is paused", func(v *wvav1alpha1.Variant) bool { return v.GetReasonCode() == "Paused" && v.GetDesiredReplicas() == 4 })
	w.change(chat.name, func(object map[string]any) { delete(object["metadata"].(map[string]any), "annotations") })
	s.await(chat.name, "is not paused any more", func(v *wvav1alpha1.Variant) bool { return v.GetReasonCode() != "Paused" })

	twin := chat
	twin.name = "twin"
	object := twin.scaledObject(w.address)
	object.Object["spec"].(map[string]any)["scaleTargetRef"] = map[string]any{"name": chat.name}
	w.create(object)
	s.await(twin.name, "repeats its owner's number", func(v *wvav1alpha1.Variant) bool {
		return v.GetReasonCode() == "TargetClaimed" && v.GetDesiredReplicas() == 3
	})

	w.change(chat.name, func(object map[string]any) {
		object["spec"].(map[string]any)["triggers"].([]any)[0].(map[string]any)["metricType"] = "Value"
	})
	eventually(t, patience, "a number that would be misapplied is refused", func() bool {
		_, err := s.desired(chat.name)
		return status.Code(err) == codes.FailedPrecondition
	})

	require.NoError(t, w.objects.Delete(t.Context(), chat.name, metav1.DeleteOptions{}))
	require.NoError(t, w.objects.Delete(t.Context(), twin.name, metav1.DeleteOptions{}))
	eventually(t, patience, "deleted objects are gone", func() bool { return len(s.variants()) == 0 })
	_, err = s.desired(chat.name)
	require.Equal(t, codes.Unavailable, status.Code(err), "%v", err)
	require.Zero(t, s.metric("wva_desired_replicas"), "no series of a deleted object is left")
}

func TestOneChangedObjectOfManyMakesOneCycle(t *testing.T) {
	const many = 500
	w := newWorld(t, cluster.Options{})
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

func TestNothingIsAnsweredOfWhatIsNotWatched(t *testing.T) {
	w := newWorld(t, cluster.Options{})
	s := w.start("--exclude-namespace", namespace)
	s.awaitReady()
	w.declare(chat)
	time.Sleep(time.Second)
	require.Empty(t, s.variants())
	_, err := s.keda.IsActive(t.Context(), &externalscaler.ScaledObjectRef{Namespace: namespace, Name: chat.name})
	require.Equal(t, codes.Unavailable, status.Code(err), "%v", err)
}
