package cluster

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
)

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
	if answer, found := s.discover(parts); found && s.denied["discover"] != 0 {
		return reject(request, s.denied["discover"], metav1.StatusReasonInternalError), nil
	} else if found {
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
		return reject(request, http.StatusNotFound, metav1.StatusReasonNotFound), nil
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
	asked := strings.Join(append([]string{verb, k.resource()}, rest...), " ")
	if namespace != "" {
		asked += " in " + namespace
	}
	s.requests = append(s.requests, asked)
	for _, denied := range []string{asked, verb + " " + k.resource()} {
		isOld := query.Get("resourceVersion") != "" && query.Get("resourceVersion") != "0"
		code := s.denied[denied]
		if code == http.StatusOK {
			break // allowed here
		}
		if code != 0 && (code != http.StatusGone || isOld) {
			reasons := map[int]metav1.StatusReason{401: metav1.StatusReasonUnauthorized, 403: metav1.StatusReasonForbidden, 404: metav1.StatusReasonNotFound, 500: metav1.StatusReasonInternalError, 410: metav1.StatusReasonExpired}
			return reject(request, code, reasons[code])
		}
	}
	switch verb {
	case "get":
		return s.one(request, k, namespace, rest)
	case "watch":
		return s.watch(request, k, namespace)
	}
	found, more := s.in(k, namespace, selectorOf(query)), ""
	if s.pageSize > 0 {
		from, _ := strconv.Atoi(query.Get("continue"))
		found = found[from:]
		if len(found) > s.pageSize {
			found, more = found[:s.pageSize], strconv.Itoa(from+s.pageSize)
		}
	}
	items := make([]any, len(found))
	for i, u := range found {
		items[i] = u.Object
	}
	return reply(request, http.StatusOK, map[string]any{
		"apiVersion": k.apiVersion(), "kind": k.kind + "List", "items": items,
		"metadata": map[string]any{"resourceVersion": strconv.Itoa(s.version), "continue": more},
	})
}

// selector is the fields and labels of a request.
type selector struct{ name, labels string }

func selectorOf(query url.Values) selector {
	return selector{strings.TrimPrefix(query.Get("fieldSelector"), "metadata.name="), query.Get("labelSelector")}
}

// in returns the objects of a kind in a namespace that a selector selects, by name.
func (s *apiServer) in(k servedKind, namespace string, selected selector) (found []*unstructured.Unstructured) {
	for _, key := range slices.Sorted(maps.Keys(s.objects[k.resource()])) {
		if u := s.objects[k.resource()][key]; selected.selects(u, namespace) {
			found = append(found, u)
		}
	}
	return found
}

// selects reports whether an object is in a namespace, and has the name and the labels; empty ones
// select all.
func (s selector) selects(u *unstructured.Unstructured, namespace string) bool {
	matching, err := labels.Parse(s.labels)
	return err == nil && matching.Matches(labels.Set(u.GetLabels())) &&
		(namespace == "" || namespace == u.GetNamespace()) && (s.name == "" || s.name == u.GetName())
}

func (s *apiServer) one(request *http.Request, k servedKind, namespace string, rest []string) *http.Response {
	u, found := s.objects[k.resource()][namespace+"/"+rest[0]]
	if !found {
		return reject(request, http.StatusNotFound, metav1.StatusReasonNotFound)
	}
	if len(rest) == 1 {
		return reply(request, http.StatusOK, u.Object)
	}
	replicas, known := s.scales[namespace+"/"+rest[0]]
	if !known {
		return reject(request, http.StatusInternalServerError, metav1.StatusReasonInternalError)
	}
	return reply(request, http.StatusOK, map[string]any{
		"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": map[string]any{"name": rest[0], "namespace": namespace},
		"spec": map[string]any{"replicas": replicas}, "status": map[string]any{"selector": s.selectors[namespace+"/"+rest[0]]},
	})
}

// watch opens a stream. The server is locked.
func (s *apiServer) watch(request *http.Request, k servedKind, namespace string) *http.Response {
	query := request.URL.Query()
	initial := query.Get("sendInitialEvents") == "true"
	if initial && s.noEvents {
		return reject(request, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
	}
	stream := newEventStream(request.Context(), k, namespace)
	stream.selector = selectorOf(query)
	s.streams[stream] = true
	if initial {
		for _, u := range s.in(k, namespace, stream.selector) {
			stream.send("ADDED", u.Object)
		}
		if s.cut == k.resource() {
			stream.finish()
		}
		stream.send("BOOKMARK", map[string]any{"apiVersion": k.apiVersion(), "kind": k.kind, "metadata": map[string]any{
			"resourceVersion": strconv.Itoa(s.version), "annotations": map[string]any{metav1.InitialEventsAnnotationKey: "true"},
		}})
	} else {
		from, err := strconv.Atoi(query.Get("resourceVersion"))
		require.NoError(s.t, err)
		for _, event := range s.log[k.resource()] {
			if event.version > from && stream.selects(event.object) {
				stream.send(event.kind, event.object.Object)
			}
		}
	}
	if s.expire == k.resource() {
		stream.send("ERROR", metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: http.StatusGone, Reason: metav1.StatusReasonExpired,
		})
		stream.finish()
	}
	response := reply(request, http.StatusOK, nil)
	response.Body = stream
	return response
}
