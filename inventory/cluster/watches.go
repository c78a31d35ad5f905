package cluster

import (
	"cmp"
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// The resources that are watched for any variants.
func scaledObjectsResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "keda.sh", Version: "v1alpha1", Resource: "scaledobjects"}
}

func scaledJobsResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "keda.sh", Version: "v1alpha1", Resource: "scaledjobs"}
}

func podsResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "pods"}
}

func nodesResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
}

func namespacesResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
}

func autoscalersResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}
}

// supervise starts and stops watches until the context ends, and waits for them.
func (c *Cluster) supervise(ctx context.Context) error {
	defer c.stopWatches(func(watchID) bool { return true })
	for {
		again := c.resolveKinds(ctx)
		c.startAndStop(ctx)
		var retry <-chan time.Time
		var timer *time.Timer
		if again > 0 {
			timer = time.NewTimer(again)
			retry = timer.C
		}
		select {
		case <-ctx.Done():
		case <-c.arrange:
		case <-retry:
		}
		if timer != nil {
			timer.Stop()
		}
		if ctx.Err() != nil {
			return nil
		}
	}
}

// startAndStop starts the missing watches, and stops those that are not needed any more.
func (c *Cluster) startAndStop(ctx context.Context) {
	c.mu.Lock()
	c.noPods = c.noPods || c.podsAreNamespaced()
	needed := c.neededWatches()
	c.mu.Unlock()
	c.stopWatches(func(id watchID) bool { _, isNeeded := needed[id]; return !isNeeded })
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, r := range needed {
		if _, runs := c.watches[id]; !runs {
			c.watches[id] = c.startWatch(ctx, id, r)
		}
	}
	if !c.arranged {
		c.arranged = true
		c.changes.note(causeWatch)
	}
}

// podsAreNamespaced reports whether the pods of all namespaces may not be read, so that those of
// Namespaces are read instead. It is tried once per run.
func (c *Cluster) podsAreNamespaced() bool {
	w, runs := c.watches[watchID{resource: podsResource()}]
	if !runs || len(c.options.Namespaces) == 0 {
		return false
	}
	return w.state().health.isUnreadable()
}

// neededWatches returns the watches that have to run. The cluster is locked.
func (c *Cluster) neededWatches() map[watchID]watchSpec {
	needed := map[watchID]watchSpec{}
	everywhere := []string{metav1.NamespaceAll}
	namespaces := c.options.Namespaces
	if len(namespaces) == 0 {
		namespaces = everywhere
	}
	add := func(resource schema.GroupVersionResource, namespaces []string, r watchSpec) {
		for _, namespace := range namespaces {
			needed[watchID{resource, namespace}] = r
		}
	}
	add(scaledObjectsResource(), namespaces, watchSpec{cause: causeScaledObject, fields: scaledObjectFields()})
	add(scaledJobsResource(), namespaces, watchSpec{cause: causeScaledObject, fields: scaledObjectFields()})
	add(autoscalersResource(), namespaces, watchSpec{cause: causeAutoscaler, fields: hpaFields()})
	add(nodesResource(), everywhere, watchSpec{cause: causeNode, fields: nodeFields()})
	if c.noPods {
		add(podsResource(), namespaces, watchSpec{cause: causePod, fields: podFields()})
	} else {
		add(podsResource(), everywhere, watchSpec{cause: causePod, fields: podFields()})
	}
	if c.options.NamespaceSelector != nil {
		add(namespacesResource(), everywhere, watchSpec{cause: causeNamespace, fields: namespaceFields()})
	}
	for id := range c.wanted {
		if k := c.kinds[id.GroupKind]; k.found {
			needed[watchID{k.resource, id.namespace}] = watchSpec{cause: causeWorkload, kind: id.Kind, fields: targetFields(k.replicas == nil), replicasPath: k.replicas}
		}
	}
	return needed
}

// startWatch starts a watch.
func (c *Cluster) startWatch(ctx context.Context, id watchID, r watchSpec) *resourceWatch {
	w := c.newWatch(id, r)
	ctx, w.stop = context.WithCancel(ctx)
	c.options.Logger.Debug("watch started", "resource", id.name(), "namespace", id.namespace)
	go w.run(ctx)
	return w
}

func (c *Cluster) newWatch(id watchID, r watchSpec) *resourceWatch {
	w := &resourceWatch{
		watchID: id, watchSpec: r, objects: c.clients.objects.Resource(id.resource),
		errors: c.metrics.errors.WithLabelValues(id.name()), ended: make(chan struct{}), rows: map[types.NamespacedName]row{},
	}
	w.client = w.objects
	if id.namespace != "" {
		w.client = w.objects.Namespace(id.namespace)
	}
	w.notify = func(cause string) {
		c.changes.note(cause)
		if cause == causeWatch {
			c.rearrange()
		}
	}
	return w
}

// stopWatches stops the watches that are not needed any more, waits for them, and removes their
// rows.
func (c *Cluster) stopWatches(isOver func(watchID) bool) {
	var over []*resourceWatch
	c.mu.Lock()
	for id, w := range c.watches {
		if isOver(id) {
			over = append(over, w)
		}
	}
	c.mu.Unlock()
	for _, w := range over {
		w.stop()
	}
	for _, w := range over {
		<-w.ended
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range over {
		delete(c.watches, w.watchID)
		c.changes.note(w.cause)
	}
	for _, w := range over {
		if !c.isWatched(w.resource) {
			c.metrics.errors.DeleteLabelValues(w.name())
		}
	}
}

// isWatched reports whether a watch of the resource runs. The cluster is locked.
func (c *Cluster) isWatched(resource schema.GroupVersionResource) bool {
	for id := range c.watches {
		if id.resource == resource {
			return true
		}
	}
	return false
}

// rearrange wakes the supervisor.
func (c *Cluster) rearrange() {
	select {
	case c.arrange <- struct{}{}:
	default:
	}
}

// watchState is the state of a watch at one instant.
type watchState struct {
	id     watchID
	cause  string
	health health
	rows   int
	// unnamed is true of a kind that no variant names. It is watched for its annotations.
	unnamed bool
}

func (w *resourceWatch) state() watchState {
	w.mu.Lock()
	defer w.mu.Unlock()
	return watchState{id: w.watchID, cause: w.cause, health: w.health, rows: len(w.rows)}
}

// runningWatches returns the watches, sorted.
func (c *Cluster) runningWatches() []*resourceWatch {
	c.mu.Lock()
	defer c.mu.Unlock()
	watches := make([]*resourceWatch, 0, len(c.watches))
	for _, w := range c.watches {
		watches = append(watches, w)
	}
	slices.SortFunc(watches, func(a, b *resourceWatch) int {
		return cmp.Or(cmp.Compare(a.name(), b.name()), cmp.Compare(a.namespace, b.namespace))
	})
	return watches
}

// watchStates returns the states of the watches, sorted.
func (c *Cluster) watchStates() []watchState {
	watches := c.runningWatches()
	states := make([]watchState, len(watches))
	for i, w := range watches {
		states[i] = w.state()
	}
	return states
}
