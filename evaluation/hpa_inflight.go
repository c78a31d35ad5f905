package evaluation

import (
	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/simulation"
)

// inFlightDefault is Knative's default target of requests in flight per replica, 70 % of 100
// (config-autoscaler: container-concurrency-target-default and -percentage). Guides for inference
// engines publish none.
const inFlightDefault = 70.0

// hpaInFlight is KEDA on vllm:num_requests_running + vllm:num_requests_waiting.
func hpaInFlight() Policy {
	return hpaPolicy(Policy{
		Name:    "hpa-inflight",
		Summary: "KEDA and HPA on running and waiting requests per replica",
		Knob: Knob{
			Name: "in flight per replica", Default: value(inFlightDefault),
			Values: fixed(2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192),
		},
	}, func() metric {
		return func(f *simulation.Fleet, id fleet.VariantID) float64 {
			s := stateOf(f, id)
			return float64(s.Running + s.Waiting)
		}
	})
}
