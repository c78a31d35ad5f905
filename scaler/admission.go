package scaler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
)

// maxDialogues bounds the streams on which a client may send any number of requests: those of
// reflection.
const maxDialogues = 64

// twice as many as are free, which are two thirds of all if there is no other address.
const twice = 2

// admission bounds the RPCs that are open. It counts them before anything is allocated for one; one
// too many is answered with an error before its request is read. An RPC whose request does not
// arrive in time is ended.
type admission struct {
	calls     limit   // unary
	streams   *shares // of one request
	excess    error   // answers a stream above the limit
	dialogues limit   // of any number of requests
	arrivals  *arrivals
	patience  time.Duration
	rejected  *prometheus.CounterVec     // by limit
	methods   map[string]grpc.MethodInfo // by full name; gRPC rejects others by itself
}

// limit is a bound on open RPCs.
type limit struct {
	*quota

	name   string // in the metric
	remedy string
}

// streamsLimit is the name of the limit of streams in the metric.
const streamsLimit = "streams"

func newAdmission(calls, streams int, patience time.Duration, rejected *prometheus.CounterVec) *admission {
	return &admission{
		calls:     limit{newQuota(calls, twice), "calls", "call less often"},
		streams:   newShares(streams),
		excess:    tooMany(streamsLimit, streams, "close unused ones, or raise grpc.maxStreams"),
		dialogues: limit{newQuota(maxDialogues, twice), "reflection", "close unused ones"},
		arrivals:  &arrivals{}, patience: patience, rejected: rejected, methods: make(map[string]grpc.MethodInfo),
	}
}

// know takes the methods of a server, which must not serve yet.
func (a *admission) know(services map[string]grpc.ServiceInfo) {
	for service, info := range services {
		for _, method := range info.Methods {
			a.methods["/"+service+"/"+method.Name] = method
		}
	}
}

// rejection is the key of the error that answers an RPC, in its context.
type rejection struct{}

// rejectionOf returns the error that answers an RPC; nil if it was admitted.
func rejectionOf(ctx context.Context) error {
	err, _ := ctx.Value(rejection{}).(error)
	return err
}

// admit implements tap.ServerInHandle. It does not reject by an error: gRPC would keep the timer of
// such an RPC until the deadline that its client chose.
func (a *admission) admit(ctx context.Context, info *tap.Info) (context.Context, error) {
	method, host := a.methods[info.FullMethodName], callerOf(ctx).host
	of := a.calls
	switch {
	case method.IsClientStream:
		of = a.dialogues
	case method.IsServerStream:
		return a.admitStream(ctx, host), nil
	}
	if !of.enter(host) {
		a.rejected.WithLabelValues(of.name).Inc()
		return context.WithValue(ctx, rejection{}, tooMany(of.name, of.most, of.remedy)), nil
	}
	context.AfterFunc(ctx, func() { of.leave(host) }) // gRPC ends the context with the RPC
	return ctx, nil
}

// admitStream rejects a stream, or later ends it, if the address has more than its part.
func (a *admission) admitStream(ctx context.Context, host string) context.Context {
	open, end := context.WithCancelCause(ctx)
	entered := a.streams.enter(host, func() {
		a.rejected.WithLabelValues(streamsLimit).Inc()
		end(a.excess)
	})
	if entered == nil {
		end(nil)
		a.rejected.WithLabelValues(streamsLimit).Inc()
		return context.WithValue(ctx, rejection{}, a.excess)
	}
	context.AfterFunc(open, func() { a.streams.leave(entered) })
	return open
}

func tooMany(name string, most int, remedy string) error {
	return newError(limitExceeded, fmt.Sprintf("too many %s are open from this address, of at most %d from all: %s", name, most, remedy))
}

// endOf returns the error that ended an admitted RPC; nil if none did.
func endOf(ctx context.Context) error {
	if err, ended := errors.AsType[*requestError](context.Cause(ctx)); ended {
		return err
	}
	return nil
}

// receive waits for the request of an RPC until too much has been read meanwhile, or the patience
// is over. Both begin when somebody waits: a request that lies there is never late, however busy
// the server is.
func (a *admission) receive(receive func() error) error {
	waiting := a.arrivals.begin()
	defer a.arrivals.end(waiting)
	timer := time.NewTimer(a.patience)
	defer timer.Stop()
	received := make(chan error, 1)
	go func() { received <- recoverPanic(receive) }()
	var err error
	select {
	case err = <-received:
		// gRPC's answer to a request that is too large
		if status.Code(err) != codes.ResourceExhausted {
			return err
		}
	case <-waiting.superseded:
		err = newError(limitExceeded, fmt.Sprintf("%d MiB were read before the request was complete: send smaller ones, or fewer at a time", maxInFlight>>20))
	case <-timer.C:
		err = newError(limitExceeded, fmt.Sprintf("the request is not complete after %s: send it faster", a.patience))
	}
	a.rejected.WithLabelValues("request").Inc()
	return statusOf(err).Err() // gRPC then ends the receipt
}

// unaries returns a service whose unary methods receive their requests that way, if they are
// admitted.
func (a *admission) unaries(service grpc.ServiceDesc) *grpc.ServiceDesc {
	service.Methods = slices.Clone(service.Methods)
	for i, method := range service.Methods {
		service.Methods[i].Handler = func(server any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
			if err := rejectionOf(ctx); err != nil {
				return nil, statusOf(err).Err()
			}
			received := func(request any) error { return a.receive(func() error { return decode(request) }) }
			return method.Handler(server, ctx, received, interceptor)
		}
	}
	return &service
}

// stream is the first interceptor of streams, which receive their one request in the same way.
func (a *admission) stream(service any, server grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if err := rejectionOf(server.Context()); err != nil {
		return statusOf(err).Err()
	}
	if !info.IsClientStream {
		server = receivingStream{server, a}
	}
	return next(service, server)
}

type receivingStream struct {
	grpc.ServerStream

	admission *admission
}

func (s receivingStream) RecvMsg(message any) error {
	return s.admission.receive(func() error { return s.ServerStream.RecvMsg(message) })
}
