package cluster_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/wva-project/wva/e2e/cluster"
)

// wish is an external scaler that returns the same number of replicas to every request.
type wish struct {
	externalscaler.UnimplementedExternalScalerServer
	replicas atomic.Int64
}

func (w *wish) IsActive(context.Context, *externalscaler.ScaledObjectRef) (*externalscaler.IsActiveResponse, error) {
	return &externalscaler.IsActiveResponse{Result: w.replicas.Load() > 0}, nil
}

func (w *wish) GetMetricSpec(context.Context, *externalscaler.ScaledObjectRef) (*externalscaler.GetMetricSpecResponse, error) {
	return &externalscaler.GetMetricSpecResponse{
		MetricSpecs: []*externalscaler.MetricSpec{{MetricName: "replicas", TargetSize: 1}},
	}, nil
}

func (w *wish) GetMetrics(context.Context, *externalscaler.GetMetricsRequest) (*externalscaler.GetMetricsResponse, error) {
	return &externalscaler.GetMetricsResponse{
		MetricValues: []*externalscaler.MetricValue{{MetricName: "replicas", MetricValue: w.replicas.Load()}},
	}, nil
}

// serve listens on every address of the private network until the test ends.
func (w *wish) serve(t *testing.T) (port string) {
	t.Helper()
	listener, err := net.Listen("tcp", "0.0.0.0:0")
	require.NoError(t, err)
	server := grpc.NewServer()
	externalscaler.RegisterExternalScalerServer(server, w)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		require.NoError(t, <-ended)
	})
	_, port, err = net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	return port
}

func TestKEDAScalesADeploymentAsItsExternalScalerWishes(t *testing.T) {
	ctx := t.Context()
	w := &wish{}
	port := w.serve(t)
	c := cluster.Start(t, cluster.Options{KEDA: true})
	require.NoError(t, c.AddService(ctx, "default", "wish"))

	_, err := c.Client.AppsV1().Deployments("default").Create(ctx, deployment("llama", 0), metav1.CreateOptions{})
	require.NoError(t, err)
	dynamicClient, err := dynamic.NewForConfig(c.Config)
	require.NoError(t, err)
	object := scaledObject("llama", externalTrigger("external", "wish.default.svc:"+port))
	_, err = dynamicClient.Resource(scaledObjects).Namespace("default").Create(ctx, object, metav1.CreateOptions{})
	require.NoError(t, err)

	for _, replicas := range []int{3, 0} {
		w.replicas.Store(int64(replicas))
		eventually(t, "as many replicas as wished are ready", func() bool {
			seen, err := c.Client.AppsV1().Deployments("default").Get(ctx, "llama", metav1.GetOptions{})
			require.NoError(t, err)
			return int(*seen.Spec.Replicas) == replicas && int(seen.Status.ReadyReplicas) == replicas &&
				int(seen.Status.Replicas) == replicas
		})
	}
}

func TestKEDAsAdmissionRefusesASecondScaledObjectOfADeployment(t *testing.T) {
	ctx := t.Context()
	c := cluster.Start(t, cluster.Options{KEDA: true})
	_, err := c.Client.AppsV1().Deployments("default").Create(ctx, deployment("llama", 0), metav1.CreateOptions{})
	require.NoError(t, err)
	dynamicClient, err := dynamic.NewForConfig(c.Config)
	require.NoError(t, err)
	objects := dynamicClient.Resource(scaledObjects).Namespace("default")
	first := scaledObject("llama", externalTrigger("external", "nobody.default.svc:1"))
	_, err = objects.Create(ctx, first, metav1.CreateOptions{})
	require.NoError(t, err)

	second := first.DeepCopy()
	second.SetName("another")
	// the webhook reads a cache: it may not know the first object yet
	eventually(t, "the second object is refused", func() bool {
		_, err := objects.Create(ctx, second, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil {
			return false
		}
		require.ErrorContains(t, err, "already managed")
		return true
	})
}
