package cluster_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/wva-project/wva/e2e/cluster"
)

var scaledObjects = schema.GroupVersionResource{Group: "keda.sh", Version: "v1alpha1", Resource: "scaledobjects"}

func deployment(name string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "engine", Image: "engine"}}},
			},
		},
	}
}

func scaledObject(name string, trigger map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject",
		"metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"scaleTargetRef":  map[string]any{"name": name},
			"minReplicaCount": int64(0), "maxReplicaCount": int64(10),
			"pollingInterval": int64(1), "cooldownPeriod": int64(1),
			"triggers": []any{trigger},
		},
	}}
}

func externalTrigger(kind, address string) map[string]any {
	return map[string]any{"type": kind, "metadata": map[string]any{"scalerAddress": address}}
}

func TestAPIServerKeepsDeploymentsAndScaledObjects(t *testing.T) {
	ctx := t.Context()
	c := cluster.Start(t, cluster.Options{KEDACRDs: true, LeaderWorkerSetCRD: true})

	deployments := c.Client.AppsV1().Deployments("default")
	_, err := deployments.Create(ctx, deployment("llama", 2), metav1.CreateOptions{})
	require.NoError(t, err)
	stored, err := deployments.Get(ctx, "llama", metav1.GetOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 2, *stored.Spec.Replicas)

	dynamicClient, err := dynamic.NewForConfig(c.Config)
	require.NoError(t, err)
	objects := dynamicClient.Resource(scaledObjects).Namespace("default")
	_, err = objects.Create(ctx, scaledObject("llama", externalTrigger("external", "wva:9090")), metav1.CreateOptions{})
	require.NoError(t, err)
	object, err := objects.Get(ctx, "llama", metav1.GetOptions{})
	require.NoError(t, err)
	limit, found, err := unstructured.NestedInt64(object.Object, "spec", "maxReplicaCount")
	require.NoError(t, err)
	require.True(t, found)
	require.EqualValues(t, 10, limit)

	sets := schema.GroupVersionResource{Group: "leaderworkerset.x-k8s.io", Version: "v1", Resource: "leaderworkersets"}
	_, err = dynamicClient.Resource(sets).Namespace("default").List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
}

func TestAccountMayDoWhatItWasGranted(t *testing.T) {
	ctx := t.Context()
	c := cluster.Start(t, cluster.Options{})
	account, err := c.Account(ctx, "wva", "reader", rbacv1.PolicyRule{
		APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"list"},
	})
	require.NoError(t, err)
	config, err := clientcmd.BuildConfigFromFlags("", account.Kubeconfig)
	require.NoError(t, err)
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)

	_, err = client.AppsV1().Deployments("default").List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	_, err = client.CoreV1().Secrets("default").List(ctx, metav1.ListOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
}

func TestPodNeedsNoControllers(t *testing.T) {
	c := cluster.Start(t, cluster.Options{})
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "llama"},
		Spec:       deployment("llama", 1).Spec.Template.Spec,
	}
	_, err := c.Client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
	require.NoError(t, err)
}
