package scenarios

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/e2e/cluster"
)

// outage is longer than the windows of the configuration and the grace period of missing data.
const outage = 15 * time.Second

// An API server and a KEDA that end serve all scenarios of a cluster, so this one has its own.
func TestOutagesAtLoadLowerNothing(t *testing.T) {
	w := newWorld(t, cluster.Options{KEDA: true})
	v := spec{name: "chat", model: "org/chat", accelerator: "L40S", cost: 2, min: 1, max: 20, startup: "2s"}
	s := w.atLoad(v)
	seen := w.follow(deployments, v.name)

	start, err := w.Stop(cluster.APIServer)
	require.NoError(t, err)
	w.answersAtLeast(s, v.name, busyReplicas, outage)
	require.NoError(t, start())
	eventually(t, deadline, "the API server answers", func() bool {
		_, err := w.number(t.Context(), deployments, v.name)
		return err == nil
	})
	w.followed(s, v.name, busyReplicas)
	w.settles(v.name, busyReplicas)
	require.GreaterOrEqual(t, seen.low(), busyReplicas, "no replica is taken away")
	require.LessOrEqual(t, seen.high(), busyReplicas+1, "the load has not changed")

	start, err = w.Stop(cluster.KEDAOperator)
	require.NoError(t, err)
	w.player.ask(v.model, 2*busy)
	const more = busyReplicas + 2
	eventually(t, deadline, "the number rises with the load", func() bool {
		number, err := s.desired(v.name)
		return err == nil && number >= more
	})
	require.Equal(t, busyReplicas, w.replicas(v.name), "nobody scales without KEDA")
	require.NoError(t, start())
	eventually(t, deadline, "KEDA is back", func() bool { return w.replicas(v.name) >= more })
	require.GreaterOrEqual(t, seen.low(), busyReplicas, "no replica is taken away")
}

// answersAtLeast requires for a while that KEDA would get a number that is high enough, or an
// error.
func (w *world) answersAtLeast(s *server, name string, least int, while time.Duration) {
	w.Helper()
	for end := time.Now().Add(while); time.Now().Before(end); time.Sleep(tick) {
		if number, err := s.desired(name); err == nil {
			require.GreaterOrEqual(w, number, least, "no target falls")
		}
	}
}

func prometheusKilledAtLoadLowersNothing(t *testing.T, w *world) {
	v := spec{name: "chat", model: "org/chat", accelerator: "L40S", cost: 2, min: 1, max: 20, startup: "2s"}
	s := w.atLoad(v)
	seen := w.follow(deployments, v.name)
	address := w.player.server.Listener.Addr().String()
	w.player.kill()
	eventually(t, deadline, "the variant is held", func() bool { return s.variants()[v.name].GetHeld() })
	w.answersAtLeast(s, v.name, busyReplicas, outage)

	w.player.serve(address)
	w.followed(s, v.name, busyReplicas)
	w.settles(v.name, busyReplicas)
	require.GreaterOrEqual(t, seen.low(), busyReplicas, "no replica is taken away")
	require.LessOrEqual(t, seen.high(), busyReplicas+1, "the load has not changed")
	w.player.ask(v.model, 3)
	w.settles(v.name, 2)
}
