package scenarios

import (
	"cmp"
	"strconv"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/retry"

	"github.com/wva-project/wva/e2e/cluster"
)

var scaledObjects = schema.GroupVersionResource{Group: "keda.sh", Version: "v1alpha1", Resource: "scaledobjects"}

// spec is a variant as a test declares it.
type spec struct {
	name, model string
	accelerator string
	cost        float64
	replicas    int // of the Deployment as it is created
	min, max    int
	startup     string              // time of a pod from running to ready
	pool        string              // label of its nodes; empty for any
	gpus        int64               // that a pod requests
	slice       corev1.ResourceName // that it requests in place of whole GPUs; empty for these
	claims      string              // ResourceClaimTemplate of its devices; empty if it has none
	args        []string            // further arguments of the engine
}

// arguments are those of the engine.
func (s spec) arguments() []any {
	all := []any{"--model", s.model, "--max-num-seqs", "64"}
	for _, argument := range s.args {
		all = append(all, argument)
	}
	return all
}

func (s spec) deployment() *appsv1.Deployment {
	replicas, app := int32(s.replicas), map[string]string{"app": s.name}
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{
			Labels:      map[string]string{"app": s.name, "engine": "played"},
			Annotations: map[string]string{modelLabel: s.model},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "vllm", Image: "vllm/vllm-openai", Args: append([]string{"--model", s.model, "--max-num-seqs", "64"}, s.args...),
		}}},
	}
	if s.gpus > 0 {
		template.Spec.Containers[0].Resources.Limits = amount(cmp.Or(s.slice, cluster.GPUResource), s.gpus)
	}
	if s.claims != "" {
		claimDevices(&template.Spec, s.claims)
	}
	if s.startup != "" {
		template.Annotations[cluster.StartupAnnotation] = s.startup
	}
	if s.pool != "" {
		template.Spec.NodeSelector = map[string]string{poolLabel: s.pool}
		template.Spec.Tolerations = []corev1.Toleration{{Key: poolLabel, Value: s.pool, Effect: corev1.TaintEffectNoSchedule}}
	}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: s.name},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: app}, Template: template},
	}
}

// amount is a number of one resource.
func amount(name corev1.ResourceName, n int64) corev1.ResourceList {
	return corev1.ResourceList{name: *resource.NewQuantity(n, resource.DecimalSI)}
}

// claimDevices adds a claim of a ResourceClaimTemplate to a pod, for its first container.
func claimDevices(pod *corev1.PodSpec, template string) {
	const name = "devices"
	pod.ResourceClaims = []corev1.PodResourceClaim{{Name: name, ResourceClaimTemplateName: &template}}
	pod.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: name}}
}

func (s spec) scaledObject(address string) *unstructured.Unstructured {
	rules := func() map[string]any {
		return map[string]any{
			"stabilizationWindowSeconds": int64(0), "tolerance": "0",
			"policies": []any{map[string]any{"type": "Pods", "value": int64(1000), "periodSeconds": int64(1)}},
		}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject",
		"metadata": map[string]any{"name": s.name},
		"spec": map[string]any{
			"scaleTargetRef":  map[string]any{"name": s.name},
			"minReplicaCount": int64(s.min), "maxReplicaCount": int64(s.max),
			"pollingInterval": int64(2), "cooldownPeriod": int64(2),
			"advanced": map[string]any{"horizontalPodAutoscalerConfig": map[string]any{
				"behavior": map[string]any{"scaleUp": rules(), "scaleDown": rules()},
			}},
			"triggers": []any{map[string]any{"type": "external-push", "metadata": map[string]any{
				"scalerAddress": address, "modelID": s.model, "accelerator": s.accelerator,
				"variantCost": strconv.FormatFloat(s.cost, 'g', -1, 64),
			}}},
		},
	}}
}

// declare creates the Deployment and the ScaledObject of a variant.
func (w *world) declare(s spec) {
	w.Helper()
	w.deploy(s)
	w.create(s.scaledObject(w.address))
}

func (w *world) deploy(s spec) {
	w.Helper()
	_, err := w.Client.AppsV1().Deployments(w.namespace).Create(w.Context(), s.deployment(), metav1.CreateOptions{})
	require.NoError(w, err)
}

func (w *world) create(object *unstructured.Unstructured) {
	w.Helper()
	_, err := w.objects.Create(w.Context(), object, metav1.CreateOptions{})
	require.NoError(w, err)
}

// change edits a ScaledObject, again if somebody else has meanwhile changed it.
func (w *world) change(name string, edit func(object map[string]any)) {
	w.Helper()
	require.NoError(w, retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		object, err := w.objects.Get(w.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		edit(object.Object)
		_, err = w.objects.Update(w.Context(), object, metav1.UpdateOptions{})
		return err
	}))
}

// metadata returns the trigger metadata of a ScaledObject, to be edited.
func metadata(object map[string]any) map[string]any {
	triggers := object["spec"].(map[string]any)["triggers"].([]any)
	return triggers[0].(map[string]any)["metadata"].(map[string]any)
}

// replicas returns the number of replicas in a Deployment's spec.
func (w *world) replicas(name string) int {
	seen, err := w.Client.AppsV1().Deployments(w.namespace).Get(w.Context(), name, metav1.GetOptions{})
	require.NoError(w, err)
	return int(*seen.Spec.Replicas)
}
