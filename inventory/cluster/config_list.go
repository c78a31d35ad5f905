package cluster

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wva-project/wva/inventory"
)

// ConfigMaps lists the ConfigMaps with configuration that a cluster of these options watches, once.
func ConfigMaps(ctx context.Context, options Options) ([]inventory.ConfigMap, error) {
	c, err := Open(options)
	if err != nil {
		return nil, err
	}
	defer c.clients.close()
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	selected, err := c.listSelected(ctx)
	if err != nil {
		return nil, err
	}
	var objects inventory.Objects
	for _, r := range []*watchedResource{globalConfig, tenantConfig} {
		if !r.isWatched(&c.options) {
			continue
		}
		for _, namespace := range c.namespacesOf(r) {
			list, err := c.clients.objects.Resource(r.gvr).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: r.labels})
			if err != nil {
				return nil, fmt.Errorf("listing ConfigMaps: %w; allow list on configmaps, or set kubernetes.configMaps to less", err)
			}
			for i := range list.Items {
				u := &list.Items[i]
				if r == tenantConfig && (u.GetNamespace() == c.options.ConfigNamespace || !c.includes(u.GetNamespace(), selected)) {
					continue
				}
				found, err := inventory.Decode(u)
				if err != nil {
					return nil, err
				}
				objects.Append(found)
			}
		}
	}
	return objects.ConfigMaps, nil
}

// listSelected lists the namespaces that match the selector; nil if there is no selector.
func (c *Cluster) listSelected(ctx context.Context) (map[string]bool, error) {
	selector := c.options.NamespaceSelector
	if selector == nil || !c.options.TenantConfig {
		return nil, nil
	}
	list, err := c.clients.objects.Resource(namespaces.gvr).List(ctx, metav1.ListOptions{LabelSelector: selector.String()})
	if err != nil {
		return nil, fmt.Errorf("listing namespaces: %w; allow list on namespaces", err)
	}
	selected := make(map[string]bool, len(list.Items))
	for i := range list.Items {
		selected[list.Items[i].GetName()] = true
	}
	return selected, nil
}
