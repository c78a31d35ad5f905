package cluster

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/wva-project/wva/inventory/manifesttest"
)

// apiServer is an API server in memory. It is a transport, so that it needs no socket and works in
// a bubble of synctest. It lists, watches (from a version, or with the initial events), discovers,
// and answers for scale subresources.
type apiServer struct {
	t *testing.T

	mu       sync.Mutex
	version  int
	kinds    []servedKind
	objects  map[string]map[string]*unstructured.Unstructured // by resource, then namespace/name
	log      map[string][]logged                              // past events by resource
	streams  map[*eventStream]bool
	denied   map[string]int // "verb resource" or "verb resource in namespace": the code
	down     error          // of every request
	hanging  chan struct{}  // requests wait until it is closed; nil: they do not
	noEvents bool           // initial events are not known, as of old API servers
	pageSize int            // of lists; 0: they are whole
	cut      string         // streams of this resource end before their first objects are complete
	expire   string         // streams of this resource end at once, since their version is too old
	scales   map[string]int // the answers for scale subresources, by namespace/name
	// selectors are those of the same answers
	selectors map[string]string
	requests  []string
}

// servedKind is a kind of the API server.
type servedKind struct {
	group, version, plural, kind string
	namespaced, scale            bool
}

func (k servedKind) apiVersion() string { return strings.TrimPrefix(k.group+"/"+k.version, "/") }

func (k servedKind) resource() string { return strings.TrimSuffix(k.plural+"."+k.group, ".") }

type logged struct {
	version int
	kind    string
	object  *unstructured.Unstructured
}

func newAPIServer(t *testing.T) *apiServer {
	return &apiServer{
		t: t, version: 1,
		kinds: []servedKind{
			{"", "v1", "pods", "Pod", true, false},
			{"", "v1", "nodes", "Node", false, false},
			{"", "v1", "namespaces", "Namespace", false, false},
			{"", "v1", "configmaps", "ConfigMap", true, false},
			{"", "v1", "resourcequotas", "ResourceQuota", true, false},
			{"apps", "v1", "deployments", "Deployment", true, true},
			{"apps", "v1", "statefulsets", "StatefulSet", true, true},
			{"autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", true, false},
			{"keda.sh", "v1alpha1", "scaledobjects", "ScaledObject", true, false},
			{"keda.sh", "v1alpha1", "scaledjobs", "ScaledJob", true, false},
			{"apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", false, false},
		},
		objects: map[string]map[string]*unstructured.Unstructured{}, log: map[string][]logged{}, streams: map[*eventStream]bool{},
		denied: map[string]int{}, scales: map[string]int{},
	}
}

// apply creates or changes the objects of manifests.
func (s *apiServer) apply(manifests ...string) {
	s.t.Helper()
	for _, u := range manifesttest.Decode(manifests...) {
		s.put(u)
	}
}

func (s *apiServer) put(u *unstructured.Unstructured) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kindOf(u)
	if k.namespaced && u.GetNamespace() == "" {
		u.SetNamespace("default")
	}
	s.version++
	u.SetResourceVersion(strconv.Itoa(s.version))
	if u.GetUID() == "" {
		u.SetUID("uid")
	}
	u.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kubectl"}})
	key, event := u.GetNamespace()+"/"+u.GetName(), "MODIFIED"
	if s.objects[k.resource()] == nil {
		s.objects[k.resource()] = map[string]*unstructured.Unstructured{}
	}
	if _, found := s.objects[k.resource()][key]; !found {
		event = "ADDED"
	}
	s.objects[k.resource()][key] = u
	s.tell(k, event, u)
}

// remove deletes an object, named as "resource namespace/name".
func (s *apiServer) remove(name string) {
	s.t.Helper()
	resource, key, _ := strings.Cut(name, " ")
	s.mu.Lock()
	defer s.mu.Unlock()
	u, found := s.objects[resource][key]
	require.True(s.t, found, name)
	delete(s.objects[resource], key)
	s.version++
	u = u.DeepCopy()
	u.SetResourceVersion(strconv.Itoa(s.version))
	s.tell(s.kindOf(u), "DELETED", u)
}

// serve adds a kind.
func (s *apiServer) serve(kinds ...servedKind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kinds = append(s.kinds, kinds...)
}

// deny makes requests such as "list pods" or "watch pods in llm" fail with a code; 0 allows them
// again. All streams end.
func (s *apiServer) deny(request string, code int) {
	s.mu.Lock()
	s.denied[request] = code
	s.mu.Unlock()
	s.end()
}

// denyReading makes lists and watches of a resource fail with a code; 0 allows them again.
func (s *apiServer) denyReading(resource string, code int) {
	s.deny("list "+resource, code)
	s.deny("watch "+resource, code)
}

// flap makes lists and watches of a resource fail with a code, and ends its streams only; 0 allows
// them again.
func (s *apiServer) flap(resource string, code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.denied["list "+resource], s.denied["watch "+resource] = code, code
	for stream := range s.streams {
		if stream.kind.resource() == resource {
			stream.finish()
			delete(s.streams, stream)
		}
	}
}

// denyOutside forbids reading a resource, except in some namespaces.
func (s *apiServer) denyOutside(resource string, namespaces ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, verb := range []string{"list ", "watch "} {
		s.denied[verb+resource] = http.StatusForbidden
		for _, namespace := range namespaces {
			s.denied[verb+resource+" in "+namespace] = http.StatusOK
		}
	}
}

// fail makes every request fail, and ends the streams; nil ends the failure.
func (s *apiServer) fail(err error) {
	s.mu.Lock()
	s.down = err
	s.mu.Unlock()
	s.end()
}

// hang makes every request wait, and ends the streams; false lets them go on.
func (s *apiServer) hang(on bool) {
	s.mu.Lock()
	if on {
		s.hanging = make(chan struct{})
	} else {
		close(s.hanging)
		s.hanging = nil
	}
	s.mu.Unlock()
	s.end()
}

// mute makes the streams deliver nothing more, as connections do whose other end is gone.
func (s *apiServer) mute() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.streams)
}

// sendBookmarks sends the version to all streams each minute, until the context ends.
func (s *apiServer) sendBookmarks(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Minute):
		}
		s.mu.Lock()
		for stream := range s.streams {
			stream.send("BOOKMARK", map[string]any{
				"apiVersion": stream.kind.apiVersion(), "kind": stream.kind.kind, "metadata": map[string]any{"resourceVersion": strconv.Itoa(s.version)},
			})
		}
		s.mu.Unlock()
	}
}

// end ends all streams, as an API server does that stops.
func (s *apiServer) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for stream := range s.streams {
		stream.finish()
		delete(s.streams, stream)
	}
}

// asked returns how many requests begin with a text.
func (s *apiServer) asked(prefix string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, request := range s.requests {
		if strings.HasPrefix(request, prefix) {
			n++
		}
	}
	return n
}

func (s *apiServer) kindOf(u *unstructured.Unstructured) servedKind {
	s.t.Helper()
	for _, k := range s.kinds {
		if k.apiVersion() == u.GetAPIVersion() && k.kind == u.GetKind() {
			return k
		}
	}
	s.t.Fatalf("the API server does not serve %s %s", u.GetAPIVersion(), u.GetKind())
	return servedKind{}
}

// tell logs an event and sends it to the streams that it concerns. The server is locked.
func (s *apiServer) tell(k servedKind, event string, u *unstructured.Unstructured) {
	s.log[k.resource()] = append(s.log[k.resource()], logged{s.version, event, u.DeepCopy()})
	for stream := range s.streams {
		if stream.kind.resource() == k.resource() && stream.selects(u) {
			stream.send(event, u.Object)
		}
	}
}
