package evaluation_test

import (
	"strings"
	"testing"
	"time"

	"github.com/wva-project/wva/evaluation"
	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/simulation"
)

func TestEmbeddedFleetsAreValid(t *testing.T) {
	t.Parallel()
	for _, f := range evaluation.Fleets() {
		s := newSetup(t, f.Name, evaluation.SetupOptions{})
		if len(s.Variants) == 0 || s.Objective().Percentile != 0.95 || s.Fleet.Variants[0].Startup != 60 {
			t.Errorf("%s: %d variants with objective %v", f.Name, len(s.Variants), s.Objective())
		}
	}
}

func TestOptionsReplaceTheObjectiveAndTheStartup(t *testing.T) {
	t.Parallel()
	want := fleet.Objective{TTFT: 2 * time.Second, ITL: 30 * time.Millisecond, Percentile: 0.99}
	s := newSetup(t, "chat", evaluation.SetupOptions{Objective: want, Startup: 2 * time.Minute})
	for i, v := range s.Variants {
		if v.Objective != want || s.Fleet.Variants[i].Startup != 120 {
			t.Errorf("variant %s: objective %+v, start-up %v s", v.ID, v.Objective, s.Fleet.Variants[i].Startup)
		}
	}
	if again := newSetup(t, "chat", evaluation.SetupOptions{}); again.Objective().TTFT != 3*time.Second {
		t.Errorf("TTFT %v of another setup, want that of the manifest", again.Objective().TTFT)
	}
}

func TestInvalidFleetsSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	const object = `
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: NAME, namespace: evaluation}
spec:
  scaleTargetRef: {name: NAME}
  minReplicaCount: 1
  triggers:
    - type: external-push
      metadata: {scalerAddress: "wva.keda.svc:9090", modelID: MODEL, accelerator: GPU, variantCost: "1", ttft: 1s, itl: 50ms}
`
	manifest := func(name, model, gpu string) string {
		return strings.NewReplacer("NAME", name, "MODEL", model, "GPU", gpu).Replace(object)
	}
	node := []simulation.NodeSpec{{Name: "node", Accelerator: "A100", GPUs: 1}}
	tests := []struct {
		text, want string
		nodes      []simulation.NodeSpec
	}{
		{"# nothing", "no ScaledObject", nil},
		{"a: [", "did not find expected", nil},
		{manifest("a", "org/Llama-3.1-8B", "TPU"), `no simulated engine of model "org/Llama-3.1-8B" on accelerator "TPU"`, nil},
		{manifest("a", "org/Llama-3.1-8B", "H100") + "---" + manifest("b", "org/Qwen3-14B", "H100"), "give variants of one model", nil},
		{manifest("a", "org/Llama-3.1-8B", "H100"), "node node has accelerator A100, which no variant runs on", node},
	}
	for _, test := range tests {
		objects, err := evaluation.ReadFleet([]byte(test.text))
		if err == nil {
			_, err = evaluation.NewSetup("fleet", objects, evaluation.SetupOptions{Nodes: test.nodes})
		}
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("error %v, want %q", err, test.want)
		}
	}
}
