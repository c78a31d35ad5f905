package cluster_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wva-project/wva/e2e/cluster"
)

const patience = time.Minute

// eventually polls until it is so.
func eventually(t *testing.T, condition string, ask func() bool) {
	t.Helper()
	require.Eventually(t, ask, patience, 50*time.Millisecond, "never: %s", condition)
}

func readyReplicas(ctx context.Context, t *testing.T, c *cluster.Cluster, name string) int {
	t.Helper()
	seen, err := c.Client.AppsV1().Deployments("default").Get(ctx, name, metav1.GetOptions{})
	require.NoError(t, err)
	return int(seen.Status.ReadyReplicas)
}

func TestDeploymentGetsReadyPodsOnGPUNodesAfterItsStartup(t *testing.T) {
	ctx := t.Context()
	c := cluster.Start(t, cluster.Options{KWOK: true})
	require.NoError(t, c.AddNode(ctx, cluster.Node{Name: "gpu-0", Product: "NVIDIA-H100-80GB-HBM3", GPUs: 8}))

	const startup = 2 * time.Second
	llama := deployment("llama", 3)
	llama.Spec.Template.Annotations = map[string]string{cluster.StartupAnnotation: startup.String()}
	llama.Spec.Template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{
		cluster.GPUResource: resource.MustParse("4"),
	}
	_, err := c.Client.AppsV1().Deployments("default").Create(ctx, llama, metav1.CreateOptions{})
	require.NoError(t, err)

	eventually(t, "as many as there are GPUs for are ready", func() bool { return readyReplicas(ctx, t, c, "llama") == 2 })
	pods, err := c.Client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	running := 0
	for _, pod := range pods.Items {
		if pod.Status.Phase != corev1.PodRunning {
			continue
		}
		running++
		require.Equal(t, "gpu-0", pod.Spec.NodeName)
		require.NotEmpty(t, pod.Status.PodIP)
		ready := readySince(t, pod)
		started := pod.Status.ContainerStatuses[0].State.Running.StartedAt
		require.GreaterOrEqual(t, ready.Sub(started.Time), startup-time.Second, "both are whole seconds")
	}
	require.Equal(t, 2, running)

	_, err = c.Kubectl(ctx, nil, "scale", "deployment/llama", "--replicas=0")
	require.NoError(t, err)
	eventually(t, "no pod is left", func() bool {
		pods, err := c.Client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
		return err == nil && len(pods.Items) == 0
	})
}

func readySince(t *testing.T, pod corev1.Pod) metav1.Time {
	t.Helper()
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			require.Equal(t, corev1.ConditionTrue, condition.Status)
			return condition.LastTransitionTime
		}
	}
	require.Fail(t, "the pod has no condition Ready", "%v", pod.Status.Conditions)
	return metav1.Time{}
}
