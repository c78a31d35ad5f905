package scaler

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/wva-project/wva/fleet"
)

const benchmarkStreams = 20_000

// callerAddress is the environment variable that makes the benchmark's second process the caller;
// its value is the address to call.
const callerAddress = "WVA_BENCHMARK_CALLER"

// BenchmarkPushStreams measures the memory of the server for 20,000 open push streams, and the time
// from posting a plan, which activates one object, until its caller has read the `true`. The caller
// is another process, so that its memory is not counted. One operation is a plan that activates one
// object and a plan that does not.
func BenchmarkPushStreams(b *testing.B) {
	if address := os.Getenv(callerAddress); address != "" {
		callStreams(b, address)
		return
	}
	clock := clocktesting.NewFakeClock(start)
	board := NewBoard(BoardOptions{Clock: clock})
	s, err := NewServer(ServerOptions{Board: board, Seed: 1})
	require.NoError(b, err)
	plan := manyDecisions(benchmarkStreams)
	board.Post(plan)
	before := memoryInUse()
	pushed := startCaller(b, s)
	whole := memoryInUse() - before

	var latencies []time.Duration
	for b.Loop() {
		clock.Step(time.Second) // the rate limit of pushes is not measured
		chosen := len(latencies) * 7919 % benchmarkStreams
		woken := fleet.Plan{Time: plan.Time, Decisions: slices.Clone(plan.Decisions)}
		woken.Decisions[chosen] = inactive(woken.Decisions[chosen].Variant.Name, 1)
		posted := time.Now()
		board.Post(woken)
		latencies = append(latencies, pushed().Sub(posted))
		board.Post(plan)
	}
	slices.Sort(latencies)
	b.ReportMetric(float64(whole)/benchmarkStreams, "B/stream")
	b.ReportMetric(float64(latencies[len(latencies)/2].Microseconds())/1e3, "p50-ms-to-push")
	b.ReportMetric(float64(latencies[len(latencies)-1].Microseconds())/1e3, "max-ms-to-push")
}

// BenchmarkPlanWithPushStreams measures the cost of a new plan while 20,000 push streams are open,
// without a network.
func BenchmarkPlanWithPushStreams(b *testing.B) {
	board := NewBoard(BoardOptions{Clock: clocktesting.NewFakeClock(start)})
	p := newPusher(board, 1, 1)
	plan := manyDecisions(benchmarkStreams)
	for _, t := range plan.Decisions {
		_, err := p.open(caller{}, t.Variant, true)
		require.NoError(b, err)
	}
	b.ReportAllocs()
	for b.Loop() {
		board.Post(plan)
		p.step()
	}
}

func manyDecisions(n int) fleet.Plan {
	plan := fleet.Plan{Time: start.Add(365 * 24 * time.Hour)}
	for i := range n {
		plan.Decisions = append(plan.Decisions, decided(streamName(i), 1))
	}
	return plan
}

func streamName(i int) string { return fmt.Sprintf("v%05d", i) }

// memoryInUse returns the bytes of live objects and of stacks.
func memoryInUse() uint64 {
	runtime.GC()
	runtime.GC() // objects that the first one finalized
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc + stats.StackInuse
}

// startCaller serves, starts the caller, and returns once all its streams are open. The function
// that it returns waits for the next push and returns when the caller read it.
func startCaller(b *testing.B, s *Server) func() time.Time {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, listener) }()
	caller := exec.Command(os.Args[0], "-test.run=^$", "-test.bench=^"+b.Name()+"$", "-test.benchtime=1x")
	caller.Env = append(os.Environ(), callerAddress+"="+listener.Addr().String())
	caller.Stderr = os.Stderr
	input, err := caller.StdinPipe()
	require.NoError(b, err)
	output, err := caller.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, caller.Start())
	b.Cleanup(func() {
		cancel()
		require.NoError(b, <-served)
		require.NoError(b, input.Close()) // the caller ends
		require.NoError(b, caller.Wait())
	})
	lines := bufio.NewScanner(output)
	next := func(prefix string) string {
		for lines.Scan() {
			if text, found := strings.CutPrefix(lines.Text(), prefix); found {
				return text
			}
		}
		b.Fatalf("the caller ended before it said %q: %v", prefix, lines.Err())
		return ""
	}
	next("open")
	return func() time.Time {
		var nanoseconds int64
		_, err := fmt.Sscan(next("pushed "), &nanoseconds)
		require.NoError(b, err)
		return time.Unix(0, nanoseconds)
	}
}

// callStreams is the second process: it opens the streams, says so, and says of each push when it
// came.
func callStreams(b *testing.B, address string) {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(b, err)
	client := externalscaler.NewExternalScalerClient(conn)
	pushed := make(chan time.Time)
	var reading, saying sync.WaitGroup
	for i := range benchmarkStreams {
		stream, err := client.StreamIsActive(b.Context(), ref(streamName(i)))
		require.NoError(b, err)
		_, err = stream.Header()
		require.NoError(b, err)
		reading.Go(func() {
			for {
				if _, err := stream.Recv(); err != nil {
					return
				}
				pushed <- time.Now()
			}
		})
	}
	saying.Go(func() {
		for at := range pushed {
			fmt.Println("pushed", at.UnixNano())
		}
	})
	fmt.Println("\nopen")
	_, err = io.Copy(io.Discard, os.Stdin)
	require.NoError(b, err)
	require.NoError(b, conn.Close())
	reading.Wait()
	close(pushed)
	saying.Wait()
}
