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
	w, runs := c.watches[watchID{resource: pods.gvr}]
	if !runs || len(c.options.Namespaces) == 0 {
		return false
	}
	return w.state().health.isUnreadable()
}

// neededWatches returns the watches that have to run. The cluster is locked.
func (c *Cluster) neededWatches() map[watchID]watchSpec {
	needed := map[watchID]watchSpec{}
	for _, r := range resources {
		if r.isWatched(&c.options) {
			for _, namespace := range c.namespacesOf(r) {
				needed[watchID{r.gvr, namespace, r.labels}] = watchSpec{watchedResource: r}
			}
		}
	}
	for id := range c.wanted {
		if k := c.kinds[id.GroupKind]; k.found {
			needed[watchID{resource: k.resource, namespace: id.namespace}] = watchSpec{targetOf(id.GroupKind), k.scale}
		}
	}
	return needed
}

// namespacesOf returns the namespaces in which a resource is watched, one by one. The cluster is
// locked.
func (c *Cluster) namespacesOf(r *watchedResource) []string {
	switch {
	case r.namespace != "":
		return []string{r.namespace}
	case r == globalConfig:
		return []string{c.options.ConfigNamespace}
	case r == tenantConfig && len(c.options.Namespaces) > 0:
		isGlobal := func(namespace string) bool { return namespace == c.options.ConfigNamespace }
		return slices.DeleteFunc(slices.Clone(c.options.Namespaces), isGlobal)
	}
	if len(c.options.Namespaces) == 0 || r.isClusterScoped || (r.followsPods && !c.noPods) {
		return []string{metav1.NamespaceAll}
	}
	return c.options.Namespaces
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
		errors: c.metrics.errors.WithLabelValues(id.name()), ended: make(chan struct{}), retry: make(chan struct{}, 1),
		rows: map[types.NamespacedName]row{},
	}
	for _, version := range append([]string{id.resource.Version}, r.versions...) {
		objects := c.clients.objects.Resource(id.resource.GroupResource().WithVersion(version))
		if id.namespace == "" {
			w.clients = append(w.clients, objects)
		} else {
			w.clients = append(w.clients, objects.Namespace(id.namespace))
		}
	}
	w.notify = func(cause string) {
		c.changes.note(cause)
		if cause == causeWatch {
			c.rearrange()
		}
	}
	w.recovered = func() {
		w.notify(causeWatch)
		c.retryFailing()
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
	*watchedResource

	id     watchID
	health health
	rows   int
	// unnamed is true of a kind that no variant names. It is watched for its annotations.
	unnamed bool
	absent  bool // the API server did not serve the resource when it last answered for it
}

// isOfKueue reports whether the resource means something only if there is a LocalQueue. An API
// server may forbid to read it without serving it; LocalQueues are known to be absent if it does
// not serve these.
func (s watchState) isOfKueue() bool {
	switch s.watchedResource {
	case clusterQueues, resourceFlavors, cohorts:
		return true
	}
	return s.watchedResource == localQueues && s.absent
}

func (w *resourceWatch) state() watchState {
	w.mu.Lock()
	defer w.mu.Unlock()
	return watchState{watchedResource: w.watchedResource, id: w.watchID, health: w.health, rows: len(w.rows)}
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
		return cmp.Or(cmp.Compare(a.name(), b.name()), cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.labels, b.labels))
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
