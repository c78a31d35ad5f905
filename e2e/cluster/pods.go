package cluster

import (
	"context"
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
	var err error
	c.kubelet, err = kubelet.Start(ctx, kubelet.Options{
		Client: c.Client, Directory: directory, Images: images, Nameserver: nameserver,
		Environment: map[string]string{
			"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443", "KUBERNETES_SERVICE_PORT_HTTPS": "443",
			"KUBERNETES_PORT": "tcp://10.96.0.1:443",
		},
	})
	return err
}
