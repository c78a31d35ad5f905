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

func TestListVariantsReturnsTheWholePlan(t *testing.T) {
	w := newWorld(t)
	client := w.operators()
	_, err := client.ListVariants(t.Context(), &wvav1alpha1.ListVariantsRequest{})
	requireStatus(t, err, codes.Unavailable, "nothing is decided yet")

	full := decided("b", 3)
	full.Facts.Accelerator = "H100"
	full.Facts.Ready = 2
	full.Facts.Saturation = fleet.Observed(0)
	full.Facts.Capacity = fleet.Observed(0.25)
	full.Facts.LimitedBy = "KV cache"
	full.Facts.Cost = 10
	full.Facts.Autoscaler = fleet.Autoscaler{Observed: true, Code: fleet.CodeHPAMissing, Text: "KEDA has made no HPA; see its log"}
	full.Changed, full.Delta = start.Add(-time.Minute), -2
	full.Reason = full.Reason.With(fleet.DetailRemedy, "nothing").With(fleet.DetailCapacity, "17.5 req/s, measured")
	full.Findings = []fleet.Finding{{Code: fleet.CodeMaxUnset, Text: "maxReplicaCount is not set", Remedy: "set it"}}
	other := decided("z", 1)
	other.Variant.Namespace = "test"
	unknown := held("a", 0, false)
	unknown.Decided = time.Time{}
	unknown.Facts.CurrentKnown = false
	w.board.Post(planAt(start, other, full, unknown))

	response, err := client.ListVariants(t.Context(), &wvav1alpha1.ListVariantsRequest{})
	require.NoError(t, err)
	require.Len(t, response.Variants, 3)
	require.Equal(t, start, response.PlanTime.AsTime())
	const line = "the current replicas fit the demand; 17.5 req/s, measured; nothing"
	require.True(t, proto.Equal(&wvav1alpha1.Variant{
		Namespace: "prod", Name: "b", Model: "model-b", TargetKind: "Deployment", TargetName: "deploy-b", Accelerator: "H100",
		DesiredReplicas: new(int32(3)), CurrentReplicas: new(int32(1)), ReadyReplicas: 2,
		Saturation: new(0.0), CapacityShare: new(0.25), LimitedBy: "KV cache", CostPerReplicaHour: 10,
		Reason: "Unchanged", Message: "the current replicas fit the demand",
		Details:     []*wvav1alpha1.Detail{{Name: "capacity", Text: "17.5 req/s, measured"}, {Name: "remedy", Text: "nothing"}},
		DecidedTime: timestamppb.New(start), LastChangeTime: timestamppb.New(start.Add(-time.Minute)), LastChangeDelta: -2,
		Conditions: []*wvav1alpha1.Condition{
			{Type: "TargetResolved", Status: "True", Reason: "TargetFound", Message: "Deployment prod/deploy-b found"},
			{Type: "MetricsAvailable", Status: "True", Reason: "MetricsReported", Message: "the engines of ready replicas report"},
			{Type: "OptimizationReady", Status: "True", Reason: "Optimized", Message: line},
			{Type: "DefinitionAccepted", Status: "False", Reason: "MaxUnset", Message: "MaxUnset: maxReplicaCount is not set; set it"},
			{Type: "AutoscalerActive", Status: "False", Reason: "HPAMissing", Message: "KEDA has made no HPA; see its log"},
		},
		Findings: []*wvav1alpha1.Finding{{Code: "MaxUnset", Message: "maxReplicaCount is not set", Remedy: "set it"}},
	}, response.Variants[1]), response.Variants[1].String())
	a := response.Variants[0]
	require.True(t, a.Held && a.DesiredReplicas == nil && a.CurrentReplicas == nil && a.Saturation == nil && a.CapacityShare == nil &&
		a.DecidedTime == nil && a.LastChangeTime == nil && a.Findings == nil, a.String())

	w.step(time.Hour)
	response, err = client.ListVariants(t.Context(), &wvav1alpha1.ListVariantsRequest{Namespace: "test"})
	require.NoError(t, err, "operators may read an old plan: plan_time tells its age")
	require.Len(t, response.Variants, 1)
	require.Equal(t, "z", response.Variants[0].Name)
}

func TestListVariantsTellsZeroFromUnknown(t *testing.T) {
	w := newWorld(t)
	zero, unknown := inactive("a", 0), held("b", 0, false)
	unknown.Facts.CurrentKnown = false
	w.board.Post(planAt(start, zero, unknown))
	response, err := w.operators().ListVariants(t.Context(), &wvav1alpha1.ListVariantsRequest{})
	require.NoError(t, err)
	require.Equal(t, new(int32(0)), response.Variants[0].DesiredReplicas)
	require.Equal(t, new(int32(0)), response.Variants[0].CurrentReplicas)
	require.Nil(t, response.Variants[1].DesiredReplicas)
	require.Nil(t, response.Variants[1].CurrentReplicas)
}

func TestListVariantsNamesUnsupportedVariants(t *testing.T) {
	w := newWorld(t)
	w.board.Post(planAt(start, unsupportedVariant("a", 3), held("b", 1, true)))
	response, err := w.operators().ListVariants(t.Context(), &wvav1alpha1.ListVariantsRequest{})
	require.NoError(t, err)
	require.True(t, response.Variants[0].Unsupported)
	require.EqualValues(t, 3, response.Variants[0].GetDesiredReplicas())
	require.Equal(t, "UnsupportedTrigger", response.Variants[0].Reason)
	require.False(t, response.Variants[1].Unsupported)
}

func TestCountsFitTheirField(t *testing.T) {
	require.EqualValues(t, math.MaxInt32, count32(math.MaxInt64))
	require.EqualValues(t, math.MinInt32, count32(math.MinInt64))
	require.EqualValues(t, 7, count32(7))
}

// All operators who come through kubectl port-forward have the address of the loopback.
func TestManyOperatorsOfOneAddress(t *testing.T) {
	w := newWorld(t)
	w.board.Post(planAt(start, decided("a", 1)))
	for range 20 {
		_, err := w.operators().ListVariants(t.Context(), &wvav1alpha1.ListVariantsRequest{})
		require.NoError(t, err)
	}
}
