package scenarios

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/e2e/cluster"
	wvav1alpha1 "github.com/wva-project/wva/proto/wva/v1alpha1"
)

func TestKEDAScalesFromZeroToFiveAndBack(t *testing.T) {
	w := newWorld(t, cluster.Options{KEDA: true})
	v := spec{name: "chat", model: "org/chat", accelerator: "L40S", cost: 2, min: 0, max: 10, startup: "2s"}
	w.player.ask(v.model, 0)
	s := w.start()
	s.awaitReady()
	w.declare(v)
	s.await(v.name, "is decided at zero", func(v *wvav1alpha1.Variant) bool { return v.DesiredReplicas != nil && v.GetDesiredReplicas() == 0 })

	settles := func(replicas int) { w.settles(v.name, replicas) }
	w.player.ask(v.model, 1)
	settles(1)
	w.player.ask(v.model, 8)
	settles(5)
	w.player.ask(v.model, 3)
	settles(2)
	w.player.ask(v.model, 0)
	settles(0)
}

func TestOnlyTheCheapestVariantIsWokenByAQueue(t *testing.T) {
	w := newWorld(t, cluster.Options{KEDA: true})
	cheap := spec{name: "cheap", model: "org/chat", accelerator: "L40S", cost: 2, min: 0, max: 10, startup: "5s"}
	expensive := spec{name: "expensive", model: "org/chat", accelerator: "H100", cost: 9, min: 0, max: 10, startup: "5s"}
	w.player.ask(cheap.model, 0)
	s := w.start()
	s.awaitReady()
	for _, v := range []spec{expensive, cheap} {
		w.declare(v)
		s.await(v.name, "is decided at zero", func(v *wvav1alpha1.Variant) bool { return v.DesiredReplicas != nil && v.GetDesiredReplicas() == 0 })
	}
	eventually(t, deadline, "KEDA listens on both streams", func() bool { return s.metric("wva_open_streams") >= 2 })

	asked := w.player.askAt(cheap.model, 1)
	eventually(t, deadline, "the cheap variant is woken", func() bool { return w.replicas(cheap.name) > 0 })
	t.Logf("woken %v after the sample", time.Since(<-asked).Round(time.Millisecond))
	for range 50 {
		require.Zero(t, w.replicas(expensive.name), "the expensive variant stays at zero")
		time.Sleep(tick)
	}
	require.NotZero(t, w.replicas(cheap.name))
}

func TestKillUnderLoadLowersNothing(t *testing.T) {
	w := newWorld(t, cluster.Options{KEDA: true})
	v := spec{name: "chat", model: "org/chat", accelerator: "L40S", cost: 2, replicas: 1, min: 1, max: 10, startup: "2s"}
	w.player.ask(v.model, 8)
	s := w.start()
	s.awaitReady()
	w.declare(v)
	w.settles(v.name, 5)
	s.await(v.name, "is decided", func(v *wvav1alpha1.Variant) bool { return !v.GetHeld() })
	before := w.replicas(v.name)

	s.kill()
	s = w.start()
	lowest := before
	for until := time.Now().Add(15 * time.Second); time.Now().Before(until); time.Sleep(tick) {
		lowest = min(lowest, w.replicas(v.name))
		if wanted, err := s.desired(v.name); err == nil {
			require.GreaterOrEqual(t, wanted, before, "no target falls")
		}
	}
	require.Equal(t, before, lowest, "no replica is taken away")
}

// settles waits until a Deployment has a number of replicas in its spec and keeps it.
func (w *world) settles(name string, replicas int) {
	w.Helper()
	begun := time.Now()
	eventually(w, deadline, fmt.Sprintf("%s settles at %d", name, replicas), func() bool {
		for since := time.Now(); w.replicas(name) == replicas; time.Sleep(tick) {
			if time.Since(since) > settled {
				return true
			}
		}
		return false
	})
	w.Logf("settled at %d replicas after %v", replicas, (time.Since(begun) - settled).Round(100*time.Millisecond))
}
