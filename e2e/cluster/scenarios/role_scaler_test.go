package scenarios

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var roleScalers = schema.GroupVersionResource{Group: "roles.example.com", Version: "v1", Resource: "rolescalers"}

// roleScalerKind is a scale target that owns no pods, as the role scalers of DisaggregatedSet,
// Dynamo and others: its scale's status.selector is the only way to them. The HPA controller learns
// of new kinds every 30 s, so it is defined before all scenarios.
const roleScalerKind = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: rolescalers.roles.example.com}
spec:
  group: roles.example.com
  names: {kind: RoleScaler, plural: rolescalers, singular: rolescaler}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas, labelSelectorPath: .status.selector}
`

func targetKnownByItsSelectorIsSizedByItsPods(t *testing.T, w *world) {
	v := spec{name: "role", model: "org/role", accelerator: "L40S", cost: 2, replicas: busyReplicas, min: 1, max: 10}
	w.player.ask(v.model, busy)
	w.runRoleScaler(v)
	s := w.start()
	s.awaitReady()
	w.createFor(v, "roles.example.com/v1", "RoleScaler")
	seen := w.follow(roleScalers, v.name)
	w.followed(s, v.name, busyReplicas)
	w.settlesWithin(roleScalers, v.name, busyReplicas, busyReplicas)
	require.GreaterOrEqual(t, seen.low(), busyReplicas, "loaded replicas are kept")

	w.player.ask(v.model, 3)
	w.settlesWithin(roleScalers, v.name, 2, 2)
}

// runRoleScaler creates the role scaler of a variant, and acts as its controller: the pods are
// those of a Deployment with another name.
func (w *world) runRoleScaler(v spec) {
	w.Helper()
	engines := v
	engines.name = v.name + "-engines"
	w.deploy(engines)
	scalers := w.dynamic.Resource(roleScalers).Namespace(w.namespace)
	_, err := scalers.Create(w.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "roles.example.com/v1", "kind": "RoleScaler",
		"metadata": map[string]any{"name": v.name}, "spec": map[string]any{"replicas": int64(v.replicas)},
	}}, metav1.CreateOptions{})
	require.NoError(w, err)
	w.reconciled(func(ctx context.Context) {
		scaler, err := scalers.Get(ctx, v.name, metav1.GetOptions{})
		if err != nil {
			return
		}
		replicas, _, _ := unstructured.NestedInt64(scaler.Object, "spec", "replicas")
		scale, err := w.Client.AppsV1().Deployments(w.namespace).GetScale(ctx, engines.name, metav1.GetOptions{})
		if err != nil {
			return
		}
		if scale.Spec.Replicas != int32(replicas) {
			scale.Spec.Replicas = int32(replicas)
			_, _ = w.Client.AppsV1().Deployments(w.namespace).UpdateScale(ctx, engines.name, scale, metav1.UpdateOptions{})
		}
		w.report(ctx, scalers, scaler, map[string]any{"replicas": int64(scale.Status.Replicas), "selector": "app=" + engines.name})
	})
}
