package scale

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/wva-project/wva/e2e/cluster"
)

const (
	variantsPerModel = 5
	podsPerVariant   = 5
	gpusPerNode      = 16
	writers          = 16 // side by side
)

// accelerators are the products that the variants of each model run on.
var accelerators = [variantsPerModel]string{"NVIDIA-L4", "NVIDIA-L40S", "NVIDIA-A100-SXM4-80GB", "NVIDIA-H100-80GB-HBM3", "NVIDIA-H200"}

// fleet is the objects of a cluster. Each model has a namespace of its own.
type fleet struct{ models, nodes int }

func (f fleet) variants() int { return f.models * variantsPerModel }
func (f fleet) pods() int     { return f.variants() * podsPerVariant }

func namespaceOf(m int) string            { return "team-" + markOf(m) }
func modelOf(m int) string                { return "org/model-" + markOf(m) }
func variantOf(m, v int) string           { return fmt.Sprintf("model-%s-v%d", markOf(m), v) }
func podOf(m, v, p int) string            { return fmt.Sprintf("%s-5f9c7d8b6-%d", variantOf(m, v), p) }
func markOf(m int) string                 { return fmt.Sprintf("q%05dq", m) }
func labelsOf(m, v int) map[string]string { return map[string]string{"app": variantOf(m, v)} }

// create writes the objects to the API server.
func (f fleet) create(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	config := rest.CopyConfig(c.Config)
	config.QPS = -1 // no limit
	objects, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	config.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	w := &writer{client: client, objects: objects, fleet: f}
	require.NoError(t, w.each(t.Context(), f.nodes, w.node))
	require.NoError(t, w.each(t.Context(), f.models, w.model))
}

type writer struct {
	client  *kubernetes.Clientset
	objects dynamic.Interface
	fleet
}

func (w *writer) each(ctx context.Context, count int, write func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i := range count {
		group.Go(func() error { return write(ctx, i) })
	}
	return group.Wait()
}

func nodeName(i int) string { return fmt.Sprintf("gpu-node-%05d", i) }

func (w *writer) node(ctx context.Context, i int) error {
	available := corev1.ResourceList{
		"nvidia.com/gpu": resource.MustParse(fmt.Sprint(gpusPerNode)), "cpu": resource.MustParse("192"), "memory": resource.MustParse("2Ti"), "pods": resource.MustParse("110"),
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: nodeName(i), Labels: map[string]string{
			"nvidia.com/gpu.product": accelerators[i%variantsPerModel], "kubernetes.io/hostname": nodeName(i), "kubernetes.io/arch": "amd64",
		}},
		Status: corev1.NodeStatus{
			Capacity: available, Allocatable: available,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}},
		},
	}
	created, err := w.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	created.Spec.Taints, created.Status = nil, node.Status // the API server taints new nodes
	if created, err = w.client.CoreV1().Nodes().Update(ctx, created, metav1.UpdateOptions{}); err != nil {
		return err
	}
	created.Status = node.Status
	_, err = w.client.CoreV1().Nodes().UpdateStatus(ctx, created, metav1.UpdateOptions{})
	return err
}

// model writes a namespace with the objects of a model.
func (w *writer) model(ctx context.Context, m int) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaceOf(m)}}
	if _, err := w.client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return err
	}
	for v := range variantsPerModel {
		deployment := &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: variantOf(m, v)},
			Spec: appsv1.DeploymentSpec{
				Replicas: new(int32(podsPerVariant)), Selector: &metav1.LabelSelector{MatchLabels: labelsOf(m, v)},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labelsOf(m, v)}, Spec: engineOf(m, v)},
			},
		}
		if _, err := w.client.AppsV1().Deployments(namespaceOf(m)).Create(ctx, deployment, metav1.CreateOptions{}); err != nil {
			return err
		}
		for p := range podsPerVariant {
			if err := w.pod(ctx, m, v, p); err != nil {
				return err
			}
		}
		if _, err := w.objects.Resource(scaledObjects).Namespace(namespaceOf(m)).Create(ctx, scaledObject(m, v), metav1.CreateOptions{}); err != nil {
			return err
		}
		if err := w.autoscaler(ctx, m, v); err != nil {
			return err
		}
	}
	return nil
}

// autoscaler writes the HPA that KEDA makes for a ScaledObject.
func (w *writer) autoscaler(ctx context.Context, m, v int) error {
	hpas := w.client.AutoscalingV2().HorizontalPodAutoscalers(namespaceOf(m))
	hpa, err := hpas.Create(ctx, &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{
			Name: "keda-hpa-" + variantOf(m, v),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "keda.sh/v1alpha1", Kind: "ScaledObject", Name: variantOf(m, v), UID: "7a9619ff-8b86-d011-b42d-00c04fc964ff", Controller: new(true),
			}},
		},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: variantOf(m, v)},
			MaxReplicas:    20,
			Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricSource{
				Metric: autoscalingv2.MetricIdentifier{Name: "s0-wva-desired-replicas"},
				Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: resource.NewQuantity(1, resource.DecimalSI)},
			}}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	hpa.Status.Conditions = []autoscalingv2.HorizontalPodAutoscalerCondition{{Type: autoscalingv2.ScalingActive, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
	_, err = hpas.UpdateStatus(ctx, hpa, metav1.UpdateOptions{})
	return err
}

func (w *writer) pod(ctx context.Context, m, v, p int) error {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: podOf(m, v, p), Labels: labelsOf(m, v),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "ReplicaSet", Name: variantOf(m, v) + "-5f9c7d8b6", UID: "7a9619ff-8b86-d011-b42d-00c04fc964ff", Controller: new(true),
			}},
		},
		Spec: engineOf(m, v),
	}
	// node i has accelerator i modulo five
	pod.Spec.NodeName = nodeName((m*podsPerVariant+p)*variantsPerModel%w.usable() + v)
	created, err := w.client.CoreV1().Pods(namespaceOf(m)).Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	since := metav1.Now()
	created.Status.Phase = corev1.PodRunning
	for _, condition := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		created.Status.Conditions = append(created.Status.Conditions, corev1.PodCondition{Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: since})
	}
	_, err = w.client.CoreV1().Pods(namespaceOf(m)).UpdateStatus(ctx, created, metav1.UpdateOptions{})
	return err
}

// usable is the number of nodes that pods are spread over: a multiple of the accelerator types.
func (f fleet) usable() int { return f.nodes / variantsPerModel * variantsPerModel }

func engineOf(m, v int) corev1.PodSpec {
	need := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1"), "cpu": resource.MustParse("4"), "memory": resource.MustParse("32Gi")}
	return corev1.PodSpec{
		NodeSelector: map[string]string{"nvidia.com/gpu.product": accelerators[v]},
		Containers: []corev1.Container{{
			Name: "vllm", Image: "docker.io/vllm/vllm-openai:v0.26.0",
			Args:      []string{"--model", modelOf(m), "--max-num-seqs=256", "--gpu-memory-utilization=0.9"},
			Resources: corev1.ResourceRequirements{Requests: need, Limits: need},
		}},
	}
}

var scaledObjects = schema.GroupVersionResource{Group: "keda.sh", Version: "v1alpha1", Resource: "scaledobjects"}

func scaledObject(m, v int) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject",
		"metadata": map[string]any{"name": variantOf(m, v), "namespace": namespaceOf(m)},
		"spec": map[string]any{
			"scaleTargetRef":  map[string]any{"name": variantOf(m, v)},
			"minReplicaCount": int64(1), "maxReplicaCount": int64(20),
			"triggers": []any{map[string]any{
				"type": "external-push",
				"metadata": map[string]any{
					"scalerAddress": "wva.keda.svc:9090", "modelID": modelOf(m), "variantCost": fmt.Sprint(1 + v),
				},
			}},
		},
	}}
}
