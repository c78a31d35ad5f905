package app

import (
	"errors"

	"github.com/wva-project/wva/config"
	"github.com/wva-project/wva/events"
	"github.com/wva-project/wva/inventory"
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
	if c.ConfigMaps == config.Off || s.usesConfigMaps && sameRows(declared.ConfigMaps, s.configMaps) {
		return
	}
	found := make([]config.ConfigMap, 0, len(declared.ConfigMaps))
	for _, m := range declared.ConfigMaps {
		if m.Namespace == s.live.Namespace() || c.ConfigMaps == config.ConfigMapsAll {
			found = append(found, config.ConfigMap{Namespace: m.Namespace, Name: m.Name, Data: m.Data, TooLarge: m.TooLarge})
		}
	}
	news, err := s.live.Use(found)
	if err != nil {
		s.logger.Error("configuration of ConfigMaps rejected, keeping the previous one", "errors", err)
		return
	}
	s.configMaps, s.usesConfigMaps = declared.ConfigMaps, true
	for _, r := range news {
		s.logger.Warn("configuration of a ConfigMap rejected", "configMap", r.Namespace+"/"+r.Name, "key", r.Key, "errors", r.Errors, "used", r.Used())
	}
	if s.source.events != nil {
		s.source.events.rejected(news, s.live.Rejected(), declared.ConfigMaps)
	}
}
