package scenarios

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	wvav1alpha1 "github.com/wva-project/wva/proto/wva/v1alpha1"
)

func kedaScalesFromZeroToThreeAndBack(_ *testing.T, w *world) {
	v := spec{name: "chat", model: "org/chat", accelerator: "L40S", cost: 2, min: 0, max: 10, startup: "2s"}
	w.player.ask(v.model, 0)
	s := w.start()
	s.awaitReady()
	w.declare(v)
	s.await(v.name, "is decided at zero", func(v *wvav1alpha1.Variant) bool { return v.DesiredReplicas != nil && v.GetDesiredReplicas() == 0 })

	settles := func(replicas int) { w.settles(v.name, replicas) }
	w.player.ask(v.model, 1)
	settles(1)
	w.player.ask(v.model, busy)
	settles(busyReplicas)
	w.player.ask(v.model, 3)
	settles(2)
	w.player.ask(v.model, 0)
	settles(0)
}

func onlyTheCheapestVariantIsWokenByAQueue(t *testing.T, w *world) {
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
	w.keeps("a request", time.Second, 0, expensive.name)
	require.NotZero(t, w.replicas(cheap.name))
}

func killUnderLoadLowersNothing(t *testing.T, w *world) {
	v := spec{name: "chat", model: "org/chat", accelerator: "L40S", cost: 2, replicas: 1, min: 1, max: 10, startup: "2s"}
	w.player.ask(v.model, busy)
	s := w.start()
	s.awaitReady()
	w.declare(v)
	w.settles(v.name, busyReplicas)
	s.await(v.name, "is decided", func(v *wvav1alpha1.Variant) bool { return !v.GetHeld() })
	before := w.replicas(v.name)

	seen := w.follow(deployments, v.name)
	s.kill()
	s = w.start()
	for until := time.Now().Add(15 * time.Second); time.Now().Before(until); time.Sleep(tick) {
		if wanted, err := s.desired(v.name); err == nil {
			require.GreaterOrEqual(t, wanted, before, "no target falls")
		}
	}
	require.GreaterOrEqual(t, seen.low(), before, "no replica is taken away")
}
