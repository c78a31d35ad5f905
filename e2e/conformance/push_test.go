package conformance

import (
	"fmt"
	"testing"
	"time"

	"github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/scaler"
)

// readAll counts the pushes to KEDA until the subscription ends, and fails on anything but true.
func readAll(t *testing.T, u *subscription) <-chan int {
	count := make(chan int, 1)
	go func() {
		n := 0
		for active := range u.active {
			if !active {
				t.Error("false was pushed: KEDA ignores it, and it costs a message")
			}
			n++
		}
		count <- n
	}()
	return count
}

func TestPushComesOnlyIfAnObjectIsToBeActivated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	counts := make(map[string]<-chan int)
	ends := make(map[string]func())
	for _, name := range []string{"active", "inactive", "unknown"} {
		u := w.trigger(name).subscribe(t)
		counts[name], ends[name] = readAll(t, u), u.end
	}
	starting, heldInactive := w.trigger("starting").subscribe(t), w.trigger("held").subscribe(t)
	w.awaitStreams("StreamIsActive", 5)
	held := w.held("held", 2, true)
	held.Facts.Inactive = true
	plan := func(starting fleet.Decision) {
		w.board.Post(fleet.Plan{
			Time: w.clock.Now(), Decisions: []fleet.Decision{held, w.decided("active", 5), w.inactive("inactive", 0), starting},
		})
		w.settle()
	}
	plan(w.inactive("starting", 0))
	require.True(t, <-heldInactive.active, "an inactive object that is held above zero is activated too")
	plan(w.inactive("starting", 3))
	require.True(t, <-starting.active, "on the edge")
	held.Facts.Inactive = false
	plan(w.decided("starting", 3)) // both are active
	w.step(time.Minute)
	plan(w.decided("starting", 4))
	plan(w.decided("starting", 0))
	require.EqualValues(t, 2, w.server.Pushes(), "an active object needs none")

	w.stop() // ends the streams after everything was sent
	for name, count := range counts {
		w.trigger(name).awaitLog("StreamIsActive retry backoff")
		ends[name]()
		require.Zero(t, <-count, name)
	}
}

func TestPushComesWhenTheStreamOfAnInactiveObjectOpens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.post(w.inactive("a", 1))
	require.True(t, <-w.trigger("a").subscribe(t).active)
}

func TestPushIsRepeatedWithGrowingDelaysWhileTheObjectIsInactive(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	u := w.trigger("a").subscribe(t)
	w.awaitStreams("StreamIsActive", 1)
	w.post(w.inactive("a", 1))
	require.True(t, <-u.active)
	pushes := 1
	for _, delay := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
		w.step(delay * time.Second * 7 / 10)
		w.post(w.inactive("a", 1)) // the same again is no edge
		require.EqualValues(t, pushes, w.server.Pushes(), "before %d s", delay)
		w.step(delay*time.Second - delay*time.Second*7/10)
		pushes++
		require.EqualValues(t, pushes, w.server.Pushes(), "after %d s", delay)
		require.True(t, <-u.active)
	}
}

func TestAtMostFivePushesASecondReachKEDA(t *testing.T) {
	t.Parallel()
	const objects = 23
	w := newWorld(t)
	told := make(chan string, 1000)
	var inactives, actives []fleet.Decision
	for i := range objects {
		name := fmt.Sprintf("v%02d", i)
		u := w.trigger(name).subscribe(t)
		go func() {
			for range u.active {
				told <- name
			}
		}()
		inactives, actives = append(inactives, w.inactive(name, 1)), append(actives, w.decided(name, 1))
	}
	received := 0
	tellAll := func(first map[string]bool) { // every push that was sent
		for received < int(w.server.Pushes()) {
			first[<-told] = true
			received++
		}
	}
	// until every stream is open
	for seen := make(map[string]bool); len(seen) < objects; tellAll(seen) {
		w.clock.Step(time.Second)
		w.post(inactives...)
	}
	w.post(actives...)
	w.step(time.Minute)

	before, first := int(w.server.Pushes()), make(map[string]bool)
	w.post(inactives...)
	for second := 1; len(first) < objects; second++ {
		pushes := int(w.server.Pushes()) - before
		require.Equal(t, min(5*second, objects), min(pushes, objects), "second %d", second)
		require.LessOrEqual(t, pushes, 5*second)
		tellAll(first)
		require.Len(t, first, min(5*second, objects), "a first push goes before the repetition of another")
		w.step(time.Second)
	}
}

func TestAKEDAThatReadsSlowlyDelaysNobodyElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.trigger("slow").subscribe(t) // nobody reads its pushes
	quick := w.trigger("quick").subscribe(t)
	w.awaitStreams("StreamIsActive", 2)
	for range 50 {
		w.post(w.inactive("slow", 1), w.inactive("quick", 1))
		require.True(t, <-quick.active)
		w.post(w.decided("slow", 1), w.decided("quick", 1))
		w.step(time.Second)
	}
	w.trigger("slow").requireNumber(t, 1)
}

func TestStreamsForUnknownObjectsAreCapped(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *world, o *scaler.ServerOptions) { o.MaxUnknownStreams = 6 })
	w.post(w.decided("a", 1))
	client := raw(t, w.address)
	for _, name := range []string{"u", "v", "x", "y"} {
		stream, err := client.StreamIsActive(t.Context(), &externalscaler.ScaledObjectRef{Namespace: w.namespace, Name: name})
		require.NoError(t, err)
		_, err = stream.Header() // it is open
		require.NoError(t, err)
	}
	z := w.trigger("z")
	z.subscribe(t)
	line := z.awaitLog("error running StreamIsActive")
	require.Contains(t, line, "ResourceExhausted")
	require.Contains(t, line, "z has to wait")
	known := w.trigger("a").subscribe(t)
	w.post(w.inactive("a", 1))
	require.True(t, <-known.active, "objects of the plan are not counted")
	w.trigger("a").requireNumber(t, 1)
}

func TestClosingAScalerEndsItsStreamsAtTheServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var subscriptions []*subscription
	for i := range 50 {
		subscriptions = append(subscriptions, w.trigger(fmt.Sprintf("v%d", i)).subscribe(t))
	}
	w.awaitStreams("StreamIsActive", 50)
	w.awaitStreams("StreamMetricSpec", 50)
	for _, u := range subscriptions {
		u.end()
	}
	w.awaitStreams("StreamIsActive", 0)
	w.awaitStreams("StreamMetricSpec", 0)
}
