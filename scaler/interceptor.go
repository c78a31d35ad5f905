package scaler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
)

// gate is what every RPC passes: it bounds the streams of a peer, survives a bug in one request, turns errors into
// statuses, and counts.
type gate struct {
	maxStreams int // open at once, per peer
	logger     *slog.Logger
	requests   *prometheus.CounterVec // by method and code
	open       *prometheus.GaugeVec   // by method

	mu      sync.Mutex
	streams map[string]int // by peer
}

func newGate(options ServerOptions) *gate {
	return &gate{
		maxStreams: options.MaxStreamsPerPeer,
		logger:     options.Logger,
		streams:    make(map[string]int),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "wva_grpc_requests_total", Help: "RPCs that ended, by method and status code.",
		}, []string{"method", "code"}),
		open: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "wva_open_streams", Help: "Open streams by method.",
		}, []string{"method"}),
	}
}

func (g *gate) unary(ctx context.Context, request any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	var response any
	err := guard(func() (err error) {
		response, err = next(ctx, request)
		return err
	})
	return response, g.conclude(info.FullMethod, err)
}

func (g *gate) stream(service any, server grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	from := peerHost(server.Context())
	if err := g.enter(from); err != nil {
		return g.conclude(info.FullMethod, err)
	}
	defer g.leave(from)
	open := g.open.WithLabelValues(methodName(info.FullMethod))
	open.Inc()
	defer open.Dec()
	err := guard(func() error { return next(service, server) })
	return g.conclude(info.FullMethod, err)
}

// conclude counts the outcome of an RPC and returns what its caller gets. Requests are never logged: they hold secrets.
func (g *gate) conclude(method string, err error) error {
	answer := statusOf(err)
	g.requests.WithLabelValues(methodName(method), answer.Code().String()).Inc()
	if answer.Code() == codes.Internal {
		if crash, crashed := errors.AsType[*panicError](err); crashed {
			g.logger.Error("request crashed", "method", method, "panic", withoutSecrets(crash.value), "stack", crash.stack)
		} else {
			g.logger.Error("request failed", "method", method, "error", err)
		}
	}
	return answer.Err()
}

func (g *gate) enter(from string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.streams[from] >= g.maxStreams {
		return refuse(crowded, fmt.Sprintf("%d streams are open from this address already; raise the limit of streams per peer", g.maxStreams))
	}
	g.streams[from]++
	return nil
}

func (g *gate) leave(from string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.streams[from]--; g.streams[from] == 0 {
		delete(g.streams, from)
	}
}

func peerHost(ctx context.Context) string {
	from, known := peer.FromContext(ctx)
	if !known {
		return ""
	}
	host, _, err := net.SplitHostPort(from.Addr.String())
	if err != nil {
		return from.Addr.String()
	}
	return host
}

func methodName(fullMethod string) string { return strings.TrimPrefix(fullMethod, "/") }

// panicError is a panic that was survived.
type panicError struct {
	value any
	stack string
}

func (p *panicError) Error() string { return fmt.Sprintf("panic: %v", p.value) }

// guard calls a function and returns its panic as an error. One poisoned request or snapshot must not take the answers of
// the whole fleet away.
func guard(call func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &panicError{value: value, stack: string(debug.Stack())}
		}
	}()
	return call()
}

// withoutSecrets describes the value of a panic in a request. Only the runtime's own words are taken whole.
func withoutSecrets(value any) string {
	if err, ok := value.(runtime.Error); ok {
		return err.Error()
	}
	return fmt.Sprintf("a value of type %T", value)
}
