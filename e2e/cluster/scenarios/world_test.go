package scenarios

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/wva-project/wva/e2e/cluster"
)

// world is a cluster with a played Prometheus.
type world struct {
	*testing.T
	*cluster.Cluster
	Client     *kubernetes.Clientset
	objects    dynamic.ResourceInterface // ScaledObjects
	player     *player
	port       string // of wva's gRPC
	address    string // of wva, as ScaledObjects name it
	kubeconfig string // of wva
}

func newWorld(t *testing.T, options cluster.Options) *world {
	t.Helper()
	options.KEDACRDs = true
	c := cluster.Start(t, options)
	w := &world{T: t, Cluster: c, Client: c.Client, port: freePort(t), kubeconfig: c.Kubeconfig}
	client, err := dynamic.NewForConfig(c.Config)
	require.NoError(t, err)
	w.objects = client.Resource(scaledObjects).Namespace(namespace)
	for _, name := range []string{namespace, "keda"} {
		_, err = c.Client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			require.NoError(t, err)
		}
	}
	require.NoError(t, c.AddService(t.Context(), "wva", "wva"))
	w.address = "wva.wva.svc:" + w.port
	w.player = newPlayer(t, c)
	return w
}

func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	_, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	return port
}
