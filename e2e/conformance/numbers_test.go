package conformance

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"testing"

	"github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/wva-project/wva/fleet"
)

// relay passes calls of KEDA on to the server, and changes its answers.
type relay struct {
	externalscaler.UnimplementedExternalScalerServer
	to     externalscaler.ExternalScalerClient
	metric func(*externalscaler.MetricValue)
	spec   func(*externalscaler.MetricSpec)
}

func (r *relay) IsActive(ctx context.Context, ref *externalscaler.ScaledObjectRef) (*externalscaler.IsActiveResponse, error) {
	return r.to.IsActive(ctx, ref)
}

func (r *relay) GetMetrics(ctx context.Context, request *externalscaler.GetMetricsRequest) (*externalscaler.GetMetricsResponse, error) {
	response, err := r.to.GetMetrics(ctx, request)
	for _, value := range response.GetMetricValues() {
		r.metric(value)
	}
	return response, err
}

func (r *relay) GetMetricSpec(ctx context.Context, ref *externalscaler.ScaledObjectRef) (*externalscaler.GetMetricSpecResponse, error) {
	response, err := r.to.GetMetricSpec(ctx, ref)
	for _, spec := range response.GetMetricSpecs() {
		r.spec(spec)
	}
	return response, err
}

// serve returns the relay's address.
func (r *relay) serve(t *testing.T) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer(grpc.WaitForHandlers(true))
	externalscaler.RegisterExternalScalerServer(server, r)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		require.NoError(t, <-served)
	})
	return listener.Addr().String()
}

// raw returns a client without KEDA's code around it.
func raw(t *testing.T, address string) externalscaler.ExternalScalerClient {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return externalscaler.NewExternalScalerClient(conn)
}

// TestBothNumericFormsGiveKEDATheSameNumber removes one form at a time: whichever a version of KEDA
// reads, the number and the target of 1 are the same.
func TestBothNumericFormsGiveKEDATheSameNumber(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	numbers := []int{0, 1, 2, 9, 10, 11, 99, 100, 1000, 12_345, math.MaxInt32}
	plan := fleet.Plan{Time: epoch}
	for i, n := range numbers {
		plan.Decisions = append(plan.Decisions, w.decided(fmt.Sprintf("decided-%d", i), n))
		plan.Decisions = append(plan.Decisions, w.held(fmt.Sprintf("held-%d", i), n, true))
	}
	w.board.Post(plan)
	for form, address := range map[string]string{
		"both": w.address,
		"integer only": (&relay{
			to:     raw(t, w.address),
			metric: func(v *externalscaler.MetricValue) { v.MetricValueFloat = 0 },
			spec:   func(s *externalscaler.MetricSpec) { s.TargetSizeFloat = 0 },
		}).serve(t),
		"float only": (&relay{
			to:     raw(t, w.address),
			metric: func(v *externalscaler.MetricValue) { v.MetricValue = 0 },
			spec:   func(s *externalscaler.MetricSpec) { s.TargetSize = 0 },
		}).serve(t),
	} {
		t.Run(form, func(t *testing.T) {
			for i, n := range numbers {
				for _, name := range []string{fmt.Sprintf("decided-%d", i), fmt.Sprintf("held-%d", i)} {
					k := trigger{address: address, namespace: w.namespace, name: name}
					k.requireNumber(t, n)
					requireSpec(t, k, k.poll(t).GetMetricSpecForScaling(t.Context()))
				}
			}
		})
	}
}

// TestKEDAGetsExactlyTheNumbersOfThePlan compares many random plans with the numbers that KEDA
// gets: each is finite, at least zero, and that of the plan, decided or held; active is a number
// above zero; an unknown number is an error, not a zero.
func TestKEDAGetsExactlyTheNumbersOfThePlan(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client := raw(t, w.address)
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 30 {
		plan := fleet.Plan{Time: w.clock.Now()}
		for i := range 10 {
			// below zero only by a bug: it must not get out
			name, n := fmt.Sprintf("v%d", i), random.IntN(40)-3
			if random.IntN(2) == 0 {
				plan.Decisions = append(plan.Decisions, w.decided(name, n))
			} else {
				plan.Decisions = append(plan.Decisions, w.held(name, n, random.IntN(4) > 0))
			}
		}
		w.board.Post(plan)
		for _, d := range plan.Decisions {
			k := w.trigger(d.Variant.Name)
			if !d.Known || d.Replicas < 0 {
				_, err := k.ask(t)
				require.ErrorContains(t, err, "code = Unavailable", "round %d, %+v", round, d)
				continue
			}
			k.requireNumber(t, d.Replicas)
			response, err := client.GetMetrics(t.Context(), &externalscaler.GetMetricsRequest{
				ScaledObjectRef: &externalscaler.ScaledObjectRef{Namespace: w.namespace, Name: d.Variant.Name},
			})
			require.NoError(t, err)
			require.Len(t, response.GetMetricValues(), 1)
			require.EqualValues(t, d.Replicas, response.GetMetricValues()[0].GetMetricValue())
			require.InDelta(t, d.Replicas, response.GetMetricValues()[0].GetMetricValueFloat(), 0)
		}
	}
}

func TestAnHPAWithAnOlderMetricNameIsAnsweredToo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.post(w.decided("a", 3))
	metrics, active, err := w.trigger("a").poll(t).GetMetricsAndActivity(t.Context(), "s0-of-an-older-release")
	require.NoError(t, err)
	require.True(t, active)
	require.Len(t, metrics, 1)
	require.Equal(t, "s0-of-an-older-release", metrics[0].MetricName)
	require.Zero(t, metrics[0].Value.CmpInt64(3))
}
