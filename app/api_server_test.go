package app

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// apiServer is a small API server: it lists and watches the objects that a test puts into it, and
// takes events and leases.
type apiServer struct {
	*httptest.Server

	mu      sync.Mutex
	version int
	objects map[string]map[string]any // by resource, namespace and name
	streams map[chan []byte]string    // the resource of each, and its namespace
	events  chan map[string]any
}

func newAPIServer(t *testing.T) *apiServer {
	s := &apiServer{version: 1, objects: map[string]map[string]any{}, streams: map[chan []byte]string{}, events: make(chan map[string]any, 1000)}
	s.Server = httptest.NewServer(s)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// kubeconfig writes a kubeconfig of the server, and returns its path.
func (s *apiServer) kubeconfig(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: %q}}], users: [{name: u, user: {}}]}`, s.URL)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// apply puts the objects of manifests into the server, and sends them to the watches.
func (s *apiServer) apply(t *testing.T, manifests string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for text := range strings.SplitSeq(manifests, "---\n") {
		object := map[string]any{}
		require.NoError(t, yaml.Unmarshal([]byte(text), &object))
		if len(object) == 0 {
			continue
		}
		s.version++
		metadata, _ := object["metadata"].(map[string]any)
		metadata["resourceVersion"], metadata["uid"] = fmt.Sprint(s.version), "uid-"+fmt.Sprint(metadata["name"])
		resource := strings.ToLower(fmt.Sprint(object["kind"])) + "s"
		key := fmt.Sprintf("%s %v/%v", resource, metadata["namespace"], metadata["name"])
		event := "ADDED"
		if s.objects[key] != nil {
			event = "MODIFIED"
		}
		s.objects[key] = object
		line, err := json.Marshal(map[string]any{"type": event, "object": object})
		require.NoError(t, err)
		for stream, of := range s.streams {
			if of == resource+" " || of == fmt.Sprintf("%s %v", resource, metadata["namespace"]) {
				stream <- append(line, '\n')
			}
		}
	}
}

// ServeHTTP answers a request.
func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	resource := parts[len(parts)-1]
	switch {
	case r.URL.Path == "/api":
		answer(w, http.StatusOK, map[string]any{"kind": "APIVersions", "versions": []string{"v1"}})
	case r.URL.Path == "/apis":
		version := map[string]any{"groupVersion": "apps/v1", "version": "v1"}
		answer(w, http.StatusOK, map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": []any{
			map[string]any{"name": "apps", "versions": []any{version}, "preferredVersion": version},
		}})
	case r.URL.Path == "/apis/apps/v1":
		answer(w, http.StatusOK, map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "apps/v1", "resources": []any{
			map[string]any{"name": "deployments", "kind": "Deployment", "namespaced": true, "verbs": []string{"list", "watch"}},
			map[string]any{"name": "deployments/scale", "kind": "Scale", "namespaced": true, "verbs": []string{"get"}},
		}})
	case r.URL.Path == "/api/v1":
		answer(w, http.StatusOK, map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "v1", "resources": []any{}})
	case r.Method != http.MethodGet:
		s.take(w, r, resource)
	case strings.Contains(r.URL.Path, "/leases/"), strings.Contains(r.URL.Path, "karpenter"), strings.Contains(r.URL.Path, "leaderworker"):
		answer(w, http.StatusNotFound, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404})
	case r.URL.Query().Get("watch") == "":
		s.list(w, r, parts)
	default:
		s.watch(w, r, parts)
	}
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // the client may be gone
}

// take stores an event, and accepts a lease.
func (s *apiServer) take(w http.ResponseWriter, r *http.Request, resource string) {
	body := map[string]any{}
	data, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(data, &body) // a patch or a protobuf is stored empty
	if resource == "events" {
		s.events <- body
	}
	answer(w, http.StatusCreated, body)
}

// namespaceOf returns the namespace in a path; empty if it is of all.
func namespaceOf(parts []string) string {
	if len(parts) > 3 && parts[len(parts)-3] == "namespaces" {
		return parts[len(parts)-2]
	}
	return ""
}

func (s *apiServer) list(w http.ResponseWriter, r *http.Request, parts []string) {
	resource, namespace := parts[len(parts)-1], namespaceOf(parts)
	label, _, selects := strings.Cut(r.URL.Query().Get("labelSelector"), "=")
	s.mu.Lock()
	defer s.mu.Unlock()
	items := []any{}
	for key, object := range s.objects {
		metadata, _ := object["metadata"].(map[string]any)
		labels, _ := metadata["labels"].(map[string]any)
		inNamespace := namespace == "" || metadata["namespace"] == namespace
		if strings.HasPrefix(key, resource+" ") && inNamespace && (!selects || labels[label] != nil) && r.URL.Query().Get("fieldSelector") == "" {
			items = append(items, object)
		}
	}
	answer(w, http.StatusOK, map[string]any{
		"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": fmt.Sprint(s.version)}, "items": items,
	})
}

func (s *apiServer) watch(w http.ResponseWriter, r *http.Request, parts []string) {
	if r.URL.Query().Get("sendInitialEvents") != "" {
		answer(w, http.StatusUnprocessableEntity, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Invalid", "code": 422})
		return
	}
	stream := make(chan []byte, 100)
	s.mu.Lock()
	s.streams[stream] = parts[len(parts)-1] + " " + namespaceOf(parts)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.streams, stream)
	}()
	w.Header().Set("Content-Type", "application/json")
	flusher, _ := w.(http.Flusher)
	flusher.Flush()
	for {
		select {
		case line := <-stream:
			if _, err := w.Write(line); err != nil {
				return
			}
			flusher.Flush()
		case <-r.Context().Done():
			return
		}
	}
}
