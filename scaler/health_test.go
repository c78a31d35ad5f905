package scaler

import (
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestHealthFollowsThePlan(t *testing.T) {
	w := newWorld(t)
	client := healthv1.NewHealthClient(w.connect(nil))
	check := func(service string) healthv1.HealthCheckResponse_ServingStatus {
		response, err := client.Check(t.Context(), &healthv1.HealthCheckRequest{Service: service})
		require.NoError(t, err)
		return response.Status
	}
	services := []string{"", "externalscaler.ExternalScaler"}
	for _, service := range services {
		require.Equal(t, healthv1.HealthCheckResponse_NOT_SERVING, check(service), "before the first plan")
	}
	w.post(decided("a", 1))
	for _, service := range services {
		require.Equal(t, healthv1.HealthCheckResponse_SERVING, check(service))
	}
	w.step(6 * time.Minute)
	require.Equal(t, healthv1.HealthCheckResponse_NOT_SERVING, check(""), "the plan is too old")

	for _, service := range []string{"nobody", "wva.v1alpha1.OperatorService"} {
		_, err := client.Check(t.Context(), &healthv1.HealthCheckRequest{Service: service})
		require.Equal(t, codes.NotFound, status.Code(err), service)
	}
	operators := healthv1.NewHealthClient(w.dial(w.private, nil))
	_, err := operators.Check(t.Context(), &healthv1.HealthCheckRequest{Service: "wva.v1alpha1.OperatorService"})
	require.NoError(t, err)
}

func TestHealthWatchSendsEachChange(t *testing.T) {
	w := newWorld(t)
	stream, err := healthv1.NewHealthClient(w.connect(nil)).Watch(t.Context(), &healthv1.HealthCheckRequest{})
	require.NoError(t, err)
	next := func() healthv1.HealthCheckResponse_ServingStatus {
		response, err := stream.Recv()
		require.NoError(t, err)
		return response.Status
	}
	require.Equal(t, healthv1.HealthCheckResponse_NOT_SERVING, next())
	w.post(decided("a", 1))
	require.Equal(t, healthv1.HealthCheckResponse_SERVING, next())
	for !w.clock.HasWaiters() { // the timer of the plan's end
		runtime.Gosched()
	}
	w.step(6 * time.Minute)
	require.Equal(t, healthv1.HealthCheckResponse_NOT_SERVING, next(), "age alone is a change")
	w.post(decided("a", 1))
	require.Equal(t, healthv1.HealthCheckResponse_SERVING, next())
	w.stop()
	for err == nil {
		_, err = stream.Recv()
	}
	require.ErrorIs(t, err, io.EOF)
}

func TestHealthWatchOfAnUnknownServiceStaysOpen(t *testing.T) {
	w := newWorld(t)
	stream, err := healthv1.NewHealthClient(w.connect(nil)).Watch(t.Context(), &healthv1.HealthCheckRequest{Service: "nobody"})
	require.NoError(t, err)
	response, err := stream.Recv()
	require.NoError(t, err)
	require.Equal(t, healthv1.HealthCheckResponse_SERVICE_UNKNOWN, response.Status)
}

func TestHTTPPortShowsHealthReadinessAndMetrics(t *testing.T) {
	clock := clocktesting.NewFakeClock(start)
	board := NewBoard(BoardOptions{Clock: clock})
	registry := prometheus.NewRegistry()
	registry.MustRegister(newBoardMetrics(board))
	handler := NewHTTPHandler(board, registry)
	get := func(path string) (int, string) {
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, nil))
		return recorder.Code, recorder.Body.String()
	}
	requireAnswer := func(path string, code int, text string) {
		t.Helper()
		gotCode, body := get(path)
		require.Equal(t, code, gotCode)
		require.Contains(t, body, text)
	}
	requireAnswer("/healthz", http.StatusOK, "ok")
	requireAnswer("/readyz", http.StatusServiceUnavailable, "nothing is decided yet")
	board.Post(planAt(start, decided("a", 3)))
	requireAnswer("/readyz", http.StatusOK, "ok")
	requireAnswer("/metrics", http.StatusOK, `wva_desired_replicas{accelerator="",model="model-a",namespace="prod",target_kind="Deployment",target_name="deploy-a"} 3`)
	clock.Step(6 * time.Minute)
	requireAnswer("/healthz", http.StatusOK, "ok")
	requireAnswer("/readyz", http.StatusServiceUnavailable, "6m0s old")
	requireAnswer("/elsewhere", http.StatusNotFound, "")
}
