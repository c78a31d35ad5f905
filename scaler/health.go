package scaler

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/grpc"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
)

// healthService serves grpc.health.v1. It keeps no state: the board says whether the server can
// answer.
type healthService struct {
	healthv1.UnimplementedHealthServer

	board   *Board
	service string // the one of this port; the empty name is known too
	closing <-chan struct{}
}

// Check returns SERVING while the plan may be acted on and the server is not shutting down.
func (h *healthService) Check(_ context.Context, request *healthv1.HealthCheckRequest) (*healthv1.HealthCheckResponse, error) {
	if !h.knows(request.GetService()) {
		return nil, newError(unknownService, "unknown service: use one that reflection lists, or the empty name")
	}
	return &healthv1.HealthCheckResponse{Status: h.status()}, nil
}

// Watch sends the status of Check at once and whenever it changes.
func (h *healthService) Watch(request *healthv1.HealthCheckRequest, server grpc.ServerStreamingServer[healthv1.HealthCheckResponse]) error {
	last := healthv1.HealthCheckResponse_UNKNOWN
	for {
		latest := h.board.latest.Load()
		now := h.status()
		if !h.knows(request.GetService()) {
			now = healthv1.HealthCheckResponse_SERVICE_UNKNOWN
		}
		if now != last {
			if err := server.Send(&healthv1.HealthCheckResponse{Status: now}); err != nil {
				return err
			}
			last = now
		}
		select {
		case <-h.closing:
			return nil
		default:
		}
		if err := h.await(server.Context(), latest); err != nil {
			return err
		}
	}
}

// await returns once the status may have changed: a new plan, a plan too old, or the end of the
// server.
func (h *healthService) await(ctx context.Context, latest *boardState) error {
	var expired <-chan time.Time
	if expiry, posted := h.board.expiry(latest); posted && h.board.ready(latest) == nil {
		timer := h.board.clock.NewTimer(expiry.Sub(h.board.clock.Now()) + 1)
		defer timer.Stop()
		expired = timer.C()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-h.closing:
	case <-latest.superseded:
	case <-expired:
	}
	return nil
}

func (h *healthService) status() healthv1.HealthCheckResponse_ServingStatus {
	select {
	case <-h.closing:
		return healthv1.HealthCheckResponse_NOT_SERVING
	default:
	}
	if h.board.Ready() != nil {
		return healthv1.HealthCheckResponse_NOT_SERVING
	}
	return healthv1.HealthCheckResponse_SERVING
}

func (h *healthService) knows(name string) bool { return name == "" || name == h.service }

// NewHTTPHandler returns the handler of the HTTP port: /healthz is 200 while the process answers,
// /readyz is 200 while the plan on the board may be acted on (else 503 with the reason), /metrics
// shows the metrics of the gatherer.
func NewHTTPHandler(board *Board, gatherer prometheus.Gatherer) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { writeLine(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := board.Ready(); err != nil {
			writeLine(w, http.StatusServiceUnavailable, err.Error())
			return
		}
		writeLine(w, http.StatusOK, "ok")
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{}))
	return mux
}

func writeLine(w http.ResponseWriter, code int, line string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(line + "\n")) // it fails only if the caller went away
}
