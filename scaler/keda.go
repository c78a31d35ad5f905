package scaler

import (
	"context"
	"fmt"

	"github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"google.golang.org/grpc"
)

// metricName is the one metric of every object, target 1: KEDA and the HPA then want as many replicas as its value.
const metricName = "wva-desired-replicas"

// kedaService answers KEDA from the board.
type kedaService struct {
	externalscaler.UnimplementedExternalScalerServer

	board    *Board
	pusher   *pusher
	metadata metadataReader
	closing  <-chan struct{} // closed when the server shuts down
}

// GetMetricSpec returns the same for every object and never fails: an error here costs KEDA's user the whole HPA.
func (k *kedaService) GetMetricSpec(context.Context, *externalscaler.ScaledObjectRef) (*externalscaler.GetMetricSpecResponse, error) {
	return metricSpec(), nil
}

// StreamMetricSpec sends what GetMetricSpec returns, once, and stays open: the metric never changes.
func (k *kedaService) StreamMetricSpec(ref *externalscaler.ScaledObjectRef, server grpc.ServerStreamingServer[externalscaler.GetMetricSpecResponse]) error {
	id, err := identify(ref.GetNamespace(), ref.GetName())
	if err != nil {
		return err
	}
	stream, err := k.pusher.open(id, false)
	if err != nil {
		return err
	}
	defer k.pusher.close(stream)
	if err := server.Send(metricSpec()); err != nil {
		return err
	}
	select {
	case <-server.Context().Done():
		return server.Context().Err()
	case <-k.closing:
		return nil
	}
}

// GetMetrics returns the number of replicas that the plan in force wants or holds. It always answers with its one metric,
// whatever the name in the request: an HPA that still carries the name of an earlier release is served too.
func (k *kedaService) GetMetrics(ctx context.Context, request *externalscaler.GetMetricsRequest) (*externalscaler.GetMetricsResponse, error) {
	replicas, err := k.replicas(ctx, request.GetScaledObjectRef())
	if err != nil {
		return nil, err
	}
	return &externalscaler.GetMetricsResponse{MetricValues: []*externalscaler.MetricValue{{
		MetricName:       metricName,
		MetricValue:      int64(replicas),
		MetricValueFloat: float64(replicas),
	}}}, nil
}

// IsActive reports whether the number that GetMetrics returns is above zero.
func (k *kedaService) IsActive(ctx context.Context, ref *externalscaler.ScaledObjectRef) (*externalscaler.IsActiveResponse, error) {
	replicas, err := k.replicas(ctx, ref)
	if err != nil {
		return nil, err
	}
	return &externalscaler.IsActiveResponse{Result: replicas > 0}, nil
}

// StreamIsActive sends `true` when a sleeping object is to be woken, and nothing else. Its header is sent as soon as the
// stream is registered. It ends without an error when the server shuts down: KEDA then reconnects soonest.
func (k *kedaService) StreamIsActive(ref *externalscaler.ScaledObjectRef, server grpc.ServerStreamingServer[externalscaler.IsActiveResponse]) error {
	id, err := identify(ref.GetNamespace(), ref.GetName())
	if err != nil {
		return err
	}
	stream, err := k.pusher.open(id, true)
	if err != nil {
		return err
	}
	defer k.pusher.close(stream)
	if err := server.SendHeader(nil); err != nil {
		return err
	}
	for {
		select {
		case <-server.Context().Done():
			return server.Context().Err()
		case <-k.closing:
			return nil
		case <-stream.turn:
			err := server.Send(&externalscaler.IsActiveResponse{Result: true})
			k.pusher.done(stream, err)
			if err != nil {
				return err
			}
		}
	}
}

// replicas returns the number that stands for an object, at least 0, or why there is none or KEDA must not have it. The plan
// is the truth; the request's metadata are looked at only where it has no number.
func (k *kedaService) replicas(ctx context.Context, ref *externalscaler.ScaledObjectRef) (int, error) {
	id, err := identify(ref.GetNamespace(), ref.GetName())
	if err != nil {
		return 0, err
	}
	latest := k.board.latest.Load()
	if err := k.board.ready(latest); err != nil {
		return 0, err
	}
	decision, found := latest.lookup(id)
	if decision.Unsupported {
		return 0, refuse(misapplied, decision.Reason.Text) // whole, where it fits: the event stands at the object
	}
	if found && decision.Known && decision.Replicas >= 0 {
		return decision.Replicas, nil
	}
	if err := k.metadata.fault(ctx, id, ref.GetScalerMetadata()); err != nil {
		return 0, err
	}
	if !found {
		return 0, refuse(undecided, fmt.Sprintf("%s is not decided yet; if this lasts, check that the scaler watches its namespace and that it is a ScaledObject", id))
	}
	return 0, refuse(undecided, fmt.Sprintf("%s: no number is known: %s", id, decision.Reason.Text))
}

func metricSpec() *externalscaler.GetMetricSpecResponse {
	return &externalscaler.GetMetricSpecResponse{MetricSpecs: []*externalscaler.MetricSpec{{
		MetricName:      metricName,
		TargetSize:      1,
		TargetSizeFloat: 1,
	}}}
}
