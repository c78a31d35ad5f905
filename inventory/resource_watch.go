package inventory

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// watchID names a feed: what it watches, and where; an empty namespace is all of them.
type watchID struct {
	resource  schema.GroupVersionResource
	namespace string
}

// String returns what is watched as roles name it: "deployments.apps", and "in namespace llm" where it is one.
func (id watchID) String() string {
	if id.namespace == "" {
		return id.name()
	}
	return id.name() + " in namespace " + id.namespace
}

// name returns the resource as roles and metrics name it.
func (id watchID) name() string { return id.resource.GroupResource().String() }

// resourceWatch holds one kind of object, in one namespace or in all, as the API server shows it. It is what an informer is, but that
// what it holds is decoded and cut down to what the tables need.
type resourceWatch struct {
	watchID
	watchSpec
	objects dynamic.NamespaceableResourceInterface // of the resource
	client  dynamic.ResourceInterface              // of its objects that are watched
	notify  func(cause string)
	errors  interface{ Inc() }
	streams sync.WaitGroup
	stop    context.CancelFunc
	ended   chan struct{}

	mu     sync.Mutex
	rows   map[types.NamespacedName]row
	health health
}

// watchSpec is how the objects of a feed are read.
type watchSpec struct {
	cause string // of a change of it
	kind  string // of its objects; empty where they are no scale targets
	fields fieldMask
	// replicasPath is where an object of the kind says how many replicasPath it wants; nil where Decode knows.
	replicasPath []string
}

// row is one object of a feed.
type row struct {
	uid     types.UID
	version string
	objects Objects
	labels  map[string]string          // of a namespace
	decodeError   string                     // why it cannot be decoded
	incomplete    *unstructured.Unstructured // of a scale target that does not say how many replicas it wants
	scale   scaleAnswer                // what the API server says instead
}

// run watches until the context ends. What fails is tried again after 0.8 s, then up to half a minute apart.
func (f *resourceWatch) run(ctx context.Context) {
	defer close(f.ended)
	source := &listWatcher{feed: f}
	backoff := wait.Backoff{Duration: 800 * time.Millisecond, Cap: 15 * time.Second, Steps: 10, Factor: 2, Jitter: 1}
	reflector := cache.NewReflectorWithOptions(source, nil, f, cache.ReflectorOptions{
		Name: f.String(), TypeDescription: f.String(), Clock: endingClock{done: ctx.Done()}, Backoff: &backoff,
	})
	_ = backoff.DelayWithReset(clock.RealClock{}, 2*time.Minute).Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		_ = reflector.ListAndWatchWithContext(ctx) // the source has told what failed
		return false, nil
	})
	source.end()
	f.streams.Wait()
}

// endingClock is the time, but that no wait is longer than the feed runs: the reflector's would be.
type endingClock struct {
	clock.RealClock
	done <-chan struct{}
}

// After returns a channel that gets the time after a while, or at the end.
func (c endingClock) After(d time.Duration) <-chan time.Time {
	fired := make(chan time.Time, 1)
	go func() {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-c.done:
		}
		fired <- time.Now()
	}()
	return fired
}

// decode makes an arrival of an object, which it takes apart.
func (f *resourceWatch) decode(u *unstructured.Unstructured, into *item) {
	into.Name, into.Namespace, into.UID, into.ResourceVersion = u.GetName(), u.GetNamespace(), u.GetUID(), u.GetResourceVersion()
	into.row = row{uid: into.UID, version: into.ResourceVersion}
	strip(u, f.fields)
	if f.cause == causeNamespace {
		into.row.labels = u.GetLabels()
		return
	}
	if f.replicasPath != nil && !moveReplicas(u, f.replicasPath) {
		into.row.incomplete = u
		return
	}
	into.row.read(u)
}

// read decodes an object into the row.
func (r *row) read(u *unstructured.Unstructured) {
	objects, err := Decode(u)
	r.objects = objects
	if err != nil {
		r.objects, r.decodeError = Objects{}, err.Error()
	}
}

// moveReplicas puts the number of replicas where Decode reads it; false where the object does not say it.
func moveReplicas(u *unstructured.Unstructured, from []string) bool {
	n, found, err := unstructured.NestedInt64(u.Object, from...)
	if !found || err != nil {
		return false
	}
	return unstructured.SetNestedField(u.Object, n, "spec", "replicas") == nil
}

// Add takes an object that is new.
func (f *resourceWatch) Add(object any) error { return f.put(object) }

// Update takes an object that has changed.
func (f *resourceWatch) Update(object any) error { return f.put(object) }

func (f *resourceWatch) put(object any) error {
	a, err := itemOf(object)
	if err != nil {
		return err
	}
	f.mu.Lock()
	key := types.NamespacedName{Namespace: a.Namespace, Name: a.Name}
	before, found := f.rows[key]
	now := a.row.after(before)
	f.rows[key] = now
	f.mu.Unlock()
	if !found || !now.same(before) {
		f.notify(f.cause)
	}
	return nil
}

// Delete forgets an object. It may get a tombstone, or the object.
func (f *resourceWatch) Delete(object any) error {
	if tombstone, isOne := object.(cache.DeletedFinalStateUnknown); isOne {
		object = tombstone.Obj
	}
	a, err := itemOf(object)
	if err != nil {
		return err
	}
	f.mu.Lock()
	key := types.NamespacedName{Namespace: a.Namespace, Name: a.Name}
	_, found := f.rows[key]
	delete(f.rows, key)
	f.mu.Unlock()
	if found {
		f.notify(f.cause)
	}
	return nil
}

// Replace takes a whole list: what is not in it is gone.
func (f *resourceWatch) Replace(list []any, _ string) error {
	rows := make(map[types.NamespacedName]row, len(list))
	f.mu.Lock()
	defer f.mu.Unlock()
	changed := !f.health.listed || len(list) != len(f.rows)
	for _, object := range list {
		a, err := itemOf(object)
		if err != nil {
			return err
		}
		key := types.NamespacedName{Namespace: a.Namespace, Name: a.Name}
		before, found := f.rows[key]
		rows[key] = a.row.after(before)
		changed = changed || !found || !rows[key].same(before)
	}
	f.rows = rows
	f.health.listed, f.health.seen = true, time.Now()
	if changed {
		f.notify(f.cause)
	}
	return nil
}

// Resync does nothing: the tables are made of all rows at any time.
func (f *resourceWatch) Resync() error { return nil }

func itemOf(object any) (*item, error) {
	a, isOne := object.(*item)
	if !isOne {
		return nil, fmt.Errorf("%T is no decoded object", object)
	}
	return a, nil
}

// after returns the row as the one that follows another of the same name. What was asked of the API server about the same
// object stays until it is asked again.
func (r row) after(before row) row {
	if r.incomplete != nil && before.scale.known && r.uid == before.uid {
		return r.withScale(before.scale)
	}
	return r
}

// same reports whether two rows say the same.
func (r row) same(other row) bool {
	return r.decodeError == other.decodeError && (r.incomplete == nil) == (other.incomplete == nil) && (r.incomplete == nil || r.version == other.version) &&
		reflect.DeepEqual(r.labels, other.labels) && reflect.DeepEqual(r.objects, other.objects)
}
