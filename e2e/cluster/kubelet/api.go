package kubelet

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
)

// Port is that of the kubelet's API, on which the API server asks for logs and forwards ports.
// Nodes name it in their status.
const Port = 10250

// serve starts the kubelet's API. It answers for the pods that run for real, and forwards the ports
// of all: kubectl logs and kubectl port-forward work, kubectl exec does not.
func (k *Kubelet) serve() error {
	listener, err := net.Listen("tcp", net.JoinHostPort(k.options.Address, strconv.Itoa(Port))) //nolint:noctx // it does not wait
	if err != nil {
		return fmt.Errorf("serve the kubelet's API: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", k.answerLogs)
	mux.HandleFunc("/portForward/{namespace}/{pod}", k.answerPortForward)
	k.server = &http.Server{
		Handler: mux, ReadHeaderTimeout: time.Minute,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{k.options.Certificate}, MinVersion: tls.VersionTLS12},
		// An upgrade needs HTTP/1.1.
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
	}
	k.group.Go(func() { _ = k.server.ServeTLS(listener, "", "") }) // until it is closed
	return nil
}

// answerLogs writes the log of a container, and with follow goes on until the client ends.
func (k *Kubelet) answerLogs(w http.ResponseWriter, request *http.Request) {
	name := strings.Join([]string{request.PathValue("namespace"), request.PathValue("pod"), request.PathValue("container")}, "_")
	log, err := os.Open(filepath.Join(k.LogDirectory(), filepath.Base(name+".log")))
	if err != nil {
		http.Error(w, "there is no log: the pod is only played", http.StatusNotFound)
		return
	}
	defer log.Close() // nothing is written
	if lines, err := strconv.Atoi(request.URL.Query().Get("tailLines")); err == nil {
		if err := seekLines(log, lines); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	for {
		if _, err := io.Copy(w, log); err != nil || request.URL.Query().Get("follow") != "true" {
			return
		}
		_ = http.NewResponseController(w).Flush() // a client that is gone ends the request
		select {
		case <-request.Context().Done():
			return
		case <-k.life.Done():
			return
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// seekLines moves to the beginning of the last lines.
func seekLines(log io.ReadSeeker, lines int) error {
	content, err := io.ReadAll(log)
	if err != nil {
		return err
	}
	at := len(content)
	for ; lines > 0 && at > 0; lines-- {
		at = 1 + strings.LastIndexByte(string(content[:max(at-1, 0)]), '\n')
	}
	_, err = log.Seek(int64(at), io.SeekStart)
	return err
}

func (k *Kubelet) answerPortForward(w http.ResponseWriter, request *http.Request) {
	options, err := portforward.NewV4Options(request)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	pods := k.options.Client.CoreV1().Pods(request.PathValue("namespace"))
	pod, err := pods.Get(request.Context(), request.PathValue("pod"), metav1.GetOptions{})
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	const idle, creation = 4 * time.Hour, 30 * time.Second // as a kubelet's
	portforward.ServePortForward(w, request, k.forwarder(pod), pod.Name, string(pod.UID), options, idle, creation,
		portforward.SupportedProtocols)
}

// forwarder forwards to the ports of one pod.
type forwarder func(ctx context.Context, port int32) (net.Conn, error)

// forwarder leads to the loopback of a pod that runs for real, and to the address of any other.
func (k *Kubelet) forwarder(pod *corev1.Pod) forwarder {
	k.mu.Lock()
	w := k.pods[pod.UID]
	k.mu.Unlock()
	return func(ctx context.Context, port int32) (net.Conn, error) {
		if w == nil {
			var dialer net.Dialer
			return dialer.DialContext(ctx, "tcp", net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(int(port))))
		}
		number := w.process.Load()
		if number == 0 {
			return nil, errors.New("the container does not run")
		}
		return dialInside(ctx, int(number), port)
	}
}

// PortForward copies until one side ends.
func (f forwarder) PortForward(ctx context.Context, _, _ string, port int32, stream io.ReadWriteCloser) error { //nolint:revive // the interface's arguments
	connection, err := f(ctx, port)
	if err != nil {
		return err
	}
	var group sync.WaitGroup
	group.Go(func() {
		_, _ = io.Copy(connection, stream) // the other direction reports
		_ = connection.Close()             // ends the copy below
	})
	_, err = io.Copy(stream, connection)
	_ = stream.Close() // ends the copy above
	group.Wait()
	if err != nil && !strings.Contains(err.Error(), net.ErrClosed.Error()) {
		return err
	}
	return nil
}
