package cluster

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wva-project/wva/e2e/cluster/kubelet"
	"github.com/wva-project/wva/e2e/cluster/service"
)

// The private network. The cluster's addresses are the usual ones of a default installation.
const (
	advertised = "10.0.0.1" // of the API server: validation rejects a loopback address
	services   = "10.96.0.0/16"
	pods       = "10.244.0.0/16"
	nameserver = "10.96.0.10" // of DNS
	localhost  = "127.0.0.1 localhost\n::1 localhost\n"
	resolver   = "search default.svc.cluster.local svc.cluster.local cluster.local\nnameserver " + nameserver + "\noptions ndots:5\n"
)

// startServices makes the names of Services resolve, and their addresses lead to the pods that the
// kubelet runs.
func (c *Cluster) startServices(ctx context.Context) error {
	var err error
	c.services, err = service.Start(ctx, service.Options{Client: c.Client, DNS: nameserver, Relayed: kubelet.Owns})
	return err
}

// AddService makes a Service without pods, and its namespace if there is none: the listeners of
// this network answer on its address.
func (c *Cluster) AddService(ctx context.Context, namespace, name string) error {
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	_, err := c.Client.CoreV1().Namespaces().Create(ctx, space, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	object := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		// Every port answers; the API requires one.
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}}},
	}
	_, err = c.Client.CoreV1().Services(namespace).Create(ctx, object, metav1.CreateOptions{})
	return err
}

// nextPort is the last port that was returned.
var nextPort atomic.Int32

// FreePort returns a port that nobody else gets. It is below those that the system assigns to
// outgoing connections: one of these could take a port that is not listened to at the moment.
func FreePort() (int, error) {
	const first, last = 20000, 32000
	for {
		port := int(nextPort.Add(1)) + first
		if port > last {
			return 0, fmt.Errorf("find a free port: %d to %d are taken", first, last)
		}
		listener, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port)) //nolint:noctx // it does not wait
		if err == nil {
			return port, listener.Close()
		}
	}
}
