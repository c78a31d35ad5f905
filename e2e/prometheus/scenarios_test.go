package prometheus

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	low  = 1  // requests per second that one replica can serve
	high = 25 // requests per second that need several replicas
)

func TestServerOnARealPrometheus(t *testing.T) {
	binary(t)
	built := build(t)
	for _, scenario := range []struct {
		name    string
		run     func(*testing.T, *world)
		dialect dialect
	}{
		{"ReplicasFollowTheLoad", replicasFollowTheLoad, vllm()},
		{"SGLangIsScaled", sglangIsScaled, sglang()},
		{"WrongTokenHolds", wrongTokenHolds, vllm()},
		{"KilledPrometheusHolds", killedPrometheusHolds, vllm()},
		{"TwoServersAgree", twoServersAgree, vllm()},
		{"SIGTERMEndsStreams", sigtermEndsStreams, vllm()},
	} {
		t.Run(scenario.name, func(t *testing.T) {
			t.Parallel()
			scenario.run(t, newWorld(t, built, scenario.dialect))
		})
	}
}

func replicasFollowTheLoad(t *testing.T, w *world) {
	s := w.start()
	s.awaitReady()
	s.awaitDecision(chat)
	follow(t, w.engines, s)
	require.Equal(t, 1, w.engines.replicas(chat))
	w.rise()
	require.Equal(t, 1, w.engines.replicas(notes), "only chat has more load")
	w.engines.ask(modelOf(chat), low)
	eventually(t, "replicas fall with the load", func() bool { return w.engines.replicas(chat) == 1 })
}

// wrongTokenHolds replaces the token at the start, and again while the load falls.
func wrongTokenHolds(t *testing.T, w *world) {
	w.proxy.give("wrong")
	s := w.start()
	s.awaitReady()
	reason := s.awaitHeld(chat)
	require.Contains(t, reason, "401")
	require.Contains(t, reason, "check the address and the credentials", "the details name the remedy")
	f := follow(t, w.engines, s)
	require.Equal(t, 1, f.lowest(t, chat, time.Now()), "the existing replicas are the answer")

	w.proxy.give(rightToken)
	s.awaitDecision(chat)
	w.rise()

	w.proxy.give("expired")
	s.awaitHeld(chat)
	held, at := time.Now(), w.engines.replicas(chat)
	w.engines.ask(modelOf(chat), low)
	require.GreaterOrEqual(t, f.lowest(t, chat, held), at)
	require.True(t, s.ready(), "a held number is an answer")
}

func killedPrometheusHolds(t *testing.T, w *world) {
	s := w.start()
	s.awaitDecision(chat)
	f := follow(t, w.engines, s)
	w.rise()

	w.scraper.process.kill()
	killed, at := time.Now(), w.engines.replicas(chat)
	w.engines.ask(modelOf(chat), low)
	require.Contains(t, s.awaitHeld(chat), "prometheus: https://", "one row for all queries, with the address")
	require.GreaterOrEqual(t, f.lowest(t, chat, killed), at)

	w.scraper.start()
	s.awaitDecision(chat)
	eventually(t, "replicas fall with the load", func() bool { return w.engines.replicas(chat) < at })
	w.rise()
}

// twoServersAgree has KEDA follow one of two servers, kills that one under load, and starts it
// again. Replicas are kept for longer than the scenario lasts: any decrease is an error.
func twoServersAgree(t *testing.T, w *world) {
	kept := []string{"--scale-down-min-replica-lifetime", "10m"}
	one, other := w.start(kept...), w.start(kept...)
	ours, theirs := keep(t, one), keep(t, other)
	one.awaitDecision(chat)
	f := follow(t, w.engines, one)
	w.rise()
	requireAgreement(t, ours, theirs)

	w.engines.ask(modelOf(chat), high+high/2)
	one.kill()
	killed, running := time.Now(), w.engines.replicas(chat)
	again := w.start(kept...)
	f.server.Store(again)
	requireAgreement(t, keep(t, again), theirs)
	require.GreaterOrEqual(t, f.lowest(t, chat, killed), running)
	eventually(t, "replicas rise on", func() bool { return w.engines.replicas(chat) > running })
}

// requireAgreement asserts that two servers which run side by side make the same decision on the
// same data.
func requireAgreement(t *testing.T, one, other *planLog) {
	t.Helper()
	const enough = 10
	eventually(t, "both servers have decided on the same data", func() bool { return len(one.shared(other)) >= enough })
	for m, said := range one.shared(other) {
		require.Equal(t, said[0].desired, said[1].desired, "%v: %v", m, said)
	}
}

// sigtermEndsStreams sends the signal while a cycle waits for Prometheus.
func sigtermEndsStreams(t *testing.T, w *world) {
	s := w.start()
	s.awaitReady()
	ended := s.subscribe(t, chat)
	w.proxy.stuck.Store(true)
	<-w.proxy.caught
	require.NoError(t, s.terminate())
	requireEndsWithNil(t, ended)
}

// rise lets the load of chat rise, and returns once replicas were added.
func (w *world) rise() {
	w.Helper()
	before := w.engines.replicas(chat)
	w.engines.ask(modelOf(chat), high)
	eventually(w, "replicas rise with the load", func() bool { return w.engines.replicas(chat) > before })
}
