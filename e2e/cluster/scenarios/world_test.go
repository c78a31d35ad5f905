package scenarios

import (
	"context"
	"path"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/wva-project/wva/e2e/cluster"
)

// world is a namespace of a cluster, with a played Prometheus and servers of its own.
type world struct {
	*testing.T
	*cluster.Cluster
	Client     *kubernetes.Clientset
	dynamic    dynamic.Interface
	objects    dynamic.ResourceInterface // ScaledObjects
	player     *player
	namespace  string
	port       string   // of wva's gRPC
	address    string   // of wva, as ScaledObjects name it
	kubeconfig string   // of wva
	scope      []string // further arguments of wva: its namespaces and that of its lease
}

// newWorld makes a world with a cluster of its own.
func newWorld(t *testing.T, options cluster.Options) *world {
	t.Helper()
	options.KEDACRDs = true
	return newWorldIn(t, cluster.Start(t, options), "llm", "--kubernetes-lease-namespace", "keda")
}

// newSharedWorld makes a world in a cluster that other tests use at the same time.
func newSharedWorld(t *testing.T, c *cluster.Cluster) *world {
	t.Helper()
	own := strings.ToLower(path.Base(t.Name()))
	w := newWorldIn(t, c, own, "--watch-namespace", own, "--kubernetes-lease-namespace", own)
	t.Cleanup(func() {
		// KEDA would go on to ask servers that have ended.
		err := w.objects.DeleteCollection(context.Background(), metav1.DeleteOptions{}, metav1.ListOptions{})
		require.NoError(t, err)
	})
	return w
}

func newWorldIn(t *testing.T, c *cluster.Cluster, namespace string, scope ...string) *world {
	t.Helper()
	w := &world{T: t, Cluster: c, Client: c.Client, namespace: namespace, port: freePort(t), kubeconfig: c.Kubeconfig, scope: scope}
	var err error
	w.dynamic, err = dynamic.NewForConfig(c.Config)
	require.NoError(t, err)
	w.objects = w.dynamic.Resource(scaledObjects).Namespace(namespace)
	for _, name := range []string{namespace, "keda"} {
		_, err = c.Client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			require.NoError(t, err)
		}
	}
	require.NoError(t, c.AddService(t.Context(), namespace, "wva"))
	w.address = "wva." + namespace + ".svc:" + w.port
	w.player = newPlayer(t, c, namespace)
	return w
}

func freePort(t *testing.T) string {
	t.Helper()
	port, err := cluster.FreePort()
	require.NoError(t, err)
	return strconv.Itoa(port)
}
