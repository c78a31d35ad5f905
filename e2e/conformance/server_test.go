package conformance

import (
	"bytes"
	"context"
	"crypto/rand"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/scaler"
)

// epoch is the instant at which every test begins.
var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// world is the server on the loopback, in virtual time, with a board to which the test posts.
type world struct {
	*testing.T
	namespace string // its own, so that KEDA's log is told apart
	address   string
	clock     *clocktesting.FakeClock
	board     *scaler.Board
	server    *scaler.Server
	registry  *prometheus.Registry
	logs      *lockedBuffer
	listener  *cutListener
	stop      func() // ends Serve and waits for it
}

type option func(*world, *scaler.ServerOptions)

// after makes a server replace another one that has ended.
func after(other *world) option {
	return func(w *world, _ *scaler.ServerOptions) { w.address, w.namespace = other.address, other.namespace }
}

// beside makes a server serve the objects of another one too.
func beside(other *world) option {
	return func(w *world, _ *scaler.ServerOptions) { w.namespace = other.namespace }
}

func newWorld(t *testing.T, options ...option) *world {
	t.Helper()
	w := &world{
		T: t, namespace: "team-" + strings.ToLower(rand.Text()), address: "127.0.0.1:0",
		clock: clocktesting.NewFakeClock(epoch), registry: prometheus.NewRegistry(), logs: &lockedBuffer{},
	}
	w.board = scaler.NewBoard(scaler.BoardOptions{Clock: w.clock})
	logger := slog.New(slog.NewTextHandler(w.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	server := scaler.ServerOptions{Board: w.board, Logger: logger, Registerer: w.registry, Seed: 1}
	for _, change := range options {
		change(w, &server)
	}
	var err error
	w.server, err = scaler.NewServer(server)
	require.NoError(t, err)
	listener, err := net.Listen("tcp", w.address)
	require.NoError(t, err)
	w.listener, w.address = &cutListener{Listener: listener}, listener.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- w.server.Serve(ctx, w.listener) }()
	w.stop = sync.OnceFunc(func() {
		cancel()
		t.Logf("a server that was cut ended: %v", <-served)
	})
	t.Cleanup(w.stop)
	return w
}

// trigger returns a usual trigger of one of the world's objects.
func (w *world) trigger(name string) trigger {
	return trigger{address: w.address, namespace: w.namespace, name: name}
}

func (w *world) variant(name string) fleet.VariantID {
	return fleet.VariantID{Namespace: w.namespace, Name: name}
}

// decided is a decision about a variant that has one replica.
func (w *world) decided(name string, replicas int) fleet.Decision {
	return fleet.Decision{
		Variant: w.variant(name), Replicas: replicas, Known: true, Decided: epoch,
		Reason: fleet.Reason{Code: fleet.CodeUnchanged, Text: "the current replicas fit the demand"},
		Facts:  fleet.Facts{Model: fleet.ModelID{Namespace: w.namespace, Name: "model-" + name}, Current: 1, CurrentKnown: true},
	}
}

// inactive is a decision about a variant whose workload is scaled to zero.
func (w *world) inactive(name string, replicas int) fleet.Decision {
	d := w.decided(name, replicas)
	d.Facts.Current, d.Facts.Inactive = 0, true
	return d
}

// held is a variant whose number is kept, or not known.
func (w *world) held(name string, replicas int, known bool) fleet.Decision {
	d := w.decided(name, replicas)
	d.Known, d.Held = known, true
	d.Reason = fleet.Reason{Code: fleet.CodeMetricsMissing, Text: "2 ready replicas have no metrics"}.
		With(fleet.DetailRemedy, "check the PodMonitor")
	return d
}

// post posts a plan of the present time and waits until its pushes have been sent.
func (w *world) post(decisions ...fleet.Decision) {
	w.Helper()
	w.board.Post(fleet.Plan{Time: w.clock.Now(), Decisions: decisions})
	w.settle()
}

// step moves the clock and waits until the pushes that became due have been sent.
func (w *world) step(d time.Duration) {
	w.Helper()
	w.clock.Step(d)
	w.settle()
}

func (w *world) settle() {
	w.Helper()
	require.NoError(w, w.server.Settle(w.Context()))
}

// awaitStreams waits until so many streams of a method are open at the server.
func (w *world) awaitStreams(method string, want int) {
	w.Helper()
	require.Eventually(w, func() bool { return w.openStreams(method) == want }, 30*time.Second, time.Millisecond)
}

func (w *world) openStreams(method string) int {
	families, err := w.registry.Gather()
	require.NoError(w, err)
	for _, family := range families {
		if family.GetName() != "wva_open_streams" {
			continue
		}
		for _, metric := range family.GetMetric() {
			if strings.HasSuffix(metric.GetLabel()[0].GetValue(), "/"+method) {
				return int(metric.GetGauge().GetValue())
			}
		}
	}
	return 0
}

// cutListener is a listener whose connections can be cut, as the end of a process cuts them.
type cutListener struct {
	net.Listener
	mu    sync.Mutex
	conns []net.Conn
}

func (l *cutListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.conns = append(l.conns, conn)
	}
	return conn, err
}

func (l *cutListener) cut() {
	_ = l.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, conn := range l.conns {
		_ = conn.Close()
	}
}

// lockedBuffer is a buffer for several writers.
type lockedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}
