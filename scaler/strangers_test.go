package scaler

import (
	"crypto/tls"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/wva-project/wva/fleet"
)

const (
	kedaHost     = "127.0.0.1"
	strangerHost = "127.0.0.2"
)

// openStream opens a push stream and waits until the server has it.
func openStream(t testing.TB, conn *grpc.ClientConn, name string) (grpc.ServerStreamingClient[externalscaler.IsActiveResponse], error) {
	stream, err := externalscaler.NewExternalScalerClient(conn).StreamIsActive(t.Context(), ref(name))
	require.NoError(t, err)
	if _, err = stream.Header(); err == nil && len(stream.Trailer()) > 0 {
		err = stream.RecvMsg(nil) // it ended at once
	}
	return stream, err
}

func TestStreamsOfStrangersDelayNoWakeUp(t *testing.T) {
	board := NewBoard(BoardOptions{Clock: clocktesting.NewFakeClock(start)})
	server, address := onTCP(t, board)
	strangers := dialFrom(t, strangerHost, address)
	var decisions []fleet.Decision
	for i := range 200 {
		decisions = append(decisions, inactive(fmt.Sprintf("a%03d", i), 1))
		_, err := openStream(t, strangers, decisions[i].Variant.Name)
		require.NoError(t, err)
	}
	keda, err := openStream(t, dialFrom(t, kedaHost, address), "z")
	require.NoError(t, err)
	board.Post(planAt(start, append(decisions, inactive("z", 1))...))
	require.NoError(t, server.Settle(t.Context()))
	pushed := make(chan error, 1)
	go func() {
		_, err := keda.Recv()
		pushed <- err
	}()
	select {
	case err := <-pushed:
		require.NoError(t, err)
	case <-time.After(time.Minute):
		require.Fail(t, "the streams of strangers were served first")
	}
}

func TestEachAddressGetsAPartOfTheStreams(t *testing.T) {
	board := NewBoard(BoardOptions{})
	server, address := onTCP(t, board, func(o *ServerOptions) { o.MaxStreams = 60 })
	board.Post(planAt(time.Now(), decided("a", 1)))
	openAll := func(host string) (opened int) {
		conn := dialFrom(t, host, address)
		for {
			if _, err := openStream(t, conn, "a"); err != nil {
				requireStatus(t, err, codes.ResourceExhausted, "too many streams are open from this address, of at most 60 from all")
				return opened
			}
			opened++
		}
	}
	require.Equal(t, 60, openAll(strangerHost), "all, if there is no other")
	require.Equal(t, 30, openAll("127.0.0.3"))
	require.Equal(t, 20, openAll("127.0.0.4"))
	require.InDelta(t, 3+30+20, testutil.ToFloat64(server.rejected.WithLabelValues("streams")), 0)
	_, err := externalscaler.NewExternalScalerClient(dialFrom(t, strangerHost, address)).GetMetrics(t.Context(), metricsRequest("a"))
	require.NoError(t, err, "numbers are answered all the same")
}

// TestKEDAThatComesLastGetsItsStreams has three strangers that hold all streams before KEDA comes,
// and ask for more afterwards. The limit has the proportion to the objects that four equal parts
// need.
func TestKEDAThatComesLastGetsItsStreams(t *testing.T) {
	const objects = 100
	board := NewBoard(BoardOptions{Clock: clocktesting.NewFakeClock(start)})
	var decisions []fleet.Decision
	for i := range objects {
		decisions = append(decisions, decided(streamName(i), 1))
	}
	board.Post(planAt(start, decisions...))
	server, address := onTCP(t, board, func(o *ServerOptions) { o.MaxStreams = 8 * objects })
	var strangers []*grpc.ClientConn
	openAll := func(conn *grpc.ClientConn) (opened int) {
		for {
			if _, err := openStream(t, conn, streamName(0)); err != nil {
				requireStatus(t, err, codes.ResourceExhausted, "too many streams are open from this address, of at most 800 from all: close")
				return opened
			}
			opened++
		}
	}
	for i := range 3 {
		strangers = append(strangers, dialFrom(t, fmt.Sprintf("127.0.0.%d", 2+i), address))
		t.Logf("stranger %d opened %d", i, openAll(strangers[i]))
	}
	keda := dialFrom(t, kedaHost, address)
	var pushes []grpc.ServerStreamingClient[externalscaler.IsActiveResponse]
	opened := 0
	for i := range objects {
		push, err := openStream(t, keda, streamName(i))
		if err == nil {
			opened++
		}
		pushes = append(pushes, push)
		spec, err := externalscaler.NewExternalScalerClient(keda).StreamMetricSpec(t.Context(), ref(streamName(i)))
		require.NoError(t, err)
		if _, err = spec.Recv(); err == nil {
			opened++
		}
	}
	require.Equal(t, 2*objects, opened)
	for _, stranger := range strangers {
		openAll(stranger)
	}
	decisions[objects-1] = inactive(streamName(objects-1), 1)
	board.Post(planAt(start, decisions...))
	require.NoError(t, server.Settle(t.Context()))
	pushed, err := pushes[objects-1].Recv()
	require.NoError(t, err)
	require.True(t, pushed.GetResult())
	require.Greater(t, testutil.ToFloat64(server.rejected.WithLabelValues("streams")), 2.0*objects, "the ended ones count")
}

func TestConnectionsOfStrangersLeaveOneForKEDA(t *testing.T) {
	board := NewBoard(BoardOptions{})
	server, address := onTCP(t, board)
	board.Post(planAt(time.Now(), decided("a", 1)))
	ask := func(host string) error {
		_, err := externalscaler.NewExternalScalerClient(dialFrom(t, host, address)).GetMetrics(t.Context(), metricsRequest("a"))
		return err
	}
	for range 8 {
		require.NoError(t, ask(strangerHost))
	}
	requireStatus(t, ask(strangerHost), codes.Unavailable, "")
	require.Positive(t, testutil.ToFloat64(server.rejected.WithLabelValues("connections")))
	require.NoError(t, ask(kedaHost))
}

func TestStrangersGetFewerConnectionsThanHoldersOfACertificate(t *testing.T) {
	connections := func(config *tls.Config) (opened int) {
		options := ServerOptions{TLS: config}
		options.setDefaults()
		own := kedaPort(options)
		for q := newQuota(own.connections, own.ownConnections); q.enter(strangerHost); {
			opened++
		}
		return opened
	}
	require.Equal(t, 8, connections(nil))
	require.Equal(t, 8, connections(&tls.Config{}))
	require.Equal(t, 59, connections(&tls.Config{ClientAuth: tls.RequireAndVerifyClientCert}))
}

// TestKEDAIsNeverRejected asks for all that KEDA may ask for at 10,000 objects at once: after an
// outage it opens both streams of each object again, and has a call open for each.
func TestKEDAIsNeverRejected(t *testing.T) {
	const objects = 10_000
	board := NewBoard(BoardOptions{})
	plan := fleet.Plan{Time: time.Now()}
	for i := range objects {
		plan.Decisions = append(plan.Decisions, decided(streamName(i), 1))
	}
	board.Post(plan)
	server, address := onTCP(t, board)
	conn := dialFrom(t, kedaHost, address)
	client := externalscaler.NewExternalScalerClient(conn)
	failures := make(chan error, 3*objects)
	var asking sync.WaitGroup
	for i := range objects {
		name := streamName(i)
		asking.Go(func() {
			_, err := openStream(t, conn, name)
			failures <- err
		})
		asking.Go(func() {
			stream, err := client.StreamMetricSpec(t.Context(), ref(name))
			if err == nil {
				_, err = stream.Recv()
			}
			failures <- err
		})
		asking.Go(func() {
			_, err := client.GetMetrics(t.Context(), metricsRequest(name))
			failures <- err
		})
	}
	asking.Wait()
	close(failures)
	for err := range failures {
		require.NoError(t, err)
	}
	require.Equal(t, 2*objects, server.keda.admission.streams.count())
	for _, limit := range []string{"connections", "calls", "streams", "unknown_streams", "request"} {
		require.Zero(t, testutil.ToFloat64(server.rejected.WithLabelValues(limit)), limit)
	}
}
