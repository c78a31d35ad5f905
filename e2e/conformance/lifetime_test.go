package conformance

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestShutdownEndsEveryStreamWithNil reads KEDA's own log: a stream that ends with an error is
// logged as one, and its back-off grows.
func TestShutdownEndsEveryStreamWithNil(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.post(w.decided("a", 1))
	k := w.trigger("a")
	k.subscribe(t)
	w.awaitStreams("StreamIsActive", 1)
	w.awaitStreams("StreamMetricSpec", 1)
	w.stop()
	require.Contains(t, k.awaitLog("StreamIsActive retry backoff"), `"duration"="2s"`)
	require.Contains(t, k.awaitLog("StreamMetricSpec retry backoff"), `"duration"="2s"`)
	require.Empty(t, k.logged(`"error"=`))
}

func TestKEDAComesBackAfterAShutdown(t *testing.T) {
	t.Parallel()
	first := newWorld(t)
	first.post(first.decided("a", 1))
	k := first.trigger("a")
	u := k.subscribe(t)
	first.awaitStreams("StreamIsActive", 1)
	first.stop()
	second := newWorld(t, after(first))
	second.post(second.inactive("a", 2))
	require.True(t, <-u.active, "the stream that KEDA opens anew is told at once")
	k.requireNumber(t, 2)
}

func TestKEDAComesBackAfterACrash(t *testing.T) {
	t.Parallel()
	first := newWorld(t)
	first.post(first.decided("a", 1))
	k := first.trigger("a")
	u := k.subscribe(t)
	first.awaitStreams("StreamIsActive", 1)
	first.listener.cut()
	require.Contains(t, k.awaitLog("error running StreamIsActive"), "Unavailable")
	second := newWorld(t, after(first))
	second.post(second.inactive("a", 2))
	require.True(t, <-u.active)
	k.requireNumber(t, 2)
}

// TestTheSecondReplicaAnswersAlike posts one plan to two servers, as two replicas with the same
// data do.
func TestTheSecondReplicaAnswersAlike(t *testing.T) {
	t.Parallel()
	one := newWorld(t)
	other := newWorld(t, beside(one))
	for _, w := range []*world{one, other} {
		w.post(w.decided("a", 3), w.inactive("b", 1), w.decided("c", 0))
		require.True(t, <-w.trigger("b").subscribe(t).active)
		w.trigger("a").requireNumber(t, 3)
		w.trigger("b").requireNumber(t, 1)
		w.trigger("c").requireNumber(t, 0)
		_, err := w.trigger("d").ask(t)
		require.ErrorContains(t, err, "/d is not decided yet")
	}
}
