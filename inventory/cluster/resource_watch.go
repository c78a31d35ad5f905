package cluster

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/wva-project/wva/inventory"
)

// watchID names a watch: its resource, its namespace and the labels of its objects; an empty
// namespace is all of them.
type watchID struct {
	resource  schema.GroupVersionResource
	namespace string
	labels    string
}

// String returns the resource as roles name it: "deployments.apps", with "in namespace llm" if the
// watch is of one namespace.
func (id watchID) String() string {
	if id.namespace == "" {
		return id.name()
	}
	return id.name() + " in namespace " + id.namespace
}

// fieldSelector selects the only object; empty if all are watched.
func (w *resourceWatch) fieldSelector() string {
	if w.watchedResource.name == "" {
		return ""
	}
	return fields.OneTermEqualSelector(metav1.ObjectNameField, w.watchedResource.name).String()
}

// name returns the resource as roles and metrics name it.
func (id watchID) name() string { return id.resource.GroupResource().String() }

// resourceWatch is the rows of one resource, in one namespace or in all. It does the work of an
// informer, but decodes objects at once and keeps only the fields that the tables need.
type resourceWatch struct {
	watchID
	watchSpec
	objects dynamic.NamespaceableResourceInterface // of the resource
	// clients are those of the watched objects, one for each version of the resource
	clients []dynamic.ResourceInterface
	notify  func(cause string)
	// recovered is called when a failure has ended.
	recovered func()
	errors    interface{ Inc() }
	retry     chan struct{} // buffer of one: the next attempt is to be made now
	streams   sync.WaitGroup
	stop      context.CancelFunc
	ended     chan struct{}

	mu       sync.Mutex
	version  int  // index of the client in use
	next     bool // it has just changed, and is to be tried at once
	rows     map[types.NamespacedName]row
	health   health
	complete bool // the list of a stream is, so the next Replace ends a failure
	absent   bool // the API server does not serve the resource, which is optional
}

// watchSpec is how the objects of a watch are read.
type watchSpec struct {
	*watchedResource

	// scale is the paths of the fields of the scale subresource; zero if Decode knows the kind.
	scale scalePaths
}

// row is one object of a watch.
type row struct {
	uid         types.UID
	version     string
	objects     inventory.Objects
	labels      map[string]string // of a namespace
	decodeError string            // why it cannot be decoded; empty if it can
	// the object, of a scale target without a number of replicas
	incomplete *unstructured.Unstructured
	scale      scaleAnswer // the number of replicas by the scale subresource
}

// notServedRetry is the longest time between two attempts to read a resource that the API server
// does not serve: a CustomResourceDefinition may be installed at any time.
const notServedRetry = 5 * time.Second

// optionalRetry is the same for a resource that many clusters never serve.
const optionalRetry = time.Minute

// maxUnnamedPause is the pause from which a watch counts as failing that is ended again and again,
// though its lists succeed: the rows are as old.
const maxUnnamedPause = 15 * time.Second

// run watches until the context ends. After a failure it tries again, 0.8 s later at first, then up
// to half a minute apart, and at once when another watch has recovered.
func (w *resourceWatch) run(ctx context.Context) {
	defer close(w.ended)
	source := &listWatcher{watch: w}
	backoff := wait.Backoff{Duration: 800 * time.Millisecond, Cap: 15 * time.Second, Steps: 10, Factor: 2, Jitter: 1}
	waits := retryClock{done: ctx.Done(), retry: w.retry}
	reflector := cache.NewReflectorWithOptions(source, nil, w, cache.ReflectorOptions{
		Name: w.String(), TypeDescription: w.String(), Clock: waits, Backoff: &backoff,
	})
	delay := backoff.DelayFunc()
	for ctx.Err() == nil {
		started := time.Now()
		_ = reflector.ListAndWatchWithContext(ctx) // the list watcher has noted the failure
		if time.Since(started) > 2*time.Minute {   // it worked
			delay = backoff.DelayFunc()
		}
		pause, failure := delay(), w.state().health.failure
		switch {
		case w.isNext():
			pause = 0
		case failure == nil && w.isAbsent():
			pause = optionalRetry
		case failure != nil && failure.class == failedNotServed:
			pause = min(pause, notServedRetry)
		case failure == nil && pause >= maxUnnamedPause && ctx.Err() == nil:
			w.noteFailure(verbWatch, errEnds)
		}
		<-waits.After(pause)
	}
	source.end()
	w.streams.Wait()
}

// client returns that of the version in use.
func (w *resourceWatch) client() dynamic.ResourceInterface {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.clients[w.version]
}

// isNext reports, once, whether the next version of the resource is to be tried at once.
func (w *resourceWatch) isNext() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	next := w.next
	w.next = false
	return next
}

// retryClock is the real time, but its waits end with the watch, which the reflector's own would
// not, and when the next attempt is to be made now.
type retryClock struct {
	clock.RealClock
	done, retry <-chan struct{}
}

// After returns a channel that gets the time after d, at a retry, or at the end of the watch.
func (c retryClock) After(d time.Duration) <-chan time.Time {
	fired := make(chan time.Time, 1)
	go func() {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-c.retry:
		case <-c.done:
		}
		fired <- time.Now()
	}()
	return fired
}

// decode reads an object into an item. It changes the object.
func (w *resourceWatch) decode(u *unstructured.Unstructured, into *item) {
	into.Name, into.Namespace, into.UID, into.ResourceVersion = u.GetName(), u.GetNamespace(), u.GetUID(), u.GetResourceVersion()
	into.row = row{uid: into.UID, version: into.ResourceVersion}
	// a field of another type is no selector
	selector, _, _ := unstructured.NestedString(u.Object, w.scale.selector...)
	strip(u, w.fields)
	if w.watchedResource == namespaces {
		into.row.labels = u.GetLabels()
		return
	}
	setSelector(u, selector)
	if w.scale.replicas != nil && !moveReplicas(u, w.scale.replicas) {
		into.row.incomplete = u
		return
	}
	into.row.read(u)
}

// read decodes an object into the row.
func (r *row) read(u *unstructured.Unstructured) {
	objects, err := inventory.Decode(u)
	r.objects = objects
	if err != nil {
		r.objects, r.decodeError = inventory.Objects{}, err.Error()
	}
}

// moveReplicas copies the number of replicas to spec.replicas, from which Decode reads it; false if
// the object does not have one.
func moveReplicas(u *unstructured.Unstructured, from []string) bool {
	n, found, err := unstructured.NestedInt64(u.Object, from...)
	if !found || err != nil {
		return false
	}
	return unstructured.SetNestedField(u.Object, n, "spec", "replicas") == nil
}

// setSelector writes the selector of the scale to status.selector, from which Decode reads it.
func setSelector(u *unstructured.Unstructured, selector string) {
	if selector != "" {
		// fails if status is no object, and then there is no selector
		_ = unstructured.SetNestedField(u.Object, selector, "status", "selector")
	}
}

// Add takes an object that is new.
func (w *resourceWatch) Add(object any) error { return w.put(object) }

// Update takes an object that has changed.
func (w *resourceWatch) Update(object any) error { return w.put(object) }

func (w *resourceWatch) put(object any) error {
	a, err := itemOf(object)
	if err != nil {
		return err
	}
	w.mu.Lock()
	key := types.NamespacedName{Namespace: a.Namespace, Name: a.Name}
	before, found := w.rows[key]
	now := a.row.after(before)
	changed := !found || !now.same(before)
	w.rows[key] = now
	if changed {
		w.health.changed = time.Now()
	}
	w.mu.Unlock()
	if changed {
		w.notify(w.cause)
	}
	return nil
}

// Delete removes an object. It may get a tombstone, or the object.
func (w *resourceWatch) Delete(object any) error {
	if tombstone, isOne := object.(cache.DeletedFinalStateUnknown); isOne {
		object = tombstone.Obj
	}
	a, err := itemOf(object)
	if err != nil {
		return err
	}
	w.mu.Lock()
	key := types.NamespacedName{Namespace: a.Namespace, Name: a.Name}
	_, found := w.rows[key]
	delete(w.rows, key)
	if found {
		w.health.changed = time.Now()
	}
	w.mu.Unlock()
	if found {
		w.notify(w.cause)
	}
	return nil
}

// Replace takes a whole list. An object that is not in it is gone. A failure ends together with the
// old rows.
func (w *resourceWatch) Replace(list []any, _ string) error {
	items := make([]*item, len(list))
	for i, object := range list {
		a, err := itemOf(object)
		if err != nil {
			return err
		}
		items[i] = a
	}
	w.mu.Lock()
	changed := w.replace(items)
	ended := w.complete && w.endFailure()
	w.complete = false
	w.mu.Unlock()
	if changed {
		w.notify(w.cause)
	}
	if ended {
		w.recovered()
	}
	return nil
}

// replace replaces the rows, and reports whether they changed. The watch is locked.
func (w *resourceWatch) replace(items []*item) (changed bool) {
	changed = !w.health.listed || len(items) != len(w.rows)
	rows := make(map[types.NamespacedName]row, len(items))
	for _, a := range items {
		key := types.NamespacedName{Namespace: a.Namespace, Name: a.Name}
		before, found := w.rows[key]
		rows[key] = a.row.after(before)
		changed = changed || !found || !rows[key].same(before)
	}
	w.rows, w.absent = rows, false
	w.health.listed, w.health.seen = true, time.Now()
	if changed {
		w.health.changed = w.health.seen
	}
	return changed
}

// Resync does nothing: each rebuild reads all rows.
func (w *resourceWatch) Resync() error { return nil }

func itemOf(object any) (*item, error) {
	a, isOne := object.(*item)
	if !isOne {
		return nil, fmt.Errorf("%T is not a decoded object", object)
	}
	return a, nil
}

// after returns the row as the successor of another one of the same name. An earlier answer about
// the scale of the same object is kept until the next one.
func (r row) after(before row) row {
	if r.incomplete != nil && before.scale.known && r.uid == before.uid {
		return r.withScale(before.scale)
	}
	return r
}

// same reports whether two rows have the same content.
func (r row) same(other row) bool {
	return r.decodeError == other.decodeError && (r.incomplete == nil) == (other.incomplete == nil) && (r.incomplete == nil || r.version == other.version) &&
		reflect.DeepEqual(r.labels, other.labels) && reflect.DeepEqual(r.objects, other.objects)
}
