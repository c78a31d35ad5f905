package evaluation

import (
	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/simulation"
)

// hpaQueue is the autoscaling guide of the vLLM production stack
// (docs/source/use_cases/autoscaling-keda.rst): KEDA on vllm:num_requests_waiting, summed over the
// replicas, with a threshold of 5 per replica.
func hpaQueue() Policy {
	return hpaPolicy(Policy{
		Name:    "hpa-queue",
		Summary: "KEDA and HPA on waiting requests per replica (vLLM production stack)",
		Knob: Knob{
			Name: "waiting per replica", Default: value(simulation.WaitingThreshold),
			Values: fixed(0.1, 0.25, 0.5, 1, 2, 5, 10, 20, 40),
		},
	}, func() metric {
		return func(f *simulation.Fleet, id fleet.VariantID) float64 { return float64(stateOf(f, id).Waiting) }
	})
}
