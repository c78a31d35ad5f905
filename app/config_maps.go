package app

import (
	"context"
	"errors"

	"github.com/wva-project/wva/config"
	"github.com/wva-project/wva/events"
	"github.com/wva-project/wva/inventory"
	"github.com/wva-project/wva/inventory/cluster"
	"github.com/wva-project/wva/inventory/manifests"
)

// configNamespace returns the namespace whose ConfigMaps apply to all namespaces; empty if no
// ConfigMaps are read.
func configNamespace(c *config.Config) (string, error) {
	k := c.Kubernetes
	switch {
	case k.ConfigMaps == config.Off:
		return "", nil
	case k.ConfigNamespace != "":
		return k.ConfigNamespace, nil
	case k.Kubeconfig != "" || c.Manifests != "":
		return "", errors.New("kubernetes.configMaps is set, and the server runs in no namespace; set kubernetes.configNamespace")
	}
	return events.PodNamespace()
}

// useConfigMaps puts the ConfigMaps of the tables into use. Their change has triggered the cycle
// that calls it: one change makes one cycle, and the cycle decides by it.
func (s *Server) useConfigMaps(declared inventory.Tables) {
	c := s.settings.Load().config.Kubernetes
	if c.ConfigMaps == config.Off {
		return
	}
	news, err := s.live.Use(configMapsOf(c, s.live.Namespace(), declared.ConfigMaps))
	if err != nil {
		s.logger.Error("configuration of ConfigMaps rejected, keeping the previous one", "errors", err)
	}
	for _, r := range news {
		s.logger.Warn("configuration of a ConfigMap rejected", "config_map", r.Namespace+"/"+r.Name, "key", r.Key, "errors", r.Errors, "used", r.Used())
	}
	if s.source.events != nil {
		s.source.events.rejected(news, s.live.Rejected(), declared.ConfigMaps)
	}
}

// configMapsOf returns the ConfigMaps that the configuration reads.
func configMapsOf(k config.Kubernetes, global string, found []inventory.ConfigMap) (read []config.Map) {
	for _, m := range found {
		if m.Namespace == global || k.ConfigMaps == config.ConfigMapsAll {
			read = append(read, config.Map{Namespace: m.Namespace, Name: m.Name, Data: m.Data, TooLarge: m.TooLarge})
		}
	}
	return read
}

// WithConfigMaps returns a configuration with the ConfigMaps that a server would read which starts
// now, and their keys that are invalid. It reads the cluster, or the directory of manifests, once.
func WithConfigMaps(ctx context.Context, c *config.Config) (*config.Config, []config.Rejection, error) {
	global, err := configNamespace(c)
	if err != nil || global == "" {
		return c, nil, err
	}
	found, err := readConfigMaps(ctx, c, global)
	if err != nil {
		return c, nil, err
	}
	merged := c
	live := config.NewLive(c, global, func(next *config.Config, _ config.Change) error {
		merged = next
		return nil
	})
	rejected, err := live.Use(configMapsOf(c.Kubernetes, global, found))
	return merged, rejected, err
}

func readConfigMaps(ctx context.Context, c *config.Config, global string) ([]inventory.ConfigMap, error) {
	if c.Manifests != "" {
		directory, err := manifests.Open(manifests.Options{Path: c.Manifests})
		if err != nil {
			return nil, err
		}
		return directory.Tables().ConfigMaps, nil
	}
	options, err := clusterOptions(c.Kubernetes, cluster.Options{ConfigNamespace: global})
	if err != nil {
		return nil, err
	}
	return cluster.ConfigMaps(ctx, options)
}
