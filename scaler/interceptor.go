package scaler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
)

// interceptor wraps every RPC that was admitted: it recovers from a panic in one request, turns
// errors into statuses, and counts.
type interceptor struct {
	logger   *slog.Logger
	requests *prometheus.CounterVec // by method and code
	open     *prometheus.GaugeVec   // by method
	rejected *prometheus.CounterVec // by limit
}

func newInterceptor(options ServerOptions) *interceptor {
	return &interceptor{
		logger: options.Logger,
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "wva_grpc_requests_total", Help: "RPCs that ended, by method and status code.",
		}, []string{"method", "code"}),
		open: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "wva_open_streams", Help: "Open streams by method.",
		}, []string{"method"}),
		rejected: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "wva_grpc_rejected_total",
			Help: "Connections, calls, streams and requests that were rejected or ended, by limit.",
		}, []string{"limit"}),
	}
}

func (i *interceptor) unary(ctx context.Context, request any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	var response any
	err := recoverPanic(func() (err error) {
		response, err = next(ctx, request)
		return err
	})
	return response, i.finish(info.FullMethod, err)
}

func (i *interceptor) stream(service any, server grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	open := i.open.WithLabelValues(methodName(info.FullMethod))
	open.Inc()
	defer open.Dec()
	err := recoverPanic(func() error { return next(service, server) })
	if ended := endOf(server.Context()); ended != nil {
		err = ended // its handler saw that the context ended
	}
	return i.finish(info.FullMethod, err)
}

// finish counts the outcome of an RPC and returns the error for its caller. Requests are never
// logged: they contain secrets.
func (i *interceptor) finish(method string, err error) error {
	answer := statusOf(err)
	i.requests.WithLabelValues(methodName(method), answer.Code().String()).Inc()
	if answer.Code() == codes.Internal {
		if crash, crashed := errors.AsType[*panicError](err); crashed {
			i.logger.Error("request crashed", "method", method, "panic", withoutSecrets(crash.value), "stack", crash.stack)
		} else {
			i.logger.Error("request failed", "method", method, "error", err)
		}
	}
	return answer.Err()
}

func methodName(fullMethod string) string { return strings.TrimPrefix(fullMethod, "/") }

// panicError is a recovered panic.
type panicError struct {
	value any
	stack string
}

func (p *panicError) Error() string { return fmt.Sprintf("panic: %v", p.value) }

// recoverPanic calls a function and returns its panic as an error. One bad request or snapshot must
// not take the answers of the whole fleet away.
func recoverPanic(call func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &panicError{value: value, stack: string(debug.Stack())}
		}
	}()
	return call()
}

// withoutSecrets describes the value of a panic in a request. Only errors of the Go runtime are
// quoted whole.
func withoutSecrets(value any) string {
	if err, ok := value.(runtime.Error); ok {
		return err.Error()
	}
	return fmt.Sprintf("a value of type %T", value)
}
