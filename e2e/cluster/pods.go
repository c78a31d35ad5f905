package cluster

import (
	"context"
	"crypto/tls"
	"os"
	"path/filepath"

	"github.com/wva-project/wva/e2e/cluster/kubelet"
)

// startKubelet runs the pods of the images.
func (c *Cluster) startKubelet(ctx context.Context, images []kubelet.Image) error {
	directory := c.path("kubelet")
	if err := os.MkdirAll(filepath.Join(directory, "logs"), 0o755); err != nil {
		return err
	}
	own, err := c.servers.issue(identity{name: "kubelet", hosts: []string{advertised}})
	if err != nil {
		return err
	}
	certificate, err := tls.X509KeyPair(own.certificate, own.key)
	if err != nil {
		return err
	}
	c.kubelet, err = kubelet.Start(ctx, kubelet.Options{
		Client: c.Client, Directory: directory, Images: images, Nameserver: nameserver, Address: advertised, Certificate: certificate,
		Environment: map[string]string{
			"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443", "KUBERNETES_SERVICE_PORT_HTTPS": "443",
			"KUBERNETES_PORT": "tcp://10.96.0.1:443",
		},
	})
	return err
}
