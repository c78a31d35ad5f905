package cluster

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/wva-project/wva/inventory/manifesttest"
)

// ServeHTTP answers over a socket, and flushes each event of a watch.
func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	response, err := s.RoundTrip(r)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer func() { _ = response.Body.Close() }()
	w.Header().Set("Content-Type", response.Header.Get("Content-Type"))
	w.WriteHeader(response.StatusCode)
	_, _ = io.Copy(flushing{w}, response.Body)
}

// flushing sends each write at once.
type flushing struct{ http.ResponseWriter }

func (f flushing) Write(data []byte) (int, error) {
	defer http.NewResponseController(f.ResponseWriter).Flush()
	return f.ResponseWriter.Write(data)
}

// listen serves at an address until the returned function is called.
func (s *apiServer) listen(t *testing.T, address string) (server *httptest.Server) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address)
	require.NoError(t, err)
	server = httptest.NewUnstartedServer(s)
	_ = server.Listener.Close()
	server.Listener = listener
	server.Start()
	return server
}

// stop ends the connections too, as the end of a process does.
func (s *apiServer) stop(server *httptest.Server) {
	s.end()
	server.CloseClientConnections()
	server.Close()
}

// The API server restarts, over real sockets; meanwhile a rollout is finished.
func TestTablesAfterARestartOfTheAPIServerAreOfOneTime(t *testing.T) {
	api := newAPIServer(t)
	api.apply(chat(2)...)
	server := api.listen(t, "127.0.0.1:0")
	address := server.Listener.Addr().String()
	c, err := Open(Options{Config: &rest.Config{Host: "http://" + address}})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx, nil) }()
	w := &world{T: t, Cluster: c}
	shows := func(want string) func() bool { return func() bool { return w.workloads() == want } }
	require.Eventually(t, shows("chat=2/2"), time.Minute, 10*time.Millisecond)
	api.stop(server)
	require.Eventually(t, func() bool { return len(c.Tables().Problems) == 8 }, time.Minute, 10*time.Millisecond, "all watches fail")
	api.apply(manifesttest.Deployment("chat", 4, "image: vllm"), chatPod(3), chatPod(4))
	server = api.listen(t, address)
	mixed := ""
	require.Eventually(t, func() bool {
		now := w.workloads()
		if now != "chat=2/2" && now != "chat=4/4" {
			mixed = now
		}
		return mixed != "" || now == "chat=4/4" && len(c.Tables().Problems) == 0
	}, time.Minute, time.Millisecond)
	require.Empty(t, mixed)
	cancel()
	require.NoError(t, <-ended)
	api.stop(server)
}
