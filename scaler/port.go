package scaler

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"
)

const (
	// maxMessage bounds a request, in bytes. KEDA's have a few hundred bytes, and the largest
	// ScaledObject that Kubernetes stores has 1.5 MiB, of which the trigger's metadata are a part.
	maxMessage = 1 << 20
	// maxHeaders bounds the headers of an RPC, in bytes: they are kept while it is open.
	maxHeaders = 8 << 10
	// handshakeTimeout is the longest time from a connection to its first RPC.
	handshakeTimeout = 10 * time.Second
)

// Keepalive of the server finds dead callers, since KEDA sets none; the enforcement lets other
// callers ping often.
const (
	keepaliveTime    = 30 * time.Second
	keepaliveTimeout = 10 * time.Second
	keepaliveMinimum = 5 * time.Second
)

// portOptions secure a port, and bound the connections and RPCs that clients can open.
type portOptions struct {
	tls         *tls.Config
	connections int // in all
	// ownConnections is how many an address may have, as a multiple of those that are free.
	ownConnections float64
	calls          int // open unary calls in all
	streams        int // open streams in all
	// concurrent bounds the RPCs of one connection whose answers have not left: further ones wait
	// at the client. It is all that bounds the answers that a client does not take, since their
	// calls have ended.
	concurrent int
}

// port is a gRPC server on one listener.
type port struct {
	grpc        *grpc.Server
	admission   *admission
	connections *quota
	rejected    prometheus.Counter // connections
	logger      *slog.Logger
	shutdown    time.Duration
	closing     chan struct{} // closed once: every stream ends
	once        sync.Once     // closes closing
}

// newPort returns a port with the services that a function registers.
func newPort(options ServerOptions, own portOptions, interceptor *interceptor, services func(*port)) *port {
	p := &port{
		connections: newQuota(own.connections, own.ownConnections), rejected: interceptor.rejected.WithLabelValues("connections"),
		logger: options.Logger, shutdown: options.ShutdownTimeout, closing: make(chan struct{}),
	}
	p.admission = newAdmission(own.calls, own.streams, options.RequestTimeout, interceptor.rejected)
	p.grpc = grpc.NewServer(grpcOptions(own, interceptor, p.admission)...)
	services(p)
	reflection.Register(p.grpc)
	p.admission.know(p.grpc.GetServiceInfo())
	return p
}

// register adds a service, which must not serve yet.
func (p *port) register(service grpc.ServiceDesc, implementation any) {
	p.grpc.RegisterService(p.admission.unaries(service), implementation)
}

func grpcOptions(own portOptions, interceptor *interceptor, admission *admission) []grpc.ServerOption {
	options := []grpc.ServerOption{
		grpc.InTapHandle(admission.admit),
		grpc.UnaryInterceptor(interceptor.unary),
		grpc.ChainStreamInterceptor(admission.stream, interceptor.stream),
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.MaxHeaderListSize(maxHeaders),
		grpc.MaxConcurrentStreams(uint32(own.concurrent)),
		grpc.StaticStreamWindowSize(minimumWindow),
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.WaitForHandlers(true),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: keepaliveTime, Timeout: keepaliveTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: keepaliveMinimum, PermitWithoutStream: true}),
	}
	if own.tls != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(own.tls)))
	}
	return options
}

// minimumWindow is the smallest number of bytes that gRPC lets a client send before the server asks
// for a request.
const minimumWindow = 64 << 10

// serve answers until the context ends, then ends every stream without an error, waits for running
// RPCs within the shutdown timeout, and returns nil.
func (p *port) serve(ctx context.Context, listener net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var running sync.WaitGroup
	running.Go(func() {
		<-ctx.Done()
		p.stop()
	})
	err := p.grpc.Serve(newIntake(listener, p.connections, p.admission.arrivals, p.rejected.Inc))
	cancel()
	running.Wait()
	// the error if the context ended first
	if err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("serving gRPC on %s: %w", listener.Addr(), err)
	}
	return nil
}

// stop ends all streams, then all RPCs.
func (p *port) stop() {
	p.once.Do(func() { close(p.closing) })
	graceful := make(chan struct{})
	go func() {
		p.grpc.GracefulStop()
		close(graceful)
	}()
	timer := time.NewTimer(p.shutdown)
	defer timer.Stop()
	select {
	case <-graceful:
	case <-timer.C:
		p.logger.Warn("requests did not end in time, closing their connections", "timeout", p.shutdown)
		p.grpc.Stop()
		<-graceful
	}
}
