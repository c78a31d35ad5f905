package scaler

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	"github.com/wva-project/wva/fleet"
	wvav1alpha1 "github.com/wva-project/wva/proto/wva/v1alpha1"
)

// maxMessage bounds a request, in bytes. Kubernetes stores no ScaledObject above 1.5 MiB, so KEDA's
// requests fit.
const maxMessage = 4 << 20

// Keepalive of the server finds dead callers, since KEDA sets none; the enforcement lets other
// callers ping often.
const (
	keepaliveTime    = 30 * time.Second
	keepaliveTimeout = 10 * time.Second
	keepaliveMinimum = 5 * time.Second
)

// ServerOptions are the inputs and limits of a server.
type ServerOptions struct {
	// Board answers every RPC, and has the clock. Required.
	Board *Board
	// Observed returns the replicas in the spec of a ScaledObject's workload, and false if they are
	// not known or KEDA must not get them. It is asked about objects that the latest plan does not
	// have: their replicas are kept until they are decided. It must answer from memory. Default:
	// none is known, and KEDA gets an error.
	Observed func(fleet.VariantID) (replicas int, ok bool)
	// Logger takes failures of the server. Default: nothing is logged.
	Logger *slog.Logger
	// Registerer takes the server's metrics. Default: they are kept, and shown nowhere.
	Registerer prometheus.Registerer
	// TLS secures the port; if it requires client certificates, only their holders get an answer.
	// Default: plaintext, which is logged as a warning.
	TLS *tls.Config
	// Deadline bounds the answer of a unary RPC, by the clock of the board. Default: 250 ms.
	Deadline time.Duration
	// MaxStreamsPerPeer bounds the open streams of one address. KEDA opens two for each object, all
	// from one address. Default: 50,000.
	MaxStreamsPerPeer int
	// MaxUnknownStreams bounds the open streams of objects that the plan does not have. Default:
	// 1,000.
	MaxUnknownStreams int
	// ShutdownTimeout bounds how long Serve waits for RPCs to end after its context has ended, in
	// real time. Default: 5 s.
	ShutdownTimeout time.Duration
	// Seed determines the jitter of pushes. Default: drawn at random.
	Seed uint64
}

// Server is the gRPC server of KEDA's external scaler contract, the operators' API, grpc.health.v1
// and reflection.
type Server struct {
	grpc     *grpc.Server
	logger   *slog.Logger
	pusher   *pusher
	shutdown time.Duration
	closing  chan struct{} // closed once: every stream ends
	once     sync.Once     // closes closing
}

// NewServer returns a server; Serve makes it answer. It fails without a board, and if a metric
// cannot be registered.
func NewServer(options ServerOptions) (*Server, error) {
	if options.Board == nil {
		return nil, errors.New("scaler server: no board; set ServerOptions.Board")
	}
	options.setDefaults()
	interceptor := newInterceptor(options)
	s := &Server{
		logger:   options.Logger,
		pusher:   newPusher(options.Board, options.Seed, options.MaxUnknownStreams),
		shutdown: options.ShutdownTimeout,
		closing:  make(chan struct{}),
	}
	if err := register(options.Registerer, interceptor.requests, interceptor.open, pushesMetric(s.pusher)); err != nil {
		return nil, fmt.Errorf("scaler server: %w", err)
	}
	s.grpc = grpc.NewServer(grpcOptions(options.TLS, interceptor)...)
	externalscaler.RegisterExternalScalerServer(s.grpc, &kedaService{
		board: options.Board, pusher: s.pusher, metadata: newMetadataReader(options), observed: options.Observed, closing: s.closing,
	})
	wvav1alpha1.RegisterOperatorServiceServer(s.grpc, &operatorService{board: options.Board})
	healthv1.RegisterHealthServer(s.grpc, &healthService{board: options.Board, closing: s.closing})
	reflection.Register(s.grpc)
	if options.TLS == nil {
		s.logger.Warn("serving gRPC without TLS: anybody who reaches the port gets an answer, and trigger metadata are not encrypted")
	}
	return s, nil
}

// Serve answers on the listener until the context ends, then ends every stream without an error,
// waits for running RPCs within the shutdown timeout, and returns nil. It closes the listener. A
// server serves once.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var running sync.WaitGroup
	running.Go(func() { s.pusher.run(ctx) })
	running.Go(func() {
		<-ctx.Done()
		s.stop()
	})
	err := s.grpc.Serve(listener)
	cancel()
	running.Wait()
	// the error if the context ended first
	if err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("serving gRPC on %s: %w", listener.Addr(), err)
	}
	return nil
}

// Settle hands out every push that is due at the present time of the board's clock and waits until
// each has been sent. Pushes that the limit of five a second delays are not due. A caller in
// virtual time settles after each step of the clock and after each plan; all pushes are then on
// their way.
func (s *Server) Settle(ctx context.Context) error { return s.pusher.settle(ctx) }

// Pushes returns how many pushes were sent since the server was made.
func (s *Server) Pushes() uint64 { return s.pusher.pushes() }

// stop ends all streams, then all RPCs.
func (s *Server) stop() {
	s.once.Do(func() { close(s.closing) })
	graceful := make(chan struct{})
	go func() {
		s.grpc.GracefulStop()
		close(graceful)
	}()
	timer := time.NewTimer(s.shutdown)
	defer timer.Stop()
	select {
	case <-graceful:
	case <-timer.C:
		s.logger.Warn("requests did not end in time, closing their connections", "timeout", s.shutdown)
		s.grpc.Stop()
		<-graceful
	}
}

func (o *ServerOptions) setDefaults() {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Observed == nil {
		o.Observed = func(fleet.VariantID) (int, bool) { return 0, false }
	}
	if o.Deadline <= 0 {
		o.Deadline = 250 * time.Millisecond
	}
	if o.MaxStreamsPerPeer <= 0 {
		o.MaxStreamsPerPeer = 50_000
	}
	if o.MaxUnknownStreams <= 0 {
		o.MaxUnknownStreams = 1_000
	}
	if o.ShutdownTimeout <= 0 {
		o.ShutdownTimeout = 5 * time.Second
	}
	if o.Seed == 0 {
		o.Seed = rand.Uint64()
	}
}

// grpcOptions sets no limit to the streams of a connection: gRPC makes calls above such a limit
// wait, while the interceptor answers with a status.
func grpcOptions(config *tls.Config, interceptor *interceptor) []grpc.ServerOption {
	options := []grpc.ServerOption{
		grpc.UnaryInterceptor(interceptor.unary),
		grpc.StreamInterceptor(interceptor.stream),
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.WaitForHandlers(true),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: keepaliveTime, Timeout: keepaliveTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: keepaliveMinimum, PermitWithoutStream: true}),
	}
	if config != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(config)))
	}
	return options
}
