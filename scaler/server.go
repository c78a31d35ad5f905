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
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/wva-project/wva/fleet"
	wvav1alpha1 "github.com/wva-project/wva/proto/wva/v1alpha1"
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
	// OperatorsTLS secures the port of operators in the same way. Default: plaintext, which is for
	// the loopback.
	OperatorsTLS *tls.Config
	// Deadline bounds the answer of a unary RPC, by the clock of the board. Default: 250 ms.
	Deadline time.Duration
	// MaxStreams bounds the open streams of all clients. If none is free, the address with the most
	// loses its newest ones to those with fewer. KEDA opens two for each object. Default: 50,000.
	MaxStreams int
	// MaxUnknownStreams bounds the open streams of objects that the plan does not have. Each
	// address gets at most twice as many as are free, which are two thirds if there is no other.
	// Default: 3,000.
	MaxUnknownStreams int
	// MaxCalls bounds the unary calls that are open, in the same way. Default: 30,000, so that KEDA
	// gets an answer if it asks about 20,000 objects at once.
	MaxCalls int
	// MaxConnections bounds the open connections of all clients. Each address gets at most 1/128 of
	// those that are free, or 1/16 if TLS requires client certificates. KEDA has one for each
	// certificate that it uses. Default: 1,000.
	MaxConnections int
	// RequestTimeout bounds the time in which a request must arrive, in real time. Default: 1
	// minute.
	RequestTimeout time.Duration
	// ShutdownTimeout bounds how long Serve waits for RPCs to end after its context has ended, in
	// real time. Default: 5 s.
	ShutdownTimeout time.Duration
	// Seed determines the jitter of pushes. Default: drawn at random.
	Seed uint64
}

// Server is the gRPC server of KEDA's external scaler contract, and on a port of its own that of
// the operators' API. Both ports have grpc.health.v1 and reflection.
type Server struct {
	logger    *slog.Logger
	pusher    *pusher
	service   *kedaService
	keda      *port
	operators *port
	rejected  *prometheus.CounterVec
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
		rejected: interceptor.rejected,
	}
	s.pusher.rejected = interceptor.rejected.WithLabelValues("unknown_streams")
	if err := register(options.Registerer, interceptor.requests, interceptor.open, interceptor.rejected, pushesMetric(s.pusher)); err != nil {
		return nil, fmt.Errorf("scaler server: %w", err)
	}
	s.keda = newPort(options, kedaPort(options), interceptor, func(p *port) {
		s.service = &kedaService{
			board: options.Board, pusher: s.pusher, metadata: newMetadataReader(options), observed: options.Observed, closing: p.closing,
		}
		p.register(externalscaler.ExternalScaler_ServiceDesc, s.service)
		p.register(healthv1.Health_ServiceDesc, &healthService{
			board: options.Board, service: externalscaler.ExternalScaler_ServiceDesc.ServiceName, closing: p.closing,
		})
	})
	// An answer to operators may have 4 MiB. All clients of the loopback have one address.
	operators := portOptions{
		tls: options.OperatorsTLS, connections: 400, ownConnections: 1.0 / 16, calls: 24, streams: 64, concurrent: 8,
	}
	s.operators = newPort(options, operators, interceptor, func(p *port) {
		p.register(wvav1alpha1.OperatorService_ServiceDesc, &operatorService{board: options.Board})
		p.register(healthv1.Health_ServiceDesc, &healthService{
			board: options.Board, service: wvav1alpha1.OperatorService_ServiceDesc.ServiceName, closing: p.closing,
		})
	})
	if options.TLS == nil {
		s.logger.Warn("serving gRPC without TLS: anybody who reaches the port gets an answer, and trigger metadata are not encrypted")
	}
	return s, nil
}

// kedaPort returns the options of KEDA's port. KEDA has one connection for each certificate that it
// uses. Without client certificates these are few: strangers may leave many answers on each.
func kedaPort(options ServerOptions) portOptions {
	own := 1.0 / 128
	if options.TLS != nil && options.TLS.ClientAuth == tls.RequireAndVerifyClientCert {
		own = 1.0 / 16
	}
	return portOptions{
		tls:         options.TLS,
		connections: options.MaxConnections, ownConnections: own, calls: options.MaxCalls, streams: options.MaxStreams,
		concurrent: alone(options.MaxCalls, twice) + options.MaxStreams + alone(maxDialogues, twice),
	}
}

// Serve answers KEDA on the listener until the context ends, then ends every stream without an
// error, waits for running RPCs within the shutdown timeout, and returns nil. It closes the
// listener. A server serves once.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var running sync.WaitGroup
	running.Go(func() { s.pusher.run(ctx) })
	err := s.keda.serve(ctx, listener)
	cancel()
	running.Wait()
	return err
}

// ServeOperators answers operators on the listener, as Serve answers KEDA.
func (s *Server) ServeOperators(ctx context.Context, listener net.Listener) error {
	return s.operators.serve(ctx, listener)
}

// Replicas returns the number that KEDA gets for an object with these trigger metadata, or the
// error that it gets, without a call over a network.
func (s *Server) Replicas(ctx context.Context, id fleet.VariantID, metadata map[string]string) (int, error) {
	return s.service.answer(ctx, id, metadata)
}

// Settle hands out every push that is due at the present time of the board's clock and waits until
// each has been sent. Pushes that the limit of five a second delays are not due. A caller in
// virtual time settles after each step of the clock and after each plan; all pushes are then on
// their way.
func (s *Server) Settle(ctx context.Context) error { return s.pusher.settle(ctx) }

// Pushes returns how many pushes were sent since the server was made.
func (s *Server) Pushes() uint64 { return s.pusher.pushes() }

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
	for _, limit := range []struct {
		field *int
		value int
	}{
		{&o.MaxStreams, 50_000}, {&o.MaxUnknownStreams, 3_000}, {&o.MaxCalls, 30_000}, {&o.MaxConnections, 1_000},
	} {
		if *limit.field <= 0 {
			*limit.field = limit.value
		}
	}
	if o.RequestTimeout <= 0 {
		o.RequestTimeout = time.Minute
	}
	if o.ShutdownTimeout <= 0 {
		o.ShutdownTimeout = 5 * time.Second
	}
	if o.Seed == 0 {
		o.Seed = rand.Uint64()
	}
}
