package scaler

import (
	"context"
	"fmt"

	"github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"google.golang.org/grpc"

	"github.com/wva-project/wva/fleet"
)

// metricName is the one metric of every object. Its target is 1, so KEDA and the HPA want as many
// replicas as its value.
const metricName = "wva-desired-replicas"

// kedaService answers KEDA from the board.
type kedaService struct {
	externalscaler.UnimplementedExternalScalerServer

	board    *Board
	pusher   *pusher
	metadata metadataReader
	observed func(fleet.VariantID) (replicas int, ok bool)
	closing  <-chan struct{} // closed when the server shuts down
}

// GetMetricSpec returns the same for every object and never fails: after an error KEDA makes no
// HPA.
func (k *kedaService) GetMetricSpec(context.Context, *externalscaler.ScaledObjectRef) (*externalscaler.GetMetricSpecResponse, error) {
	return metricSpec(), nil
}

// StreamMetricSpec sends the result of GetMetricSpec once and stays open: the metric never changes.
func (k *kedaService) StreamMetricSpec(ref *externalscaler.ScaledObjectRef, server grpc.ServerStreamingServer[externalscaler.GetMetricSpecResponse]) error {
	id, err := identify(ref.GetNamespace(), ref.GetName())
	if err != nil {
		return err
	}
	stream, err := k.pusher.open(callerOf(server.Context()), id, false)
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

// GetMetrics returns the number of replicas of the latest plan, decided or held. It always answers
// with its one metric, whatever the name in the request: an HPA that still has the name of an
// earlier release is served too.
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

// StreamIsActive sends `true` when an inactive object is to be activated, and nothing else. Its
// header is sent as soon as the stream is registered. It ends without an error when the server
// shuts down: KEDA then reconnects soonest.
func (k *kedaService) StreamIsActive(ref *externalscaler.ScaledObjectRef, server grpc.ServerStreamingServer[externalscaler.IsActiveResponse]) error {
	id, err := identify(ref.GetNamespace(), ref.GetName())
	if err != nil {
		return err
	}
	stream, err := k.pusher.open(callerOf(server.Context()), id, true)
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

// replicas returns the number of replicas of an object, at least 0, or why KEDA gets none.
func (k *kedaService) replicas(ctx context.Context, ref *externalscaler.ScaledObjectRef) (int, error) {
	id, err := identify(ref.GetNamespace(), ref.GetName())
	if err != nil {
		return 0, err
	}
	return k.answer(ctx, id, ref.GetScalerMetadata())
}

// answer returns the number of an object. The plan comes first; the request's metadata are read
// only if it has no number. An object that the plan does not have yet keeps its current replicas.
func (k *kedaService) answer(ctx context.Context, id fleet.VariantID, metadata map[string]string) (int, error) {
	latest := k.board.latest.Load()
	if err := k.board.ready(latest); err != nil {
		return 0, err
	}
	decision, found := latest.lookup(id)
	if decision.Unsupported {
		// the event is on the object: no name is needed
		return 0, newError(unsupported, reasonText("", decision.Reason))
	}
	if found && decision.Known && decision.Replicas >= 0 {
		return decision.Replicas, nil
	}
	if err := k.metadata.validate(ctx, id, metadata); err != nil {
		return 0, err
	}
	if found {
		return 0, newError(noNumber, reasonText(shortID(id)+": no number is known: ", decision.Reason))
	}
	if replicas, ok := k.observed(id); ok {
		return max(0, replicas), nil
	}
	return 0, newError(noNumber, fmt.Sprintf("%s is not decided yet; if this lasts, check that it is a ScaledObject in a namespace that wva watches", shortID(id)))
}

// shortID returns the name of a variant, cut so that a status still has its fact and remedy.
func shortID(id fleet.VariantID) string {
	const most = 80
	if name := id.String(); len(name) > most {
		return name[:most] + "…"
	}
	return id.String()
}

func metricSpec() *externalscaler.GetMetricSpecResponse {
	return &externalscaler.GetMetricSpecResponse{MetricSpecs: []*externalscaler.MetricSpec{{
		MetricName:      metricName,
		TargetSize:      1,
		TargetSizeFloat: 1,
	}}}
}
