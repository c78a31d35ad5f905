package scaler

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/wva-project/wva/fleet"
	wvav1alpha1 "github.com/wva-project/wva/proto/wva/v1alpha1"
)

func TestListVariantsSaysEverythingThePlanSays(t *testing.T) {
	w := newWorld(t)
	client := wvav1alpha1.NewOperatorServiceClient(w.connect(nil))
	_, err := client.ListVariants(t.Context(), &wvav1alpha1.ListVariantsRequest{})
	requireStatus(t, err, codes.Unavailable, "nothing is decided yet")

	full := decided("b", 3)
	full.Facts.Accelerator = "H100"
	full.Facts.Ready = 2
	full.Facts.Saturation = fleet.Observed(0)
	full.Facts.Capacity = fleet.Observed(0.25)
	full.Facts.LimitedBy = "KV cache"
	full.Facts.Cost = 10
	full.Changed, full.Delta = start.Add(-time.Minute), -2
	elsewhere := decided("z", 1)
	elsewhere.Variant.Namespace = "test"
	unknown := held("a", 0, false)
	unknown.Decided = time.Time{}
	unknown.Facts.CurrentKnown = false
	w.board.Post(planAt(start, elsewhere, full, unknown))

	response, err := client.ListVariants(t.Context(), &wvav1alpha1.ListVariantsRequest{})
	require.NoError(t, err)
	require.Len(t, response.Variants, 3)
	require.Equal(t, start, response.PlanTime.AsTime())
	require.True(t, proto.Equal(&wvav1alpha1.Variant{
		Namespace: "prod", Name: "b", Model: "model-b", TargetKind: "Deployment", TargetName: "deploy-b", Accelerator: "H100",
		DesiredReplicas: 3, Known: true, CurrentReplicas: 1, CurrentKnown: true, Ready: 2,
		Saturation: new(0.0), CapacityShare: new(0.25), BindingLimit: "KV cache", CostPerReplicaHour: 10,
		ReasonCode: "Unchanged", ReasonText: "the current replicas fit the demand", Decided: timestamppb.New(start),
		Conditions: []*wvav1alpha1.Condition{
			{Type: "TargetResolved", Status: "True", Reason: "TargetFound", Text: "Deployment prod/deploy-b was found"},
			{Type: "MetricsAvailable", Status: "True", Reason: "MetricsReported", Text: "the engines of ready replicas report"},
			{Type: "OptimizationReady", Status: "True", Reason: "Optimized", Text: "the current replicas fit the demand"},
		},
		LastChange: timestamppb.New(start.Add(-time.Minute)), LastDelta: -2,
	}, response.Variants[1]), response.Variants[1].String())
	a := response.Variants[0]
	require.True(t, a.Held && !a.Known && !a.CurrentKnown && a.Saturation == nil && a.CapacityShare == nil && a.Decided == nil && a.LastChange == nil, a.String())

	w.step(time.Hour)
	response, err = client.ListVariants(t.Context(), &wvav1alpha1.ListVariantsRequest{Namespace: "test"})
	require.NoError(t, err, "people may see an old plan: it carries its time")
	require.Len(t, response.Variants, 1)
	require.Equal(t, "z", response.Variants[0].Name)
}

func TestListVariantsSaysWhoIsRefused(t *testing.T) {
	w := newWorld(t)
	w.board.Post(planAt(start, unsupportedVariant("a", 3), held("b", 1, true)))
	response, err := wvav1alpha1.NewOperatorServiceClient(w.connect(nil)).ListVariants(t.Context(), &wvav1alpha1.ListVariantsRequest{})
	require.NoError(t, err)
	require.True(t, response.Variants[0].Refused && response.Variants[0].Known)
	require.Equal(t, "Misapplied", response.Variants[0].ReasonCode)
	require.False(t, response.Variants[1].Refused)
}

func TestCountsFitTheirField(t *testing.T) {
	require.EqualValues(t, math.MaxInt32, count32(math.MaxInt64))
	require.EqualValues(t, math.MinInt32, count32(math.MinInt64))
	require.EqualValues(t, 7, count32(7))
}
