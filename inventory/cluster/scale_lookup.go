package cluster

import (
	"context"
	"fmt"
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/wva-project/wva/inventory"
)

const (
	// scaleQPS and scaleBurst limit the requests for scale subresources.
	scaleQPS, scaleBurst = 5, 10
	// retryScale is the time until the next lookup after one without an answer.
	retryScale = 30 * time.Second
)

// scaleAnswer is the API server's answer for an object's scale subresource.
type scaleAnswer struct {
	version  string    // of the object at the time of the lookup
	asked    time.Time // time of the lookup
	known    bool      // replicas is known, of this version or an earlier one
	replicas int64
	selector string // of the pods; empty if there is none
	failure  string // why the lookup for this version failed
}

// withScale returns the row with the number of replicas and the selector of the answer.
func (r row) withScale(a scaleAnswer) row {
	r.scale = a
	if a.known {
		u := &unstructured.Unstructured{Object: maps.Clone(r.incomplete.Object)}
		u.Object["spec"] = withField(u.Object["spec"], "replicas", a.replicas)
		if a.selector != "" {
			u.Object["status"] = withField(u.Object["status"], "selector", a.selector)
		}
		r.read(u)
	}
	return r
}

// withField returns a copy of an object's fields with one more, unless they have it.
func withField(fields any, name string, value any) map[string]any {
	known, _ := fields.(map[string]any)
	more := map[string]any{name: value}
	maps.Copy(more, known)
	return more
}

// scaleLookup is an object whose scale subresource is to be read.
type scaleLookup struct {
	watch *resourceWatch
	key   types.NamespacedName
}

// lookupDue reports whether the scale of an object has to be looked up now. If not, it returns the
// time at which it has to be; zero if never.
func (r row) lookupDue(now time.Time) (bool, time.Time) {
	switch {
	case r.incomplete == nil:
		return false, time.Time{}
	case r.scale.version != r.version:
		return true, time.Time{}
	case r.scale.failure == "":
		return false, time.Time{}
	}
	again := r.scale.asked.Add(retryScale)
	return !now.Before(again), again
}

// awaitsLookup reports whether the number of replicas is not known yet, and no lookup has failed.
func (r row) awaitsLookup() bool {
	return r.incomplete != nil && !r.scale.known && r.scale.failure == ""
}

// lookUpScales reads the scale subresource of objects without a number of replicas, one after
// another: the last resort. An object is looked up once per change.
func (c *Cluster) lookUpScales(ctx context.Context) error {
	limit := flowcontrol.NewTokenBucketRateLimiter(scaleQPS, scaleBurst)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.scaleLookups.ready:
		}
		for {
			q, found := c.scaleLookups.next()
			if !found || limit.Wait(ctx) != nil {
				break
			}
			q.watch.lookUpScale(ctx, q.key)
		}
	}
}

// lookUpScale looks up one object.
func (w *resourceWatch) lookUpScale(ctx context.Context, key types.NamespacedName) {
	w.mu.Lock()
	asked, found := w.rows[key]
	w.mu.Unlock()
	if isOpen, _ := asked.lookupDue(time.Now()); !found || !isOpen {
		return
	}
	answer, err := w.scaleOf(ctx, key)
	if ctx.Err() != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now, found := w.rows[key]
	if !found || now.uid != asked.uid || now.incomplete == nil {
		return
	}
	if err != nil {
		w.errors.Inc()
		answer = now.scale
		answer.failure = err.Error()
	}
	answer.version, answer.asked = asked.version, time.Now()
	w.rows[key] = now.withScale(answer)
	w.notify(w.cause)
}

func (w *resourceWatch) scaleOf(ctx context.Context, key types.NamespacedName) (scaleAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	scale, err := w.objects.Namespace(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{}, "scale")
	if err != nil {
		return scaleAnswer{}, err
	}
	replicas, _, err := unstructured.NestedInt64(scale.Object, "spec", "replicas") // 0 is left out
	selector, _, _ := unstructured.NestedString(scale.Object, "status", "selector")
	return scaleAnswer{known: true, replicas: replicas, selector: selector}, err
}

// problem returns why the number of replicas of an object is not known; false if it is.
func (r row) problem(id watchID, key types.NamespacedName) (inventory.Problem, bool) {
	if r.decodeError != "" {
		return inventory.Problem{Object: id.name() + " " + key.String(), Text: r.decodeError, Remedy: "correct the object"}, true
	}
	if r.incomplete == nil || r.scale.failure == "" {
		return inventory.Problem{}, false
	}
	return inventory.Problem{
		Object: fmt.Sprintf("%s %s", id.name(), key),
		Text:   "has no number of replicas in its spec, and none in its scale subresource: " + r.scale.failure,
		Remedy: "set its number of replicas, and allow get on " + id.name() + "/scale in the role of the service account",
	}, true
}
