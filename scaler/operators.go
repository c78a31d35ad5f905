package scaler

import (
	"context"
	"math"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/wva-project/wva/fleet"
	wvav1alpha1 "github.com/wva-project/wva/proto/wva/v1alpha1"
)

// operatorService answers operators from the board.
type operatorService struct {
	wvav1alpha1.UnimplementedOperatorServiceServer

	board *Board
}

// ListVariants returns a page of the latest plan, however old it is: plan_time tells.
func (o *operatorService) ListVariants(_ context.Context, request *wvav1alpha1.ListVariantsRequest) (*wvav1alpha1.ListVariantsResponse, error) {
	p, err := pageOf(request)
	if err != nil {
		return nil, err
	}
	latest := o.board.latest.Load()
	if !latest.posted {
		return nil, o.board.ready(latest)
	}
	response := &wvav1alpha1.ListVariantsResponse{PlanTime: timestamppb.New(latest.plan.Time)}
	p.fill(response, latest.listed)
	response.Conflicts = conflictsOf(response.Variants, latest.plan.Conflicts)
	return response, nil
}

func variantMessage(d listed) *wvav1alpha1.Variant {
	return &wvav1alpha1.Variant{
		Namespace:          d.Variant.Namespace,
		Name:               d.Variant.Name,
		Model:              d.Facts.Model.Name,
		TargetKind:         d.Facts.Target.Kind,
		TargetName:         d.Facts.Target.Name,
		Accelerator:        string(d.Facts.Accelerator),
		DesiredReplicas:    optionalCount(d.Replicas, d.Known),
		CurrentReplicas:    optionalCount(d.Facts.Current, d.Facts.CurrentKnown),
		ReadyReplicas:      count32(d.Facts.Ready),
		Held:               d.Held,
		Unsupported:        d.Unsupported,
		DryRun:             d.dryRun,
		Saturation:         optional(d.Facts.Saturation),
		CapacityShare:      optional(d.Facts.Capacity),
		LimitedBy:          d.Facts.LimitedBy,
		CostPerReplicaHour: d.Facts.Cost,
		Reason:             string(d.Reason.Code),
		Message:            d.Reason.Text,
		Details:            detailMessages(d.Reason.Details),
		DecidedTime:        optionalTime(d.Decided),
		LastChangeTime:     optionalTime(d.Changed),
		LastChangeDelta:    count32(d.Delta),
		Conditions:         conditionMessages(d.Decision),
		Findings:           findingMessages(d.Findings),
	}
}

func conditionMessages(d fleet.Decision) []*wvav1alpha1.Condition {
	conditions := d.Conditions()
	messages := make([]*wvav1alpha1.Condition, len(conditions))
	for i, c := range conditions {
		messages[i] = &wvav1alpha1.Condition{Type: string(c.Type), Status: string(c.Status), Reason: c.Reason, Message: c.Text}
	}
	return messages
}

func detailMessages(details []fleet.Detail) []*wvav1alpha1.Detail {
	var messages []*wvav1alpha1.Detail
	for _, d := range details {
		messages = append(messages, &wvav1alpha1.Detail{Name: string(d.Name), Text: d.Text})
	}
	return messages
}

func findingMessages(findings []fleet.Finding) []*wvav1alpha1.Finding {
	var messages []*wvav1alpha1.Finding
	for _, f := range findings {
		messages = append(messages, &wvav1alpha1.Finding{Code: string(f.Code), Message: f.Text, Remedy: f.Remedy})
	}
	return messages
}

// conflictsOf returns the conflicts in which one of the variants takes part.
func conflictsOf(variants []*wvav1alpha1.Variant, all []fleet.Conflict) []*wvav1alpha1.Conflict {
	listed := make(map[fleet.VariantID]bool, len(variants))
	for _, v := range variants {
		listed[fleet.VariantID{Namespace: v.GetNamespace(), Name: v.GetName()}] = true
	}
	var messages []*wvav1alpha1.Conflict
	for _, c := range all {
		if !slices.ContainsFunc(c.Variants, func(id fleet.VariantID) bool { return listed[id] }) {
			continue
		}
		message := &wvav1alpha1.Conflict{Type: string(c.Type), Message: c.Text}
		for _, id := range c.Variants {
			message.Variants = append(message.Variants, id.String())
		}
		messages = append(messages, message)
	}
	return messages
}

func optionalCount(n int, known bool) *int32 {
	if !known {
		return nil
	}
	count := count32(n)
	return &count
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
