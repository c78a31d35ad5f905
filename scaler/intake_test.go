package scaler

import (
	"context"
	"net"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// encoded is a request that is on the wire already: callers that share it cost no memory, so that
// all that is measured is the server's.
type encoded []byte

// encodedCodec sends encoded requests, and decodes nothing.
type encodedCodec struct{}

func (encodedCodec) Name() string                         { return "proto" }
func (encodedCodec) Unmarshal(mem.BufferSlice, any) error { return nil }
func (encodedCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.(encoded))}, nil
}

var _ encoding.CodecV2 = encodedCodec{}

// requestOf returns a request for metrics with so many bytes of metadata.
func requestOf(t testing.TB, bytes int) encoded {
	request := metricsRequest("a")
	request.ScaledObjectRef.ScalerMetadata["filler"] = strings.Repeat("x", bytes)
	message, err := proto.Marshal(request)
	require.NoError(t, err)
	return message
}

// onTCP serves a board on the loopback, and returns the address.
func onTCP(t testing.TB, board *Board, change ...func(*ServerOptions)) (*Server, string) {
	options := ServerOptions{Board: board, Seed: 1}
	for _, c := range change {
		c(&options)
	}
	server, err := NewServer(options)
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-served)
	})
	return server, listener.Addr().String()
}

// dialFrom connects from an address of the loopback, 127.0.0.0/8.
func dialFrom(t testing.TB, from, to string) *grpc.ClientConn {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := grpc.NewClient("passthrough:///"+to, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", address)
		}))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	return conn
}

// peakHeap samples the live and dead objects of the heap until the function returns, and returns
// by how many bytes they grew at most.
func peakHeap(during func()) uint64 {
	const name = "/memory/classes/heap/objects:bytes"
	read := func() uint64 {
		sample := []metrics.Sample{{Name: name}}
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	debug.FreeOSMemory()
	before, peak := read(), uint64(0)
	done, sampled := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(sampled)
		for ticks := time.NewTicker(time.Millisecond); ; {
			peak = max(peak, read())
			select {
			case <-done:
				ticks.Stop()
				return
			case <-ticks.C:
			}
		}
	}()
	during()
	close(done)
	<-sampled
	return peak - before
}

// callAtOnce sends the same request so many times at once, over eight connections.
func callAtOnce(t testing.TB, address string, calls int, request encoded) map[string]int {
	var conns []*grpc.ClientConn
	for range 8 {
		conns = append(conns, dialFrom(t, "127.0.0.1", address))
	}
	var mu sync.Mutex
	outcomes := make(map[string]int)
	var calling sync.WaitGroup
	for i := range calls {
		calling.Go(func() {
			var response externalscaler.GetMetricsResponse
			err := conns[i%len(conns)].Invoke(t.Context(), externalscaler.ExternalScaler_GetMetrics_FullMethodName, request, &response, grpc.ForceCodecV2(encodedCodec{}))
			mu.Lock()
			defer mu.Unlock()
			outcomes[statusOf(err).Code().String()]++
		})
	}
	calling.Wait()
	return outcomes
}

// mostHeap is by how much the requests of strangers may make the heap grow.
const mostHeap = 160 << 20

func TestRequestsAboveTheLimitTakeLittleMemory(t *testing.T) {
	board := NewBoard(BoardOptions{})
	board.Post(planAt(time.Now(), decided("a", 1)))
	_, address := onTCP(t, board)
	large := requestOf(t, 3_900_000)
	var outcomes map[string]int
	grown := peakHeap(func() { outcomes = callAtOnce(t, address, 300, large) })
	t.Logf("%d MiB, %v", grown>>20, outcomes)
	require.Equal(t, map[string]int{"ResourceExhausted": 300}, outcomes)
	require.Less(t, grown, uint64(mostHeap))
}

func TestRequestsBelowTheLimitTakeLittleMemory(t *testing.T) {
	board := NewBoard(BoardOptions{})
	board.Post(planAt(time.Now(), decided("a", 1)))
	_, address := onTCP(t, board)
	large := requestOf(t, 1_000_000)
	var outcomes map[string]int
	grown := peakHeap(func() { outcomes = callAtOnce(t, address, 300, large) })
	t.Logf("%d MiB, %v", grown>>20, outcomes)
	require.Less(t, grown, uint64(mostHeap))
}

// beginCall sends a part of a request from an address, and leaves the call open.
func beginCall(t testing.TB, conn *grpc.ClientConn) grpc.ClientStream {
	stream, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true}, externalscaler.ExternalScaler_GetMetrics_FullMethodName, grpc.ForceCodecV2(encodedCodec{}))
	require.NoError(t, err)
	require.NoError(t, stream.SendMsg(requestOf(t, 50_000))) // without an end
	return stream
}

func TestARequestThatDoesNotArriveIsEnded(t *testing.T) {
	server, address := onTCP(t, NewBoard(BoardOptions{}), func(o *ServerOptions) { o.RequestTimeout = 10 * time.Millisecond })
	conn := dialFrom(t, strangerHost, address)
	requireStatus(t, beginCall(t, conn).RecvMsg(nil), codes.ResourceExhausted, "the request is not complete after 10ms: send it faster")
	stream, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, externalscaler.ExternalScaler_StreamIsActive_FullMethodName)
	require.NoError(t, err)
	requireStatus(t, stream.RecvMsg(nil), codes.ResourceExhausted, "the request is not complete")
	require.InDelta(t, 2, testutil.ToFloat64(server.rejected.WithLabelValues("request")), 0)
	require.Eventually(t, func() bool { return server.keda.admission.calls.count()+server.keda.admission.streams.count() == 0 }, time.Minute, time.Millisecond)
}

func TestCallsOfStrangersLeaveSomeForKEDA(t *testing.T) {
	board := NewBoard(BoardOptions{})
	server, address := onTCP(t, board, func(o *ServerOptions) { o.MaxCalls, o.RequestTimeout = 30, time.Hour })
	board.Post(planAt(time.Now(), decided("a", 1)))
	strangers := dialFrom(t, strangerHost, address)
	for range 20 {
		beginCall(t, strangers)
	}
	require.Eventually(t, func() bool { return server.keda.admission.calls.count() == 20 }, time.Minute, time.Millisecond)
	ask := func(conn *grpc.ClientConn) error {
		_, err := externalscaler.NewExternalScalerClient(conn).GetMetrics(t.Context(), metricsRequest("a"))
		return err
	}
	requireStatus(t, ask(strangers), codes.ResourceExhausted, "too many calls are open from this address, of at most 30 from all")
	require.NoError(t, ask(dialFrom(t, kedaHost, address)))
	require.InDelta(t, 1, testutil.ToFloat64(server.rejected.WithLabelValues("calls")), 0)
}

// count returns how many are open.
func (q *quota) count() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.open
}
