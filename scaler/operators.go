package scaler

import (
	"context"
	"math"
	"slices"
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

// ListVariants returns a page of what the latest plan says, however old it is: plan_time tells.
func (o *operatorService) ListVariants(_ context.Context, request *wvav1.ListVariantsRequest) (*wvav1.ListVariantsResponse, error) {
	p, err := pageOf(request)
	if err != nil {
		return nil, err
	}
	latest := o.board.latest.Load()
	if !latest.posted {
		return nil, o.board.ready(latest)
	}
	response := &wvav1.ListVariantsResponse{PlanTime: timestamppb.New(latest.plan.Time)}
	p.fill(response, latest.listed)
	response.Conflicts = conflictsOf(response.Variants, latest.plan.Conflicts)
	return response, nil
}

func variantMessage(d listed) *wvav1.Variant {
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
		Conditions:         conditionMessages(d.Decision),
		LastChange:         optionalTime(d.Changed),
		LastDelta:          count32(d.Delta),
		Refused:            d.Refused,
		Advisory:           d.advisory,
	}
}

func conditionMessages(d fleet.Decision) []*wvav1.Condition {
	conditions := d.Conditions()
	messages := make([]*wvav1.Condition, len(conditions))
	for i, c := range conditions {
		messages[i] = &wvav1.Condition{Type: string(c.Type), Status: string(c.Status), Reason: c.Reason, Text: c.Text}
	}
	return messages
}

// conflictsOf returns the conflicts that one of the variants takes part in.
func conflictsOf(variants []*wvav1.Variant, all []fleet.Conflict) []*wvav1.Conflict {
	listed := make(map[fleet.VariantID]bool, len(variants))
	for _, v := range variants {
		listed[fleet.VariantID{Namespace: v.GetNamespace(), Name: v.GetName()}] = true
	}
	var messages []*wvav1.Conflict
	for _, c := range all {
		if !slices.ContainsFunc(c.Variants, func(id fleet.VariantID) bool { return listed[id] }) {
			continue
		}
		message := &wvav1.Conflict{Kind: string(c.Kind), Text: c.Text}
		for _, id := range c.Variants {
			message.Variants = append(message.Variants, id.String())
		}
		messages = append(messages, message)
	}
	return messages
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
