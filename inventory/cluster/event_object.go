package cluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wva-project/wva/fleet"
)

// EventObject returns the kind and the UID of the ScaledObject or ScaledJob that defines a variant,
// from memory. It never waits for the API server, and may be called at any time. The zero value: no
// such object was seen.
func (c *Cluster) EventObject(id fleet.VariantID) corev1.ObjectReference {
	first, isOurs := c.eventObject(scaledObjects, id)
	if isOurs {
		return first
	}
	// If a ScaledObject without a WVA trigger and a ScaledJob with one have the same name, the job
	// is the variant.
	second, isOurs := c.eventObject(scaledJobs, id)
	if isOurs || first == (corev1.ObjectReference{}) {
		return second
	}
	return first
}

// eventObject returns the object of one resource, and whether it has a WVA trigger.
func (c *Cluster) eventObject(resource *watchedResource, id fleet.VariantID) (corev1.ObjectReference, bool) {
	r, found := c.rowOf(resource.gvr, types.NamespacedName{Namespace: id.Namespace, Name: id.Name})
	if !found {
		return corev1.ObjectReference{}, false
	}
	objects := slices.Concat(r.objects.ScaledObjects, r.objects.ScaledJobs)
	return corev1.ObjectReference{Kind: resource.kind, UID: r.uid}, len(objects) == 1 && objects[0].IsOurs()
}

// rowOf returns the row of an object.
func (c *Cluster) rowOf(resource schema.GroupVersionResource, key types.NamespacedName) (row, bool) {
	c.mu.Lock()
	w, runs := c.watches[watchID{resource: resource, namespace: key.Namespace}]
	if !runs {
		w, runs = c.watches[watchID{resource: resource}]
	}
	c.mu.Unlock()
	if !runs {
		return row{}, false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	r, found := w.rows[key]
	return r, found
}
