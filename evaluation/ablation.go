package evaluation

import (
	"time"

	"github.com/wva-project/wva/config"
	"github.com/wva-project/wva/simulation"
)

// mechanism is a part of WVA that can be switched off.
type mechanism struct {
	name, summary string
	off           func(*config.Config)
}

// mechanisms are the rows of the ablation table. A mechanism that has a setting needs a row only.
var mechanisms = []mechanism{
	{"sizing", "without sizing by latency: saturation thresholds alone", func(c *config.Config) { c.Sizing.Queueing = config.Off }},
	{"profiles", "without the shipped profiles: measured capacity alone", func(c *config.Config) { c.ProfileCatalogue = config.Off }},
	{"headroom", "without headroom before a scale-down", func(c *config.Config) { c.ScaleDown.Headroom = 1e-9 }},
	{"budget", "without correcting the headroom by the error budget, and without keeping demand that comes back", func(c *config.Config) { c.ErrorBudget.Enabled = false }},
	{"lifetime", "without a least lifetime of replicas", func(c *config.Config) { c.ScaleDown.MinReplicaLifetime = time.Nanosecond }},
}

// ablations returns WVA without each of its mechanisms, one at a time.
func ablations() []Policy {
	var policies []Policy
	for _, m := range mechanisms {
		policies = append(policies, Policy{
			Name:    "wva-without-" + m.name,
			Summary: "WVA " + m.summary,
			Start: func(c Case, _ Setting, f *simulation.Fleet) (Controller, error) {
				return startProduct(c, f, productOptions{objects: c.Setup.Objects, variants: c.Setup.Variants, configure: m.off})
			},
		})
	}
	return policies
}
