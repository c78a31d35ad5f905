package app

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/fleet"
)

// configMap is a ConfigMap with configuration: %s are its namespace, its name, and the settings.
func (w *world) configMap(namespace, name, settings string) {
	w.Helper()
	w.write(namespace+"-"+name+".yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "+name+", namespace: "+namespace+
		", labels: {wva.dev/config: \"true\"}}\ndata:\n  k: |\n    "+settings+"\n")
}

func TestOneChangeOfAConfigMapMakesOneCycleThatDecidesByIt(t *testing.T) {
	w := newWorld(t)
	w.variant("chat", 2, "1")
	w.configMap("wva", "global", "models: [{namespace: llm, ttft: 3s}]")
	w.configMap("other", "tenant", "models: [{model: \"*\", ttft: 1s}]")
	now := time.Now()
	w.load("chat-5f-0", now, 20, 2)
	w.load("chat-5f-1", now, 20, 2)
	s := w.start("--interval", "1h", "--prometheus-query-timeout", "10s", "--kubernetes-config-maps", "all", "--kubernetes-config-namespace", "wva")
	s.log.await("first plan posted")
	require.Equal(t, 3*time.Second, s.objective(t).TTFT, "the first decision has them")
	cycles := s.metric(t, `wva_cycles_total{result="ok"}`)

	w.configMap("llm", "tenant", "models: [{model: \"*\", itl: 50ms}]")
	line := s.log.await("configuration reloaded")
	require.Equal(t, []any{"llm"}, line["namespaces"])
	require.InDelta(t, 1, line["variants"], 0)
	s.log.await("cycle")
	require.Eventually(t, func() bool { return s.objective(t).ITL == 50*time.Millisecond }, 10*time.Second, time.Millisecond)
	require.InDelta(t, cycles+1, s.metric(t, `wva_cycles_total{result="ok"}`), 0, "one change, one cycle")
	require.InDelta(t, 1, s.metric(t, `wva_cycle_triggers_total{reason="manifests"}`), 0)

	w.configMap("llm", "tenant", "models: [{model: \"*\", itl: fast}]")
	line = s.log.await("configuration of a ConfigMap rejected")
	require.Equal(t, "llm/tenant", line["configMap"])
	require.Contains(t, line["errors"], `models: itl "fast" is not a duration`)
	require.Equal(t, "its last valid text", line["used"])
	require.Equal(t, 50*time.Millisecond, s.objective(t).ITL, "the last valid text stays")
}

// objective returns the objective of the only variant of the latest decision.
func (s *started) objective(t *testing.T) fleet.Objective {
	t.Helper()
	snapshot, decided := s.loop.Snapshot()
	require.True(t, decided)
	require.Len(t, snapshot.Variants, 1)
	return snapshot.Variants[0].Objective
}

func TestConfigMapsAreNotReadUnlessTheyAreTurnedOn(t *testing.T) {
	w := newWorld(t)
	w.variant("chat", 1, "1")
	w.configMap("wva", "global", "models: [{namespace: llm, ttft: 3s}]")
	s := w.start()
	s.log.await("first plan posted")
	require.Zero(t, s.objective(t))
}

func TestAServerInNoNamespaceNeedsTheNameOfOne(t *testing.T) {
	w := newWorld(t)
	_, err := w.newServer(w.config("--kubernetes-config-maps", "own"), newJournal(t))
	require.ErrorContains(t, err, "set kubernetes.configNamespace")
}
