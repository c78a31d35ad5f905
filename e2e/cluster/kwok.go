package cluster

import (
	"context"
	_ "embed" // the stages
	"errors"
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wva-project/wva/e2e/cluster/kubelet"
)

// Annotations of pods, with durations such as 5s. Stages.yaml reads them.
const (
	// StartupAnnotation is the time from running to ready, as of a model that loads. Its default is
	// 0.
	StartupAnnotation = "cluster.wva/startup"
	// ShutdownAnnotation is the time from a pod's deletion to its end. Its default is 0.
	ShutdownAnnotation = "cluster.wva/shutdown"
)

// GPUResource is the name under which nodes offer GPUs.
const GPUResource corev1.ResourceName = "nvidia.com/gpu"

//go:embed stages.yaml
var stages []byte

// Node is a pretended machine of 1000 CPUs.
type Node struct {
	Name string
	// Product is the node's nvidia.com/gpu.product; empty for a node without GPUs.
	Product string
	GPUs    int
	// Resources are beside these GPUs, such as slices of GPUs.
	Resources corev1.ResourceList
	// Labels are beside those that every node has.
	Labels map[string]string
	Taints []corev1.Taint
}

// startKWOK returns once there is a node for pods without GPUs.
func (c *Cluster) startKWOK(ctx context.Context, images []kubelet.Image) error {
	names := []string{} // YAML has no null list here
	for _, image := range images {
		names = append(names, strconv.Quote(image.Name))
	}
	played := strings.ReplaceAll(string(stages), "IMAGES", strings.Join(names, ", "))
	if err := os.WriteFile(c.path("stages.yaml"), []byte(played), 0o644); err != nil {
		return err
	}
	err := c.run(kwok, []string{
		"--kubeconfig", c.Kubeconfig, "--config", c.path("stages.yaml"), "--cidr", pods, "--node-ip", advertised,
		"--manage-nodes-with-annotation-selector", "kwok.x-k8s.io/node=fake", "--node-lease-duration-seconds", "40",
	})
	if err != nil {
		return err
	}
	return c.AddNode(ctx, Node{Name: "general"})
}

// AddNode adds a node and returns once it is ready. The cluster has to run KWOK.
func (c *Cluster) AddNode(ctx context.Context, node Node) error {
	nodes := c.Client.CoreV1().Nodes()
	if _, err := nodes.Create(ctx, node.object(), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("add the node %s: %w", node.Name, err)
	}
	return c.await(ctx, "the node "+node.Name+" is ready", func(ctx context.Context) error {
		seen, err := nodes.Get(ctx, node.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, condition := range seen.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return errors.New("it is not ready; is Options.KWOK set?")
	})
}

func (n Node) object() *corev1.Node {
	labels := map[string]string{
		corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64", corev1.LabelHostname: n.Name,
	}
	capacity := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("1k"), corev1.ResourceMemory: resource.MustParse("8Ti"),
		corev1.ResourcePods: resource.MustParse("1k"),
	}
	if n.Product != "" {
		labels["nvidia.com/gpu.product"] = n.Product
		capacity[GPUResource] = *resource.NewQuantity(int64(n.GPUs), resource.DecimalSI)
	}
	maps.Copy(capacity, n.Resources)
	maps.Copy(labels, n.Labels)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: n.Name, Labels: labels, Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
		},
		Spec: corev1.NodeSpec{Taints: n.Taints},
		Status: corev1.NodeStatus{
			Capacity: capacity, Allocatable: capacity,
			DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: kubelet.Port}},
		},
	}
}
