package scaler

import (
	"context"
	"math"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/wva-project/wva/fleet"
	wvav1 "github.com/wva-project/wva/proto/wva/v1"
)

// operatorService answers the people who run the fleet, from the board.
type operatorService struct {
	wvav1.UnimplementedOperatorServiceServer

	board *Board
}

// ListVariants returns what the latest plan says, however old it is: plan_time tells.
func (o *operatorService) ListVariants(_ context.Context, request *wvav1.ListVariantsRequest) (*wvav1.ListVariantsResponse, error) {
	latest := o.board.latest.Load()
	if !latest.posted {
		return nil, o.board.ready(latest)
	}
	response := &wvav1.ListVariantsResponse{PlanTime: timestamppb.New(latest.plan.Time)}
	for _, decision := range latest.decisions {
		if request.GetNamespace() == "" || request.GetNamespace() == decision.Variant.Namespace {
			response.Variants = append(response.Variants, variantMessage(decision))
		}
	}
	return response, nil
}

func variantMessage(d fleet.Decision) *wvav1.Variant {
	return &wvav1.Variant{
		Namespace:          d.Variant.Namespace,
		Name:               d.Variant.Name,
		Model:              d.Facts.Model.Name,
		TargetKind:         d.Facts.Target.Kind,
		TargetName:         d.Facts.Target.Name,
		Accelerator:        string(d.Facts.Accelerator),
		DesiredReplicas:    count32(d.Replicas),
		Known:              d.Known,
		Held:               d.Held,
		CurrentReplicas:    count32(d.Facts.Current),
		CurrentKnown:       d.Facts.CurrentKnown,
		Ready:              count32(d.Facts.Ready),
		Saturation:         optional(d.Facts.Saturation),
		CapacityShare:      optional(d.Facts.Capacity),
		BindingLimit:       d.Facts.Binding,
		CostPerReplicaHour: d.Facts.Cost,
		ReasonCode:         string(d.Reason.Code),
		ReasonText:         d.Reason.Text,
		Decided:            optionalTime(d.Decided),
	}
}

func count32(n int) int32 { return int32(max(math.MinInt32, min(n, math.MaxInt32))) }

func optional(reading fleet.Reading) *float64 {
	if value, known := reading.Known(); known {
		return &value
	}
	return nil
}

func optionalTime(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}
