package inventory

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// apiServer is an API server in memory. It is a transport, so that it needs no socket and works in a bubble of synctest. It
// lists, watches (from a version, or with the initial events), discovers, and answers for scale subresources.
type apiServer struct {
	t *testing.T

	mu       sync.Mutex
	version  int
	kinds    []servedKind
	objects  map[string]map[string]*unstructured.Unstructured // by resource, then namespace/name
	log      map[string][]logged                              // by resource: what happened, for watches that resume
	streams  map[*eventStream]bool
	denied   map[string]int // "verb resource" or "verb resource in namespace": the code
	down     error          // of every request
	hanging  chan struct{}  // requests wait until it is closed; nil: they do not
	noEvents bool           // initial events are not known, as of old API servers
	scales   map[string]int // the answers for scale subresources, by namespace/name
	requests []string
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
	for _, document := range splitDocuments([]byte(strings.Join(manifests, "\n---\n"))) {
		value, err := document.decode()
		require.NoError(s.t, err)
		if value == nil {
			continue
		}
		u := &unstructured.Unstructured{Object: value.(map[string]any)}
		if items, isList := u.Object["items"].([]any); isList {
			for _, item := range items {
				s.put(&unstructured.Unstructured{Object: item.(map[string]any)})
			}
			continue
		}
		s.put(u)
	}
}

func (s *apiServer) put(u *unstructured.Unstructured) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kindOf(u)
	if k.namespaced && u.GetNamespace() == "" {
		u.SetNamespace(defaultNamespace)
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
func (s *apiServer) serve(k servedKind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kinds = append(s.kinds, k)
}

// deny makes requests such as "list pods" or "watch pods in llm" fail with a code; 0 allows them again. Streams of what is
// denied end.
func (s *apiServer) deny(what string, code int) {
	s.mu.Lock()
	s.denied[what] = code
	s.mu.Unlock()
	s.end()
}

// denyOutside forbids reading a resource but in namespaces.
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

// fail makes every request fail, and ends the streams; nil ends that.
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

// end ends all streams, as an API server does that stops.
func (s *apiServer) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for stream := range s.streams {
		stream.finish()
		delete(s.streams, stream)
	}
}

// asked returns how many requests began with a text.
func (s *apiServer) asked(what string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, request := range s.requests {
		if strings.HasPrefix(request, what) {
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
		if stream.kind.resource() == k.resource() && (stream.namespace == "" || stream.namespace == u.GetNamespace()) {
			stream.send(event, u.Object)
		}
	}
}

// RoundTrip answers a request.
func (s *apiServer) RoundTrip(request *http.Request) (*http.Response, error) {
	s.mu.Lock()
	hanging := s.hanging
	s.mu.Unlock()
	if hanging != nil {
		select {
		case <-hanging:
		case <-request.Context().Done():
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down != nil {
		return nil, s.down
	}
	if err := request.Context().Err(); err != nil {
		return nil, err
	}
	parts := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	if answer, found := s.discover(parts); found {
		s.requests = append(s.requests, "discover "+request.URL.Path)
		return reply(request, http.StatusOK, answer), nil
	}
	group := ""
	if parts[0] == "apis" {
		group, parts = parts[1], parts[1:]
	}
	version, parts := parts[1], parts[2:]
	namespace := ""
	if parts[0] == "namespaces" && len(parts) > 2 {
		namespace, parts = parts[1], parts[2:]
	}
	i := slices.IndexFunc(s.kinds, func(k servedKind) bool { return k.group == group && k.version == version && k.plural == parts[0] })
	if i < 0 {
		return refuse(request, http.StatusNotFound, metav1.StatusReasonNotFound), nil
	}
	return s.answer(request, s.kinds[i], namespace, parts[1:]), nil
}

// CloseIdleConnections does nothing: there are none.
func (s *apiServer) CloseIdleConnections() {}

// answer answers a request for objects. The server is locked.
func (s *apiServer) answer(request *http.Request, k servedKind, namespace string, rest []string) *http.Response {
	query := request.URL.Query()
	verb := "list"
	switch {
	case query.Get("watch") != "":
		verb = "watch"
	case len(rest) > 0:
		verb = "get"
	}
	what := strings.Join(append([]string{verb, k.resource()}, rest...), " ")
	if namespace != "" {
		what += " in " + namespace
	}
	s.requests = append(s.requests, what)
	for _, denied := range []string{what, verb + " " + k.resource()} {
		isOld := query.Get("resourceVersion") != "" && query.Get("resourceVersion") != "0"
		code := s.denied[denied]
		if code == http.StatusOK {
			break // allowed here
		}
		if code != 0 && (code != http.StatusGone || isOld) {
			reasons := map[int]metav1.StatusReason{403: metav1.StatusReasonForbidden, 404: metav1.StatusReasonNotFound, 500: metav1.StatusReasonInternalError, 410: metav1.StatusReasonExpired}
			return refuse(request, code, reasons[code])
		}
	}
	switch verb {
	case "get":
		return s.one(request, k, namespace, rest)
	case "watch":
		return s.watch(request, k, namespace)
	}
	list := map[string]any{"apiVersion": k.apiVersion(), "kind": k.kind + "List", "metadata": map[string]any{"resourceVersion": strconv.Itoa(s.version)}}
	items := []any{}
	for _, u := range s.in(k, namespace) {
		items = append(items, u.Object)
	}
	list["items"] = items
	return reply(request, http.StatusOK, list)
}

// in returns the objects of a kind in a namespace, in no order.
func (s *apiServer) in(k servedKind, namespace string) (found []*unstructured.Unstructured) {
	for _, u := range s.objects[k.resource()] {
		if namespace == "" || u.GetNamespace() == namespace {
			found = append(found, u)
		}
	}
	return found
}

func (s *apiServer) one(request *http.Request, k servedKind, namespace string, rest []string) *http.Response {
	u, found := s.objects[k.resource()][namespace+"/"+rest[0]]
	if !found {
		return refuse(request, http.StatusNotFound, metav1.StatusReasonNotFound)
	}
	if len(rest) == 1 {
		return reply(request, http.StatusOK, u.Object)
	}
	replicas, known := s.scales[namespace+"/"+rest[0]]
	if !known {
		return refuse(request, http.StatusInternalServerError, metav1.StatusReasonInternalError)
	}
	return reply(request, http.StatusOK, map[string]any{
		"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": map[string]any{"name": rest[0], "namespace": namespace},
		"spec": map[string]any{"replicas": replicas},
	})
}

// watch opens a stream. The server is locked.
func (s *apiServer) watch(request *http.Request, k servedKind, namespace string) *http.Response {
	query := request.URL.Query()
	initial := query.Get("sendInitialEvents") == "true"
	if initial && s.noEvents {
		return refuse(request, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
	}
	stream := newEventStream(request.Context(), k, namespace)
	s.streams[stream] = true
	if initial {
		for _, u := range s.in(k, namespace) {
			stream.send("ADDED", u.Object)
		}
		stream.send("BOOKMARK", map[string]any{"apiVersion": k.apiVersion(), "kind": k.kind, "metadata": map[string]any{
			"resourceVersion": strconv.Itoa(s.version), "annotations": map[string]any{metav1.InitialEventsAnnotationKey: "true"},
		}})
	} else {
		from, err := strconv.Atoi(query.Get("resourceVersion"))
		require.NoError(s.t, err)
		for _, event := range s.log[k.resource()] {
			if event.version > from && (namespace == "" || namespace == event.object.GetNamespace()) {
				stream.send(event.kind, event.object.Object)
			}
		}
	}
	response := reply(request, http.StatusOK, nil)
	response.Body = stream
	return response
}

// discover answers what kinds there are; false where the path asks for objects. The server is locked.
func (s *apiServer) discover(parts []string) (any, bool) {
	switch {
	case len(parts) == 1 && parts[0] == "api":
		return metav1.APIVersions{Versions: []string{"v1"}}, true
	case len(parts) == 1 && parts[0] == "apis":
		groups := metav1.APIGroupList{}
		for _, k := range s.kinds {
			named := func(g metav1.APIGroup) bool { return g.Name == k.group }
			if k.group == "" || slices.ContainsFunc(groups.Groups, named) {
				continue
			}
			version := metav1.GroupVersionForDiscovery{GroupVersion: k.apiVersion(), Version: k.version}
			groups.Groups = append(groups.Groups, metav1.APIGroup{Name: k.group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version})
		}
		return groups, true
	case len(parts) == 2 && parts[0] == "api", len(parts) == 3 && parts[0] == "apis":
		list := metav1.APIResourceList{GroupVersion: strings.Join(parts[1:], "/")}
		for _, k := range s.kinds {
			if k.apiVersion() != list.GroupVersion {
				continue
			}
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: k.plural, Kind: k.kind, Namespaced: k.namespaced})
			if k.scale {
				list.APIResources = append(list.APIResources, metav1.APIResource{Name: k.plural + "/scale", Kind: "Scale", Namespaced: k.namespaced})
			}
		}
		return list, true
	}
	return nil, false
}

func refuse(request *http.Request, code int, reason metav1.StatusReason) *http.Response {
	return reply(request, code, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason,
		Message: fmt.Sprintf("refused with %d", code),
	})
}

func reply(request *http.Request, code int, body any) *http.Response {
	data, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return &http.Response{
		StatusCode: code, Request: request, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {runtime.ContentTypeJSON}}, Body: io.NopCloser(bytes.NewReader(data)),
	}
}

// eventStream is the body of a watch.
type eventStream struct {
	kind      servedKind
	namespace string
	wake      chan struct{}
	closed    chan struct{}
	once      sync.Once

	mu       sync.Mutex
	data     []byte
	finished bool
}

func newEventStream(ctx context.Context, k servedKind, namespace string) *eventStream {
	e := &eventStream{kind: k, namespace: namespace, wake: make(chan struct{}, 1), closed: make(chan struct{})}
	context.AfterFunc(ctx, func() { _ = e.Close() })
	return e
}

func (e *eventStream) send(event string, object any) {
	data, err := json.Marshal(map[string]any{"type": event, "object": object})
	if err != nil {
		panic(err)
	}
	e.mu.Lock()
	e.data = append(e.data, append(data, '\n')...)
	e.mu.Unlock()
	e.signal()
}

func (e *eventStream) finish() {
	e.mu.Lock()
	e.finished = true
	e.mu.Unlock()
	e.signal()
}

func (e *eventStream) signal() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// Read waits for events.
func (e *eventStream) Read(into []byte) (int, error) {
	for {
		e.mu.Lock()
		n, finished := copy(into, e.data), e.finished
		e.data = e.data[n:]
		e.mu.Unlock()
		switch {
		case n > 0:
			return n, nil
		case finished:
			return 0, io.EOF
		}
		select {
		case <-e.wake:
		case <-e.closed:
			return 0, io.EOF
		}
	}
}

// Close ends the stream.
func (e *eventStream) Close() error {
	e.once.Do(func() { close(e.closed) })
	return nil
}
