package scenarios

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	wvav1alpha1 "github.com/wva-project/wva/proto/wva/v1alpha1"
)

var (
	deployments  = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	statefulSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}
)

// A fleet under load, as most scenarios begin: busy is the load, in requests a second, for which
// busyReplicas replicas are right. It needs 2.4 of them, and 2.75 with the headroom of a
// scale-down. The number stays if a busy machine measures a capacity up to 20 % too low or 35 % too
// high.
const (
	busy         = 5.5
	busyReplicas = 3
)

// atLoad starts a server and a variant that is busy, and returns once KEDA and the HPA follow its
// number.
func (w *world) atLoad(v spec) *server {
	w.Helper()
	v.replicas = busyReplicas
	return w.underLoad(v, busy)
}

// underLoad is atLoad for any load that the replicas of the variant are right for.
func (w *world) underLoad(v spec, perSecond float64) *server {
	w.Helper()
	w.player.ask(v.model, perSecond)
	s := w.start()
	s.awaitReady()
	w.declare(v)
	w.followed(s, v.name, int32(v.replicas))
	return s
}

// followed waits until a number is decided and the HPA follows.
func (w *world) followed(s *server, name string, replicas int32) {
	w.Helper()
	eventually(w, deadline, fmt.Sprintf("%s is decided at %d, and its HPA is active", name, replicas), func() bool {
		v := s.variants()[name]
		status, _ := autoscalerActive(v)
		return isDecided(v) && v.GetDesiredReplicas() == replicas && v.GetCurrentReplicas() == replicas && status == "True"
	})
}

func isDecided(v *wvav1alpha1.Variant) bool { return v.GetDecidedTime() != nil && !v.GetHeld() }

// number returns the number of replicas in the spec of a workload.
func (w *world) number(ctx context.Context, kind schema.GroupVersionResource, name string) (int, error) {
	object, err := w.dynamic.Resource(kind).Namespace(w.namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return 0, err
	}
	replicas, _, err := unstructured.NestedInt64(object.Object, "spec", "replicas")
	return int(replicas), err
}

// course is the numbers of replicas of a workload, in order and without repetition.
type course struct {
	mu   sync.Mutex
	seen []int
}

// follow watches the replicas of a workload until the end of the test. It passes over the times at
// which the API server does not answer.
func (w *world) follow(kind schema.GroupVersionResource, name string) *course {
	w.Helper()
	now, err := w.number(w.Context(), kind, name)
	require.NoError(w, err)
	c := &course{seen: []int{now}}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ; w.Context().Err() == nil; time.Sleep(tick) {
			if now, err := w.number(w.Context(), kind, name); err == nil {
				c.add(now)
			}
		}
	}()
	w.Cleanup(func() {
		<-ended // the context has ended
		w.Logf("replicas of %s: %v", name, c.seen)
	})
	return c
}

func (c *course) add(now int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen[len(c.seen)-1] != now {
		c.seen = append(c.seen, now)
	}
}

// low and high are the lowest and the highest number so far.
func (c *course) low() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Min(c.seen)
}

func (c *course) high() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Max(c.seen)
}

// settles waits until a Deployment has a number of replicas in its spec and keeps it.
func (w *world) settles(name string, replicas int) {
	w.Helper()
	w.settlesWithin(deployments, name, replicas, replicas)
}

// settlesWithin waits until the replicas of a workload are within bounds and stay there.
func (w *world) settlesWithin(kind schema.GroupVersionResource, name string, low, high int) {
	w.Helper()
	begun := time.Now()
	since := begun
	eventually(w, deadline, fmt.Sprintf("%s settles at %d to %d", name, low, high), func() bool {
		now, err := w.number(w.Context(), kind, name)
		require.NoError(w, err)
		if now < low || now > high {
			since = time.Now()
		}
		return time.Since(since) > settled
	})
	w.Logf("%s settled at %d to %d replicas after %v", name, low, high, (time.Since(begun) - settled).Round(100*time.Millisecond))
}
