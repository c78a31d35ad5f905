package cluster

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/inventory/manifesttest"
)

func TestPodsAreFoundByTheSelectorAtThePathInTheDefinition(t *testing.T) {
	definition := func(path string) string {
		return strings.Replace(rolloutDefinition(".spec.replicas"), "specReplicasPath:", "labelSelectorPath: "+path+", specReplicasPath:", 1)
	}
	for _, test := range []struct{ name, definition, status string }{
		{"the usual path", "", `{selector: "role=prefill"}`},
		{"its path in the definition", definition(".status.hpa.podSelector"), `{hpa: {podSelector: "role=prefill"}, selector: "role=other"}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, Options{})
				w.api.serve(rollouts(true))
				if test.definition != "" {
					w.api.apply(test.definition)
				}
				w.api.apply(rollout("r", "replicas: 1")+"\nstatus: "+test.status, scaledRollout("r"),
					manifesttest.Pod{Name: "p", Labels: "role: prefill"}.String(), manifesttest.Pod{Name: "q", Labels: "role: decode"}.String())
				w.run()
				w.settle()
				require.Equal(t, "r=1/1", w.workloads())
				w.causes()
				w.api.apply(rollout("r", "replicas: 1") + "\nstatus: {}")
				w.settle()
				require.Equal(t, "r=1/0", w.workloads(), "the selector is gone")
				require.Equal(t, causeWorkload, w.causes())
			})
		})
	}
}

func TestPodsAreFoundByTheSelectorOfTheScaleSubresource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.api.serve(rollouts(true))
		w.api.scales["llm/r"], w.api.selectors = 4, map[string]string{"llm/r": "role=prefill"}
		w.api.apply(rollout("r", "size: large"), scaledRollout("r"), manifesttest.Pod{Name: "p", Labels: "role: prefill"}.String())
		w.run()
		w.settle()
		require.Equal(t, "r=4/1", w.workloads())
		w.api.mu.Lock()
		delete(w.api.scales, "llm/r")
		w.api.mu.Unlock()
		w.api.apply(rollout("r", "size: small"))
		w.pass(20 * time.Second)
		require.Equal(t, "r=4/1", w.workloads(), "the last answer stays")
	})
}
