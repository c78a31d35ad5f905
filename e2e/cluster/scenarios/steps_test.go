package scenarios

import (
	"cmp"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The HPA ignores a step of one from 10 replicas up, unless its tolerance is 0.
func stepsOfOneAreFollowedFromNineReplicasUp(_ *testing.T, w *world) {
	v := spec{name: "chat", model: "org/chat", accelerator: "L40S", cost: 2, replicas: 9, min: 1, max: 20}
	s := w.underLoad(v, 17)
	w.raise(s, v.model, 19, 10)
	w.raise(s, v.model, 22, 11)
}

// raise raises the load of the variant chat until it has a number of replicas: slowly, so that no
// number is left out, and only after the HPA has followed the previous one. If the number jumps
// over, since a slow machine makes rates uneven, it lowers the load.
func (w *world) raise(s *server, model string, load float64, replicas int) {
	w.Helper()
	w.player.ask(model, load)
	since := time.Now()
	eventually(w, deadline, fmt.Sprintf("the HPA goes to %d replicas", replicas), func() bool {
		desired, err := s.desired("chat")
		now := w.replicas("chat")
		if err != nil || desired != now {
			since = time.Now()
		}
		if time.Since(since) > settled && now != replicas {
			load, since = load+0.4*float64(cmp.Compare(replicas, now)), time.Now()
			w.player.ask(model, load)
		}
		return now == replicas
	})
	w.Logf("%d replicas at %.1f requests/s", replicas, load)
}

func statefulSetFollowsTheLoad(t *testing.T, w *world) {
	v := spec{name: "set", model: "org/set", accelerator: "L40S", cost: 2, replicas: 1, min: 1, max: 10, startup: "2s"}
	w.player.ask(v.model, busy)
	s := w.start()
	s.awaitReady()
	w.runStatefulSet(v, nil)
	w.createFor(v, "apps/v1", "StatefulSet")
	w.settlesWithin(statefulSets, v.name, busyReplicas, busyReplicas)
	w.player.ask(v.model, 3)
	w.settlesWithin(statefulSets, v.name, 2, 2)
	require.Equal(t, 2, w.readyPods(v.name))
}
