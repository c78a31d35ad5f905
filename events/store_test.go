package events

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/rest"
)

// store is an API server in memory that keeps all objects that are written to it. It is a
// transport, so that it works in a bubble of synctest.
type store struct {
	mu       sync.Mutex
	version  int
	objects  map[string]map[string]any // by path
	requests []string                  // "create events", "patch events"
	failure  func(verb, resource string) error
}

func newStore() *store { return &store{objects: make(map[string]map[string]any)} }

func (s *store) config() *rest.Config { return configOf(s) }

// configOf returns the configuration of a client that reaches the store through a transport. The
// store reads JSON only.
func configOf(transport http.RoundTripper) *rest.Config {
	return &rest.Config{Host: "http://store.test", Transport: transport, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}}
}

// fail sets the result of later requests. A status is an answer of the API server, another error
// means that it is gone; nil ends the failure.
func (s *store) fail(failure func(verb, resource string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure = failure
}

// asked returns how many requests there were of "verb resource".
func (s *store) asked(wanted string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, request := range s.requests {
		if request == wanted {
			n++
		}
	}
	return n
}

// forget removes every object, as their expiry does.
func (s *store) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.objects)
}

// stored returns the objects of a resource as the type, sorted by path.
func stored[T any](s *store, resource string) []T {
	s.mu.Lock()
	defer s.mu.Unlock()
	var paths []string
	for at := range s.objects {
		if strings.Contains(at, "/"+resource+"/") {
			paths = append(paths, at)
		}
	}
	slices.Sort(paths)
	objects := make([]T, len(paths))
	for i, at := range paths {
		data, err := json.Marshal(s.objects[at])
		if err == nil {
			err = json.Unmarshal(data, &objects[i])
		}
		if err != nil {
			panic(err)
		}
	}
	return objects
}

// RoundTrip answers a request.
func (s *store) RoundTrip(request *http.Request) (*http.Response, error) {
	var body []byte
	if request.Body != nil {
		body, _ = io.ReadAll(request.Body) // from memory
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := request.Context().Err(); err != nil {
		return nil, err
	}
	at := request.URL.Path
	verb := map[string]string{http.MethodGet: "get", http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch"}[request.Method]
	resource := path.Base(path.Dir(at))
	if verb == "create" {
		resource = path.Base(at)
	}
	s.requests = append(s.requests, verb+" "+resource)
	var object map[string]any
	err := error(nil)
	if s.failure != nil {
		err = s.failure(verb, resource)
	}
	if err == nil {
		object, err = s.do(verb, at, body)
	}
	answer := any(object)
	code := http.StatusOK
	if status, rejected := errors.AsType[*apierrors.StatusError](err); rejected {
		said := status.ErrStatus
		said.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		answer, code = said, int(said.Code)
	} else if err != nil {
		return nil, err
	}
	data, err := json.Marshal(answer)
	return &http.Response{
		StatusCode: code, Request: request, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(data)),
	}, err
}

// CloseIdleConnections has nothing to close.
func (s *store) CloseIdleConnections() {}

// do carries a request out. The store is locked.
func (s *store) do(verb, at string, body []byte) (map[string]any, error) {
	var sent map[string]any
	if verb == "create" || verb == "update" {
		if err := json.Unmarshal(body, &sent); err != nil {
			return nil, err
		}
	}
	if verb == "create" {
		at += "/" + sent["metadata"].(map[string]any)["name"].(string)
	}
	existing, found := s.objects[at]
	switch {
	case verb == "create" && found:
		return nil, apierrors.NewAlreadyExists(schema.GroupResource{}, at)
	case verb != "create" && !found:
		return nil, apierrors.NewNotFound(schema.GroupResource{}, at)
	case verb == "get":
		return existing, nil
	case verb == "update" && versionOf(sent) != versionOf(existing):
		return nil, apierrors.NewConflict(schema.GroupResource{}, at, errors.New("it was changed"))
	case verb == "patch":
		before, err := json.Marshal(existing)
		if err != nil {
			return nil, err
		}
		after, err := strategicpatch.StrategicMergePatch(before, body, corev1.Event{})
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(after, &sent); err != nil {
			return nil, err
		}
	}
	s.version++
	sent["metadata"].(map[string]any)["resourceVersion"] = strconv.Itoa(s.version)
	s.objects[at] = sent
	return sent, nil
}

func versionOf(object map[string]any) any {
	return object["metadata"].(map[string]any)["resourceVersion"]
}

// forbidden is the API server's answer if a role is missing.
func forbidden(verb, resource string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New("the service account cannot "+verb))
}

// terminating is its answer for a namespace that is being deleted.
func terminating(string, string) error {
	err := apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "", errors.New("it is being terminated"))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: corev1.NamespaceTerminatingCause})
	return err
}

// gone is an API server that is not there.
func gone(string, string) error { return errors.New("connection refused") }

// logText is a log that a test can read.
type logText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logText) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

// lines returns the lines of a level.
func (l *logText) lines(level string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		if strings.Contains(line, "level="+level+" ") {
			found = append(found, line)
		}
	}
	return found
}

// losing is a network that loses the first answer.
type losing struct {
	*store
	lose *bool
}

// RoundTrip hands a request on.
func (l losing) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := l.store.RoundTrip(request)
	if *l.lose {
		*l.lose = false
		return nil, errors.New("connection reset")
	}
	return response, err
}
