package scaler

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/wva-project/wva/fleet"
	wvav1alpha1 "github.com/wva-project/wva/proto/wva/v1alpha1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start is the instant at which every test begins.
var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func variant(name string) fleet.VariantID { return fleet.VariantID{Namespace: "prod", Name: name} }

// decided is a decision about a variant that has one replica.
func decided(name string, replicas int) fleet.Decision {
	return fleet.Decision{
		Variant:  variant(name),
		Replicas: replicas,
		Known:    true,
		Decided:  start,
		Reason:   fleet.Reason{Code: fleet.CodeUnchanged, Text: "the current replicas fit the demand"},
		Facts: fleet.Facts{
			Model:   fleet.ModelID{Namespace: "prod", Name: "model-" + name},
			Target:  fleet.TargetID{Namespace: "prod", Kind: "Deployment", Name: "deploy-" + name},
			Current: 1, CurrentKnown: true,
		},
	}
}

// inactive is a decision about a variant whose workload is scaled to zero.
func inactive(name string, replicas int) fleet.Decision {
	d := decided(name, replicas)
	d.Facts.Current, d.Facts.Inactive = 0, true
	return d
}

// unplaceable is a decision about a variant at zero for which accelerators are missing.
func unplaceable(name string) fleet.Decision {
	d := inactive(name, 0)
	d.Reason = fleet.Reason{Code: fleet.CodeInsufficientAccelerators, Text: "needs 1 replica; 0/4 nodes have 1 free L40S"}
	return d
}

func held(name string, replicas int, known bool) fleet.Decision {
	d := decided(name, replicas)
	d.Known, d.Held = known, true
	d.Reason = fleet.Reason{Code: fleet.CodeMetricsMissing, Text: "2 ready replicas have no metrics"}.
		With(fleet.DetailRemedy, "check the PodMonitor")
	return d
}

// unsupportedVariant is held because KEDA would not apply its number as it is meant.
func unsupportedVariant(name string, replicas int) fleet.Decision {
	d := held(name, replicas, true)
	d.Unsupported = true
	d.Reason = fleet.Reason{Code: fleet.CodeUnsupportedTrigger, Text: "metricType is Value: KEDA would multiply the number by the ready pods"}.
		With(fleet.DetailRemedy, "remove metricType")
	return d
}

func planAt(now time.Time, decisions ...fleet.Decision) fleet.Plan {
	return fleet.Plan{Time: now, Decisions: decisions}
}

// world is a server on an in-memory network, in virtual time.
type world struct {
	*testing.T
	clock    *clocktesting.FakeClock
	board    *Board
	server   *Server
	registry *prometheus.Registry
	logs     *journal
	listener *bufconn.Listener
	private  *bufconn.Listener // the operators' port
	stop     func()            // ends both ports and waits for them
}

func newWorld(t *testing.T, change ...func(*ServerOptions)) *world {
	t.Helper()
	w := &world{T: t, clock: clocktesting.NewFakeClock(start), registry: prometheus.NewRegistry(), logs: &journal{}}
	w.board = NewBoard(BoardOptions{Clock: w.clock})
	options := ServerOptions{Board: w.board, Logger: slog.New(w.logs), Registerer: w.registry, Seed: 1}
	for _, c := range change {
		c(&options)
	}
	var err error
	w.server, err = NewServer(options)
	require.NoError(t, err)
	w.listener, w.private = bufconn.Listen(64<<10), bufconn.Listen(64<<10)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 2)
	go func() { served <- w.server.Serve(ctx, w.listener) }()
	go func() { served <- w.server.ServeOperators(ctx, w.private) }()
	w.stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-served)
		require.NoError(t, <-served)
	})
	t.Cleanup(w.stop)
	return w
}

// connect returns a new connection to KEDA's port; wrap may wrap it.
func (w *world) connect(wrap func(net.Conn) net.Conn) *grpc.ClientConn {
	w.Helper()
	return w.dial(w.listener, wrap)
}

func (w *world) operators() wvav1alpha1.OperatorServiceClient {
	return wvav1alpha1.NewOperatorServiceClient(w.dial(w.private, nil))
}

func (w *world) dial(to *bufconn.Listener, wrap func(net.Conn) net.Conn) *grpc.ClientConn {
	w.Helper()
	dial := func(ctx context.Context, _ string) (net.Conn, error) {
		conn, err := to.DialContext(ctx)
		if err == nil && wrap != nil {
			conn = wrap(conn)
		}
		return conn, err
	}
	conn, err := grpc.NewClient("passthrough:///scaler", grpc.WithContextDialer(dial), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(w, err)
	w.Cleanup(func() { conn.Close() })
	return conn
}

func (w *world) keda() externalscaler.ExternalScalerClient {
	return externalscaler.NewExternalScalerClient(w.connect(nil))
}

// post posts a plan of the present time and waits for its effects.
func (w *world) post(decisions ...fleet.Decision) {
	w.Helper()
	w.board.Post(planAt(w.clock.Now(), decisions...))
	w.settle()
}

// step moves the clock and waits for the effects.
func (w *world) step(d time.Duration) {
	w.Helper()
	w.clock.Step(d)
	w.settle()
}

func (w *world) settle() {
	w.Helper()
	require.NoError(w, w.server.Settle(w.Context()))
}

// listen opens a push stream, waits until the server has registered it, and passes its messages on.
func (w *world) listen(client externalscaler.ExternalScalerClient, name string) *listener {
	w.Helper()
	stream, err := client.StreamIsActive(w.Context(), ref(name))
	require.NoError(w, err)
	_, err = stream.Header()
	require.NoError(w, err)
	l := &listener{received: make(chan bool, 1024), ended: make(chan error, 1)}
	go func() {
		for {
			response, err := stream.Recv()
			if err != nil {
				l.ended <- err
				return
			}
			l.received <- response.GetResult()
		}
	}()
	return l
}

// listener is the client's end of a push stream.
type listener struct {
	received chan bool
	ended    chan error
}

func ref(name string) *externalscaler.ScaledObjectRef {
	return &externalscaler.ScaledObjectRef{Namespace: "prod", Name: name, ScalerMetadata: map[string]string{"modelID": "m"}}
}

func metricsRequest(name string) *externalscaler.GetMetricsRequest {
	return &externalscaler.GetMetricsRequest{ScaledObjectRef: ref(name), MetricName: metricName}
}

// journal is a log that a test can read.
type journal struct {
	mu      sync.Mutex
	records []string
	levels  []slog.Level // of the records
}

func (j *journal) Enabled(context.Context, slog.Level) bool { return true }

func (j *journal) Handle(_ context.Context, r slog.Record) error {
	line := r.Level.String() + " " + r.Message
	r.Attrs(func(a slog.Attr) bool {
		line += fmt.Sprintf(" %s=%v", a.Key, a.Value)
		return true
	})
	j.mu.Lock()
	defer j.mu.Unlock()
	j.records, j.levels = append(j.records, line), append(j.levels, r.Level)
	return nil
}

func (j *journal) WithAttrs(attributes []slog.Attr) slog.Handler { return &journalWith{j, attributes} }
func (j *journal) WithGroup(string) slog.Handler                 { return j }

// lines returns the lines of a level.
func (j *journal) lines(level slog.Level) []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var lines []string
	for i, line := range j.records {
		if j.levels[i] == level {
			lines = append(lines, line)
		}
	}
	return lines
}

// from returns the lines of a level and of those above it.
func (j *journal) from(level slog.Level) []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var lines []string
	for i, line := range j.records {
		if j.levels[i] >= level {
			lines = append(lines, line)
		}
	}
	return lines
}

type journalWith struct {
	*journal
	attributes []slog.Attr
}

func (j *journalWith) WithAttrs(attributes []slog.Attr) slog.Handler {
	return &journalWith{j.journal, append(slices.Clone(j.attributes), attributes...)}
}

func (j *journalWith) Handle(ctx context.Context, r slog.Record) error {
	r.AddAttrs(j.attributes...)
	return j.journal.Handle(ctx, r)
}
