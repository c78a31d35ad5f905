package scaler

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/wva-project/wva/fleet"
)

func requireStatus(t *testing.T, err error, code codes.Code, text string) {
	t.Helper()
	require.Error(t, err)
	require.Equal(t, code.String(), status.Code(err).String(), err.Error())
	require.Contains(t, status.Convert(err).Message(), text)
	require.Less(t, len(status.Convert(err).Message()), 200)
}

func TestGetMetricSpecIsConstantAndNeverFails(t *testing.T) {
	w := newWorld(t)
	client := w.keda()
	requests := []*externalscaler.ScaledObjectRef{
		ref("a"),
		{},
		{Name: strings.Repeat("x", 10_000), Namespace: "Not A Name"},
		{Name: "a", Namespace: "prod", ScalerMetadata: map[string]string{"modelID": ""}},
		{Name: "a", Namespace: "prod", ScalerMetadata: map[string]string{"big": strings.Repeat("x", 1<<20-1000)}},
	}
	ask := func() {
		for _, request := range requests {
			response, err := client.GetMetricSpec(t.Context(), request)
			require.NoError(t, err)
			require.Len(t, response.MetricSpecs, 1)
			spec := response.MetricSpecs[0]
			require.Equal(t, "wva-desired-replicas", spec.MetricName)
			require.EqualValues(t, 1, spec.TargetSize)
			require.InDelta(t, 1, spec.TargetSizeFloat, 0)
		}
	}
	ask() // before the first plan
	w.post(decided("a", 1))
	ask()
	w.step(time.Hour) // the plan is too old
	ask()
	_, err := (&kedaService{}).GetMetricSpec(t.Context(), nil)
	require.NoError(t, err)
}

func TestGetMetricsAnswersThePlanInBothForms(t *testing.T) {
	w := newWorld(t)
	client := w.keda()
	w.board.Post(planAt(start, decided("up", 7), decided("zero", 0), held("held", 4, true), held("held-zero", 0, true)))
	for name, want := range map[string]int{"up": 7, "zero": 0, "held": 4, "held-zero": 0} {
		response, err := client.GetMetrics(t.Context(), metricsRequest(name))
		require.NoError(t, err, name)
		require.Len(t, response.MetricValues, 1)
		value := response.MetricValues[0]
		require.Equal(t, metricName, value.MetricName)
		require.EqualValues(t, want, value.MetricValue, name)
		require.InDelta(t, want, value.MetricValueFloat, 0, name)

		active, err := client.IsActive(t.Context(), ref(name))
		require.NoError(t, err)
		require.Equal(t, want > 0, active.Result, name)
	}
}

func TestGetMetricsAnswersWhateverTheMetricName(t *testing.T) {
	w := newWorld(t)
	w.post(decided("a", 3))
	for _, name := range []string{"", "s0-wva-desired-replicas", "of-an-older-release"} {
		response, err := w.keda().GetMetrics(t.Context(), &externalscaler.GetMetricsRequest{ScaledObjectRef: ref("a"), MetricName: name})
		require.NoError(t, err)
		require.EqualValues(t, 3, response.MetricValues[0].MetricValue)
	}
}

func TestAPlanIsTheTruthWhateverTheMetadataOfTheRequest(t *testing.T) {
	w := newWorld(t)
	w.post(decided("a", 3))
	request := metricsRequest("a")
	request.ScaledObjectRef.ScalerMetadata = map[string]string{"variantCost": "minus ten"}
	response, err := w.keda().GetMetrics(t.Context(), request)
	require.NoError(t, err)
	require.EqualValues(t, 3, response.MetricValues[0].MetricValue)
}

func TestNoNumberIsAClearStatus(t *testing.T) {
	long := fleet.Decision{Variant: variant("long"), Reason: fleet.Reason{Code: fleet.CodeTargetNotFound, Text: strings.Repeat("ä", 300)}}
	posted := planAt(start, held("unknown", 0, false), long, decided("negative", -1))
	good := map[string]string{"modelID": "m"}
	tests := []struct {
		name     string
		plan     *fleet.Plan
		after    time.Duration
		object   *externalscaler.ScaledObjectRef
		code     codes.Code
		contains string
	}{
		{"before the first plan", nil, 0, ref("a"), codes.Unavailable, "nothing is decided yet"},
		{"with an old plan", &posted, 7*time.Minute + 20*time.Second, ref("a"), codes.Unavailable, "7m0s old"},
		{"object not in the plan", &posted, 0, ref("new"), codes.Unavailable, "prod/new is not decided yet"},
		{"no number known", &posted, 0, ref("unknown"), codes.Unavailable,
			"prod/unknown: no number is known: 2 ready replicas have no metrics; check the PodMonitor"},
		{"no number known, long reason", &posted, 0, ref("long"), codes.Unavailable, "ä…"},
		{"number below zero", &posted, 0, ref("negative"), codes.Unavailable, "prod/negative"},
		{"object not in the plan, bad metadata", &posted, 0,
			&externalscaler.ScaledObjectRef{Namespace: "prod", Name: "new", ScalerMetadata: map[string]string{"accelerator": "H100"}}, codes.InvalidArgument, "prod/new: modelID"},
		{"object not in the plan, asked for by name only", &posted, 0,
			&externalscaler.ScaledObjectRef{Namespace: "prod", Name: "new"}, codes.Unavailable, "prod/new is not decided yet"},
		{"no number known, bad metadata", &posted, 0,
			&externalscaler.ScaledObjectRef{Namespace: "prod", Name: "unknown", ScalerMetadata: map[string]string{"modelID": "m", "variantCost": "-3"}},
			codes.InvalidArgument, "variantCost"},
		{"a megabyte of metadata", &posted, 0,
			&externalscaler.ScaledObjectRef{Namespace: "prod", Name: "new", ScalerMetadata: map[string]string{"modelID": strings.Repeat("x", 1<<20-1000)}},
			codes.ResourceExhausted, "trigger metadata have 1047583 bytes"},
		{"no object", &posted, 0, nil, codes.InvalidArgument, "namespace is empty"},
		{"no namespace", &posted, 0, &externalscaler.ScaledObjectRef{Name: "a", ScalerMetadata: good}, codes.InvalidArgument, "namespace is empty"},
		{"no name", &posted, 0, &externalscaler.ScaledObjectRef{Namespace: "prod", ScalerMetadata: good}, codes.InvalidArgument, "name is empty"},
		{"oversized name", &posted, 0, ref(strings.Repeat("x", 254)), codes.InvalidArgument, "254 characters"},
		{"oversized namespace", &posted, 0, &externalscaler.ScaledObjectRef{Namespace: strings.Repeat("x", 64), Name: "a"}, codes.InvalidArgument, "64 characters"},
		{"not a name", &posted, 0, ref("a\nlevel=ERROR"), codes.InvalidArgument, `'\n'`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			client := w.keda()
			if test.plan != nil {
				w.board.Post(*test.plan)
			}
			w.step(test.after)
			_, err := client.GetMetrics(t.Context(), &externalscaler.GetMetricsRequest{ScaledObjectRef: test.object, MetricName: metricName})
			requireStatus(t, err, test.code, test.contains)
			first := status.Convert(err).Message()
			if test.object != nil {
				_, err = client.IsActive(t.Context(), test.object)
				requireStatus(t, err, test.code, test.contains)
				require.Equal(t, first, status.Convert(err).Message(), "the text is stable")
			}
		})
	}
}

func TestAnUnsupportedVariantIsAnErrorAndNeverANumber(t *testing.T) {
	w := newWorld(t)
	client := w.keda()
	l := w.listen(client, "a")
	a, long := unsupportedVariant("a", 2), unsupportedVariant("long", 2)
	a.Facts.Current, a.Facts.Inactive = 0, true
	long.Reason.Text = strings.Repeat("word ", 100)
	w.board.Post(planAt(start, a, long))
	w.settle()

	_, err := client.GetMetrics(t.Context(), metricsRequest("a"))
	const text = "metricType is Value: KEDA would multiply the number by the ready pods; remove metricType"
	requireStatus(t, err, codes.FailedPrecondition, text)
	_, err = client.IsActive(t.Context(), ref("a"))
	requireStatus(t, err, codes.FailedPrecondition, text)
	_, err = client.GetMetrics(t.Context(), metricsRequest("long"))
	requireStatus(t, err, codes.FailedPrecondition, "word word")
	w.step(10 * time.Second)
	require.Zero(t, w.server.Pushes())

	w.post(inactive("a", 2))
	require.True(t, <-l.received, "the trigger was corrected")
}

func TestANewObjectKeepsItsCurrentReplicas(t *testing.T) {
	current := map[string]int{"new": 3, "zero": 0, "wrong": -1, "unknown": 5}
	w := newWorld(t, func(o *ServerOptions) {
		o.Observed = func(id fleet.VariantID) (int, bool) {
			replicas, ok := current[id.Name]
			return replicas, ok && id == variant(id.Name)
		}
	})
	client := w.keda()
	_, err := client.GetMetrics(t.Context(), metricsRequest("new"))
	requireStatus(t, err, codes.Unavailable, "nothing is decided yet")

	l := w.listen(client, "zero")
	w.post(decided("a", 1), held("unknown", 0, false))
	for name, want := range map[string]int{"new": 3, "zero": 0, "wrong": 0} {
		response, err := client.GetMetrics(t.Context(), metricsRequest(name))
		require.NoError(t, err, name)
		require.EqualValues(t, want, response.MetricValues[0].MetricValue, name)
		require.InDelta(t, want, response.MetricValues[0].MetricValueFloat, 0, name)
		active, err := client.IsActive(t.Context(), ref(name))
		require.NoError(t, err, name)
		require.Equal(t, want > 0, active.Result, name)
	}
	for _, name := range []string{"nobody", "deleted"} {
		_, err = client.GetMetrics(t.Context(), metricsRequest(name))
		requireStatus(t, err, codes.Unavailable, "prod/"+name+" is not decided yet")
	}
	_, err = client.GetMetrics(t.Context(), metricsRequest("unknown"))
	requireStatus(t, err, codes.Unavailable, "no number is known")
	invalid := ref("new")
	invalid.ScalerMetadata = map[string]string{"modelID": "m", "variantCost": "-3"}
	_, err = client.IsActive(t.Context(), invalid)
	requireStatus(t, err, codes.InvalidArgument, "variantCost")
	w.step(time.Minute)
	require.Zero(t, w.server.Pushes(), "it activates nothing")

	w.post(inactive("zero", 1), decided("new", 7))
	require.True(t, <-l.received)
	response, err := client.GetMetrics(t.Context(), metricsRequest("new"))
	require.NoError(t, err)
	require.EqualValues(t, 7, response.MetricValues[0].MetricValue, "the plan comes first")

	w.step(6 * time.Minute)
	_, err = client.GetMetrics(t.Context(), metricsRequest("nobody"))
	requireStatus(t, err, codes.Unavailable, "the latest plan is 6m0s old")
}

func TestARequestAboveTheLimitIsAClearStatus(t *testing.T) {
	w := newWorld(t)
	request := metricsRequest("a")
	request.ScaledObjectRef.ScalerMetadata["modelID"] = strings.Repeat("x", maxMessage)
	_, err := w.keda().GetMetrics(t.Context(), request)
	requireStatus(t, err, codes.ResourceExhausted, "larger than max")
}

func TestNilRequestsAreAClearError(t *testing.T) {
	options := ServerOptions{Board: NewBoard(BoardOptions{})}
	options.setDefaults()
	service := &kedaService{board: options.Board, metadata: newMetadataReader(options)}
	_, err := service.GetMetrics(t.Context(), nil)
	require.ErrorContains(t, err, "namespace is empty")
	_, err = service.IsActive(t.Context(), nil)
	require.ErrorContains(t, err, "namespace is empty")
}

func TestSecretsAreNeitherEchoedNorLogged(t *testing.T) {
	const secret = "hunter2-s3cr3t"
	w := newWorld(t)
	client := w.keda()
	metadata := map[string]string{"modelIDFromEnv": secret, "passwordFromEnv": secret, "variantCostFromEnv": secret, "variantCost": "x"}
	object := &externalscaler.ScaledObjectRef{Namespace: "prod", Name: "new", ScalerMetadata: metadata}
	w.post(decided("a", 1))
	_, err := client.IsActive(t.Context(), object)
	requireStatus(t, err, codes.InvalidArgument, "")
	require.NotContains(t, err.Error(), secret)
	_, err = client.GetMetrics(t.Context(), &externalscaler.GetMetricsRequest{ScaledObjectRef: object})
	require.NotContains(t, err.Error(), secret)
	w.listen(client, "new")
	for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
		require.NotContains(t, strings.Join(w.logs.lines(level), "\n"), secret)
	}
}

func TestStreamMetricSpecSendsAtOnceAndStaysOpen(t *testing.T) {
	w := newWorld(t)
	stream, err := w.keda().StreamMetricSpec(t.Context(), ref("a"))
	require.NoError(t, err)
	response, err := stream.Recv()
	require.NoError(t, err)
	require.Equal(t, metricName, response.MetricSpecs[0].MetricName)
	require.InDelta(t, 1, response.MetricSpecs[0].TargetSizeFloat, 0)

	ended := make(chan error, 1)
	go func() {
		_, err := stream.Recv()
		ended <- err
	}()
	w.post(decided("a", 1))
	w.step(time.Hour)
	require.Empty(t, ended)
	w.stop()
	require.ErrorIs(t, <-ended, io.EOF)
}

func TestStreamMetricSpecEndsWithItsCaller(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	stream, err := w.keda().StreamMetricSpec(ctx, ref("a"))
	require.NoError(t, err)
	_, err = stream.Recv()
	require.NoError(t, err)
	cancel()
	_, err = stream.Recv()
	require.Equal(t, codes.Canceled, status.Code(err))
}

func TestStreamIsActiveActivatesAnInactiveObject(t *testing.T) {
	w := newWorld(t)
	client := w.keda()
	l, awake := w.listen(client, "a"), w.listen(client, "b")
	w.post(inactive("a", 0), decided("b", 1))
	require.Zero(t, w.server.Pushes())

	w.post(inactive("a", 2), decided("b", 2))
	require.EqualValues(t, 1, w.server.Pushes(), "after Settle the push is sent")
	require.True(t, <-l.received)

	w.step(time.Second)
	require.EqualValues(t, 2, w.server.Pushes(), "still inactive: again after a second")
	require.True(t, <-l.received)

	w.post(decided("a", 2), decided("b", 2))
	w.step(time.Minute)
	require.EqualValues(t, 2, w.server.Pushes())
	require.Empty(t, awake.received)

	late := w.listen(client, "c")
	w.post(inactive("c", 1))
	require.True(t, <-late.received)
	require.True(t, <-w.listen(client, "c").received, "a stream that opens for an inactive object is told at once")
}

func TestStreamIsActiveRejectsAnObjectWithoutName(t *testing.T) {
	w := newWorld(t)
	stream, err := w.keda().StreamIsActive(t.Context(), &externalscaler.ScaledObjectRef{Namespace: "prod"})
	require.NoError(t, err)
	_, err = stream.Recv()
	requireStatus(t, err, codes.InvalidArgument, "name is empty")
}

func TestStreamsEndWithoutErrorWhenTheServerShutsDown(t *testing.T) {
	w := newWorld(t)
	client := w.keda()
	var listeners []*listener
	for i := range 50 {
		listeners = append(listeners, w.listen(client, fmt.Sprintf("v%d", i)))
	}
	w.stop()
	for _, l := range listeners {
		require.ErrorIs(t, <-l.ended, io.EOF)
	}
}

func TestStreamsAreCapped(t *testing.T) {
	w := newWorld(t, func(o *ServerOptions) { o.MaxStreams, o.MaxUnknownStreams = 8, 3 })
	client := w.keda()
	w.post(decided("a", 1))
	open := func(name string) error {
		stream, err := client.StreamIsActive(t.Context(), ref(name))
		require.NoError(t, err)
		if _, err = stream.Header(); err != nil {
			return err
		}
		_, err = stream.Recv()
		return err
	}
	w.listen(client, "x")
	w.listen(client, "y")
	requireStatus(t, open("z"), codes.ResourceExhausted, "prod/z has to wait")
	for range 6 {
		w.listen(client, "a")
	}
	requireStatus(t, open("a"), codes.ResourceExhausted, "too many streams are open from this address, of at most 8 from all: close unused ones, or raise grpc.maxStreams")
	require.InDelta(t, 1, testutil.ToFloat64(w.server.rejected.WithLabelValues("streams")), 0)
	require.InDelta(t, 1, testutil.ToFloat64(w.server.rejected.WithLabelValues("unknown_streams")), 0)
	_, err := client.GetMetrics(t.Context(), metricsRequest("a"))
	require.NoError(t, err, "numbers are answered all the same")
}

// stalledConn is a client's connection that stops reading.
type stalledConn struct {
	net.Conn
	stalled <-chan struct{}
	closed  chan struct{}
	close   func() // closes closed, once
}

func (c *stalledConn) Close() error {
	c.close()
	return c.Conn.Close()
}

func (c *stalledConn) Read(b []byte) (int, error) {
	select {
	case <-c.stalled:
		<-c.closed
		return 0, io.EOF
	default:
		return c.Conn.Read(b[:1]) // byte by byte, so that nothing is read ahead
	}
}

func TestAClientThatNeverReadsDelaysNobody(t *testing.T) {
	const streams = 1000
	w := newWorld(t, func(o *ServerOptions) { o.ShutdownTimeout = time.Millisecond })
	stalled := make(chan struct{})
	deaf := externalscaler.NewExternalScalerClient(w.connect(func(c net.Conn) net.Conn {
		closed := make(chan struct{})
		return &stalledConn{Conn: c, stalled: stalled, closed: closed, close: sync.OnceFunc(func() { close(closed) })}
	}))
	client := w.keda()
	decisions := []fleet.Decision{inactive("deaf", 1)}
	w.listen(deaf, "deaf")
	var listeners []*listener
	for i := range streams - 1 {
		name := fmt.Sprintf("v%03d", i)
		listeners = append(listeners, w.listen(client, name))
		decisions = append(decisions, inactive(name, 1))
	}
	close(stalled)
	w.post(decisions...)
	for range streams/pushesPerSecond - 1 {
		w.clock.Step(time.Second)
		w.post(decisions...)
	}
	require.GreaterOrEqual(t, w.server.Pushes(), uint64(streams))
	for _, l := range listeners {
		require.True(t, <-l.received)
	}
}

var _ grpc.ServerStreamingServer[externalscaler.IsActiveResponse] = (*stuckStream)(nil)

// stuckStream is a push stream whose Send does not return before it is released.
type stuckStream struct {
	grpc.ServerStream
	*testing.T
	sending  chan struct{}
	released chan struct{}
}

func (s *stuckStream) Context() context.Context     { return s.T.Context() }
func (s *stuckStream) SendHeader(metadata.MD) error { return nil }
func (s *stuckStream) Send(*externalscaler.IsActiveResponse) error {
	s.sending <- struct{}{}
	<-s.released
	return nil
}

func TestAStuckSendDelaysNobody(t *testing.T) {
	w := newWorld(t)
	stuck := &stuckStream{T: t, sending: make(chan struct{}, 1), released: make(chan struct{})}
	service := &kedaService{board: w.board, pusher: w.server.pusher, closing: w.server.keda.closing}
	ended := make(chan error, 1)
	go func() { ended <- service.StreamIsActive(ref("a"), stuck) }()
	w.board.Post(planAt(start, inactive("a", 1), inactive("b", 1)))
	<-stuck.sending

	l := w.listen(w.keda(), "b")
	require.True(t, <-l.received)
	for sent := range uint64(3) {
		for w.server.Pushes() <= sent {
			runtime.Gosched() // the server may not have counted it yet
		}
		w.clock.Step(4 * time.Second)
		w.server.pusher.signal() // it may have read the clock before the step
		require.True(t, <-l.received)
	}
	close(stuck.released)
	w.stop()
	require.NoError(t, <-ended)
}

func TestAStatusKeepsItsFactBesideALongName(t *testing.T) {
	id := fleet.VariantID{Namespace: "x", Name: strings.Repeat("k", 253)}
	require.Len(t, shortID(id), 80+len("…"))
	require.Equal(t, "shop/a", shortID(fleet.VariantID{Namespace: "shop", Name: "a"}))
}
