package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// discover answers discovery requests; false if the path is one of objects. The server is locked.
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

func reject(request *http.Request, code int, reason metav1.StatusReason) *http.Response {
	return reply(request, code, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason,
		Message: fmt.Sprintf("rejected with %d", code),
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
	selector  selector
	wake      chan struct{}
	closed    chan struct{}
	once      sync.Once

	mu       sync.Mutex
	data     []byte
	finished bool
}

func (e *eventStream) selects(u *unstructured.Unstructured) bool {
	return e.selector.selects(u, e.namespace)
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
	if !e.finished {
		e.data = append(e.data, append(data, '\n')...)
	}
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
