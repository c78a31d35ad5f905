package scaler

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/wva-project/wva/fleet"
)

const benchmarkVariants = 10_000

// BenchmarkGetMetrics compares the whole server, with 10,000 variants on its board, to a bare one
// of grpc-go that answers a constant. Both run in this process and take turns of a few
// milliseconds, so that whatever slows the machine down slows both down; throughputs and their
// ratio are medians over the turns. The bars: at least 0.9 of the bare server's throughput, and a
// 99th percentile within 1.5 of its own. One operation is one turn of each.
func BenchmarkGetMetrics(b *testing.B) {
	const turn = 256
	for _, callers := range []int{1, 16} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			whole, bare := newRunner(b, callers, wholeServer(b)), newRunner(b, callers, bareServer())
			for range 20 { // buffers and stacks grow to their size
				whole.turn(turn)
				bare.turn(turn)
			}
			whole.reset()
			bare.reset()
			first, second := whole, bare
			for b.Loop() {
				first.turn(turn)
				second.turn(turn)
				first, second = second, first
			}
			b.ReportMetric(turn/median(whole.turns), "calls/s")
			b.ReportMetric(turn/median(bare.turns), "bare-calls/s")
			b.ReportMetric(median(ratios(bare.turns, whole.turns)), "throughput-ratio(bar>=0.9)")
			b.ReportMetric(whole.microseconds(0.5), "p50-us")
			b.ReportMetric(bare.microseconds(0.5), "bare-p50-us")
			b.ReportMetric(whole.microseconds(0.99), "p99-us")
			b.ReportMetric(bare.microseconds(0.99), "bare-p99-us")
			b.ReportMetric(whole.microseconds(0.99)/bare.microseconds(0.99), "p99-ratio(bar<=1.5)")
		})
	}
}

// server serves on a listener until its context ends.
type server func(context.Context, net.Listener) error

func wholeServer(b *testing.B) server {
	board := NewBoard(BoardOptions{})
	plan := fleet.Plan{Time: time.Now().Add(time.Hour)}
	for i := range benchmarkVariants {
		plan.Decisions = append(plan.Decisions, decided(fmt.Sprintf("v%05d", i), i%10))
	}
	board.Post(plan)
	s, err := NewServer(ServerOptions{Board: board})
	require.NoError(b, err)
	return s.Serve
}

func bareServer() server {
	s := grpc.NewServer()
	externalscaler.RegisterExternalScalerServer(s, constant{})
	return func(ctx context.Context, l net.Listener) error {
		context.AfterFunc(ctx, s.GracefulStop)
		return s.Serve(l)
	}
}

type constant struct {
	externalscaler.UnimplementedExternalScalerServer
}

func (constant) GetMetrics(context.Context, *externalscaler.GetMetricsRequest) (*externalscaler.GetMetricsResponse, error) {
	return &externalscaler.GetMetricsResponse{MetricValues: []*externalscaler.MetricValue{{MetricName: metricName, MetricValue: 1, MetricValueFloat: 1}}}, nil
}

// runner calls one server from several goroutines over one connection, as KEDA does, and measures.
type runner struct {
	*testing.B
	client    externalscaler.ExternalScalerClient
	requests  []*externalscaler.GetMetricsRequest
	turns     []float64         // how long each took, seconds
	latencies [][]time.Duration // of each caller
	sorted    []time.Duration
}

func newRunner(b *testing.B, callers int, serve server) *runner {
	r := &runner{B: b, client: externalscaler.NewExternalScalerClient(connectTo(b, serve)), latencies: make([][]time.Duration, callers)}
	for i := range benchmarkVariants {
		request := metricsRequest(fmt.Sprintf("v%05d", i*7919%benchmarkVariants))
		request.ScaledObjectRef.ScalerMetadata = map[string]string{
			"scalerAddress": "wva.keda.svc:9090", "modelID": "meta-llama/Llama-3.1-8B-Instruct", "accelerator": "H100", "variantCost": "10",
		}
		r.requests = append(r.requests, request)
	}
	return r
}

// connectTo starts a server on the loopback and returns a connection to it; both end with the
// benchmark.
func connectTo(b *testing.B, serve server) *grpc.ClientConn {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- serve(ctx, listener) }()
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(b, err)
	b.Cleanup(func() {
		require.NoError(b, conn.Close())
		cancel()
		require.NoError(b, <-served)
	})
	return conn
}

// turn makes the callers share the calls, and waits for all.
func (r *runner) turn(calls int) {
	begun := time.Now()
	var running sync.WaitGroup
	for caller := range r.latencies {
		running.Go(func() {
			for range calls / len(r.latencies) {
				r.latencies[caller] = append(r.latencies[caller], r.call(caller))
			}
		})
	}
	running.Wait()
	r.turns = append(r.turns, time.Since(begun).Seconds())
}

func (r *runner) call(caller int) time.Duration {
	request := r.requests[(len(r.latencies[caller])*len(r.latencies)+caller)%len(r.requests)]
	begun := time.Now()
	if _, err := r.client.GetMetrics(r.Context(), request); err != nil {
		r.Error(err)
	}
	return time.Since(begun)
}

func (r *runner) reset() {
	r.turns = r.turns[:0]
	for caller := range r.latencies {
		r.latencies[caller] = r.latencies[caller][:0]
	}
}

// microseconds returns a quantile of the latencies. No call may follow.
func (r *runner) microseconds(quantile float64) float64 {
	if r.sorted == nil {
		r.sorted = slices.Concat(r.latencies...)
		slices.Sort(r.sorted)
	}
	return float64(r.sorted[int(quantile*float64(len(r.sorted)-1))]) / 1e3
}

func ratios(a, b []float64) []float64 {
	quotients := make([]float64, len(a))
	for i := range a {
		quotients[i] = a[i] / b[i]
	}
	return quotients
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
