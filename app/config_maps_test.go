package app

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/config"
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
	require.Equal(t, "llm/tenant", line["config_map"])
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

func configMapOf(namespace, name, settings string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: " + namespace +
		", labels: {wva.dev/config: \"true\"}}\ndata:\n  k: |\n    " + settings + "\n"
}

// From the API server to the decision and back: a change is used, an invalid text is not and gets
// an event on the ConfigMap, and a tenant that takes more than it is granted gets an event on its
// ScaledObject and a condition.
func TestConfigMapsOfAClusterAreUsedAndRejectedWithEvents(t *testing.T) {
	w := newWorld(t)
	api := newAPIServer(t)
	api.apply(t, fmt.Sprintf(manifest, "chat", 1, "1")+"---\n"+configMapOf("wva", "global", `maxAccelerators: [{namespace: "*", max: 4}]`))
	kubeconfig := api.kubeconfig(t)
	s := w.start("--manifests=", "--kubeconfig", kubeconfig, "--interval", "1h", "--prometheus-query-timeout", "10s",
		"--kubernetes-config-maps", "all", "--kubernetes-config-namespace", "wva", "--kubernetes-lease-namespace", "wva", "--kubernetes-dry-run-variants", "off")
	s.log.await("first plan posted")
	limits := func() []fleet.Limit {
		snapshot, _ := s.loop.Snapshot()
		return snapshot.Limits
	}
	require.Equal(t, []fleet.Limit{{Namespace: "llm", Max: 4}}, limits())
	require.Eventually(t, s.source.events.lease.IsLeader, 10*time.Second, time.Millisecond)

	api.apply(t, configMapOf("wva", "global", `maxAccelerators: [{namespace: "*", max: lots}]`))
	rejected := s.log.await("configuration of a ConfigMap rejected")
	require.Equal(t, "its last valid text", rejected["used"])
	event := api.event(t, "ConfigurationRejected")
	about, _ := event["involvedObject"].(map[string]any)
	require.Equal(t, map[string]any{"kind": "ConfigMap", "namespace": "wva", "name": "global", "uid": "uid-global", "apiVersion": "v1"}, about)
	require.Contains(t, event["message"], `key k: maxAccelerators: max "lots" is not a number`)
	require.Contains(t, event["message"], "In use is its last valid text")
	require.Equal(t, []fleet.Limit{{Namespace: "llm", Max: 4}}, limits())

	before := s.settings.Load()
	api.apply(t, configMapOf("llm", "own", "maxAccelerators: [{max: 400}]"))
	event = api.event(t, "SettingLimited")
	require.Contains(t, event["message"], "in the ConfigMap llm/own maxAccelerators is 400, and the administrator grants 4, which is used")
	require.NotSame(t, before, s.settings.Load())
	require.Same(t, before.collector, s.settings.Load().collector, "a change of a tenant opens no connections")
	plan, _ := s.Board().Plan()
	condition := plan.Decisions[0].Conditions()[3]
	require.Equal(t, fleet.ConditionDefinitionAccepted, condition.Type)
	require.Equal(t, fleet.ConditionFalse, condition.Status)
	require.Contains(t, condition.Text, "SettingLimited: in the ConfigMap llm/own")
	require.Equal(t, []fleet.Limit{{Namespace: "llm", Max: 4}}, limits())
	require.NoError(t, s.stop())

	merged, wrong, err := WithConfigMaps(t.Context(), w.config("--manifests=", "--kubeconfig", kubeconfig, "--kubernetes-config-maps", "all", "--kubernetes-config-namespace", "wva"))
	require.NoError(t, err)
	require.Len(t, wrong, 1)
	require.Contains(t, wrong[0].String(), "In use is nothing of it")
	require.Contains(t, merged.EffectiveOfNamespaces(), "# namespace llm, for its own variants and within the limits of the administrator:\n#   maxAccelerators: [{namespace: llm, max: 400}] # ConfigMap llm/own, key k, line 1\n")
}

// event waits for an event with a reason.
func (s *apiServer) event(t *testing.T, reason string) map[string]any {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		select {
		case event := <-s.events:
			if event["reason"] == reason {
				return event
			}
		case <-deadline:
			t.Fatalf("no event %s", reason)
		}
	}
}

func TestAChangeOfATenantRepeatsNoWarning(t *testing.T) {
	w := newWorld(t)
	s, err := w.newServer(w.config(), newJournal(t))
	require.NoError(t, err)
	s.settings.Load().matched.Store(true)
	require.NoError(t, s.apply(s.settings.Load().config, config.Change{Namespaces: []string{"llm"}}))
	require.True(t, s.settings.Load().matched.Load(), "the rows of the administrator are the same")
	require.NoError(t, s.apply(s.settings.Load().config, config.Change{Reloaded: []string{"models"}}))
	require.False(t, s.settings.Load().matched.Load())
}
