package scaler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/wva-project/wva/fleet"
)

func TestEveryErrorHasOneCode(t *testing.T) {
	tests := []struct {
		err  error
		code codes.Code
		text string
	}{
		{nil, codes.OK, ""},
		{newError(badRequest, "a"), codes.InvalidArgument, "a"},
		{newError(invalidMetadata, "b"), codes.InvalidArgument, "b"},
		{newError(noNumber, "c"), codes.Unavailable, "c"},
		{newError(unknownService, "f"), codes.NotFound, "f"},
		{newError(limitExceeded, "d"), codes.ResourceExhausted, "d"},
		{newError(deadlineMissed, "e"), codes.DeadlineExceeded, "e"},
		{fmt.Errorf("asking: %w", newError(noNumber, "c")), codes.Unavailable, "c"},
		{context.Canceled, codes.Canceled, "not answered"},
		{context.DeadlineExceeded, codes.DeadlineExceeded, "not answered"},
		{errors.New("secret"), codes.Internal, "not answered"},
		{&panicError{value: "secret"}, codes.Internal, "not answered"},
		{status.Error(codes.NotFound, "gRPC's own"), codes.NotFound, "gRPC's own"},
	}
	for _, test := range tests {
		got := statusOf(test.err)
		require.Equal(t, test.code, got.Code(), "%v", test.err)
		require.Contains(t, got.Message(), test.text)
		require.NotContains(t, got.Message(), "secret")
	}
}

func TestClipKeepsRunesWhole(t *testing.T) {
	require.Equal(t, "short", clip("short"))
	for shift := range 4 {
		clipped := clip(strings.Repeat("x", shift) + strings.Repeat("😀", 100))
		require.LessOrEqual(t, len(clipped), maxStatusText)
		require.True(t, strings.HasSuffix(clipped, "😀…"), clipped)
	}
}

func TestAStatusHasTheRemedyIfItFitsAndNoOtherDetail(t *testing.T) {
	reason := fleet.Reason{Text: "fact"}.With(fleet.DetailCause, "figures of this cycle").With(fleet.DetailRemedy, "action")
	require.Equal(t, "prod/a: fact; action", reasonText("prod/a: ", reason))
	require.Equal(t, "fact", reasonText("", fleet.Reason{Text: "fact"}))
	fits := strings.Repeat("x", maxStatusText-len("fact; "))
	require.Len(t, reasonText("", fleet.Reason{Text: "fact"}.With(fleet.DetailRemedy, fits)), maxStatusText)
	require.Equal(t, "fact", reasonText("", fleet.Reason{Text: "fact"}.With(fleet.DetailRemedy, fits+"x")), "half a remedy is none")
}

// call sends one request through the interceptor of a server to a handler.
func call(t *testing.T, interceptor *interceptor, handler grpc.UnaryHandler) error {
	_, err := interceptor.unary(t.Context(), nil, &grpc.UnaryServerInfo{FullMethod: "/test.Service/Method"}, handler)
	return err
}

func TestAnAnswerThatTakesTooLongIsAStatus(t *testing.T) {
	clock := clocktesting.NewFakeClock(start)
	options := ServerOptions{Board: NewBoard(BoardOptions{Clock: clock})}
	options.setDefaults()
	interceptor := newInterceptor(options)
	reading, release, finished := make(chan struct{}), make(chan struct{}), make(chan struct{})
	reader := newMetadataReader(options)
	reader.read = func(fleet.VariantID, map[string]string) error {
		defer close(finished)
		close(reading)
		<-release
		return nil
	}
	service := &kedaService{board: options.Board, metadata: reader}
	options.Board.Post(planAt(start))
	answered := make(chan error, 1)
	go func() {
		answered <- call(t, interceptor, func(ctx context.Context, _ any) (any, error) {
			return service.GetMetrics(ctx, metricsRequest("a"))
		})
	}()
	<-reading
	for !clock.HasWaiters() { // the timer of the deadline
		runtime.Gosched()
	}
	clock.Step(249 * time.Millisecond)
	require.Empty(t, answered)
	clock.Step(time.Millisecond)
	requireStatus(t, <-answered, codes.DeadlineExceeded, "no answer within 250ms")
	close(release)
	<-finished
}

func TestARequestThatPanicsIsAStatusAndALogLineWithoutItsValue(t *testing.T) {
	w := newWorld(t)
	options := ServerOptions{Board: w.board, Logger: slog.New(w.logs)}
	options.setDefaults()
	interceptor := newInterceptor(options)
	err := call(t, interceptor, func(context.Context, any) (any, error) { panic("hunter2") })
	requireStatus(t, err, codes.Internal, "not answered")
	err = call(t, interceptor, func(context.Context, any) (any, error) { return []int{}[len(err.Error())], nil })
	requireStatus(t, err, codes.Internal, "not answered")
	err = interceptor.stream(nil, &stuckStream{T: t}, &grpc.StreamServerInfo{FullMethod: "/test.Service/Stream"},
		func(any, grpc.ServerStream) error { panic("hunter2") })
	requireStatus(t, err, codes.Internal, "not answered")

	lines := w.logs.lines(slog.LevelError)
	require.Len(t, lines, 3)
	require.Contains(t, lines[0], "request crashed method=/test.Service/Method panic=a value of type string")
	require.Contains(t, lines[1], "index out of range")
	require.NotContains(t, strings.Join(lines, "\n"), "hunter2")
	require.Zero(t, testutil.ToFloat64(interceptor.open.WithLabelValues("test.Service/Stream")))
}

func TestACallerThatGoesAwayFreesItsRequest(t *testing.T) {
	options := ServerOptions{Board: NewBoard(BoardOptions{})}
	options.setDefaults()
	interceptor := newInterceptor(options)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := interceptor.unary(ctx, nil, &grpc.UnaryServerInfo{FullMethod: "/test.Service/Method"}, func(ctx context.Context, _ any) (any, error) {
		cancel()
		<-ctx.Done()
		return nil, ctx.Err()
	})
	require.Equal(t, codes.Canceled, status.Code(err))
}

func TestRequestsAreCountedByMethodAndCode(t *testing.T) {
	w := newWorld(t)
	client := w.keda()
	_, _ = client.GetMetrics(t.Context(), metricsRequest("a"))
	w.post(decided("a", 1))
	_, _ = client.GetMetrics(t.Context(), metricsRequest("a"))
	_, _ = client.IsActive(t.Context(), ref(""))
	l := w.listen(client, "a")
	require.NoError(t, testutil.GatherAndCompare(w.registry, strings.NewReader(`
# HELP wva_grpc_requests_total RPCs that ended, by method and status code.
# TYPE wva_grpc_requests_total counter
wva_grpc_requests_total{code="InvalidArgument",method="externalscaler.ExternalScaler/IsActive"} 1
wva_grpc_requests_total{code="OK",method="externalscaler.ExternalScaler/GetMetrics"} 1
wva_grpc_requests_total{code="Unavailable",method="externalscaler.ExternalScaler/GetMetrics"} 1
# HELP wva_open_streams Open streams by method.
# TYPE wva_open_streams gauge
wva_open_streams{method="externalscaler.ExternalScaler/StreamIsActive"} 1
# HELP wva_pushes_total Pushes that were sent to activate inactive objects.
# TYPE wva_pushes_total counter
wva_pushes_total 0
`), "wva_grpc_requests_total", "wva_open_streams", "wva_pushes_total"))
	w.post(inactive("a", 1))
	<-l.received
	w.stop()
	require.NoError(t, testutil.GatherAndCompare(w.registry, strings.NewReader(`
# HELP wva_open_streams Open streams by method.
# TYPE wva_open_streams gauge
wva_open_streams{method="externalscaler.ExternalScaler/StreamIsActive"} 0
# HELP wva_pushes_total Pushes that were sent to activate inactive objects.
# TYPE wva_pushes_total counter
wva_pushes_total 1
`), "wva_open_streams", "wva_pushes_total"))
}
