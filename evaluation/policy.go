package evaluation

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/simulation"
)

// Policy is a way to choose numbers of replicas. Each has a file of its own, and a row in Policies.
type Policy struct {
	Name    string
	Summary string // one line, with the source of a published rule
	Knob    Knob
	// Choices returns the parts of the fleet that the policy can act on, of which the best is
	// chosen with hindsight. Nil: it acts on all variants.
	Choices func(Setup) []Choice
	// Initial returns the replicas at the beginning. Nil: those of the setup.
	Initial func(Case, Setting) map[fleet.VariantID]int
	// Start returns the controller of one run, whose fleet is at time 0. Nil: replicas never
	// change.
	Start func(Case, Setting, *simulation.Fleet) (Controller, error)
}

// Knob is the main parameter of a policy. Its zero value is none.
type Knob struct {
	Name string // with the unit, such as "waiting per replica"
	// Default is the published value for a case.
	Default func(Case, Choice) float64
	// Values are those of a sweep, ascending, at least eight.
	Values func(Case, Choice) []float64
}

// Setting is one way to run a policy.
type Setting struct {
	Knob    float64 // meaningless without a knob
	Default bool    // the knob has its default, or there is none
	Choice  Choice
}

// Choice is a part of the fleet on which a policy acts. Other variants have no replicas.
type Choice struct {
	Name string // shown in tables; empty if there is no choice
	// Variants are those that the policy scales. Of several, each gets its share of the replicas.
	Variants []fleet.VariantID
	Shares   []float64 // by variant, of sum 1
}

// Controller is a policy at work on one fleet. It is not for concurrent use.
type Controller interface {
	// Step acts on the fleet at its present time, and returns the time of its next step, which is
	// later. +Inf: there is none. The first step is at 0.
	Step(context.Context, *simulation.Fleet) (next float64, err error)
	Close() error
}

// Policies returns all policies, WVA first.
func Policies() []Policy {
	policies := []Policy{
		wva(), wvaPercentile(), static(), hpaQueue(), hpaInFlight(), hpaRate(), kpa(), llmd(), throughput(), clairvoyant(), instant(), oneLess(),
	}
	return slices.Concat(policies, ablations())
}

// PolicyOf returns the policy of a name.
func PolicyOf(name string) (Policy, error) {
	var names []string
	for _, p := range Policies() {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return Policy{}, fmt.Errorf("policy %q is unknown; it is one of %s", name, strings.Join(names, ", "))
}

// eachVariant returns a choice for each variant alone: published rules are for one workload.
func eachVariant(s Setup) []Choice {
	var choices []Choice
	for _, v := range s.Fleet.Variants {
		choices = append(choices, Choice{Name: v.ID.Name, Variants: []fleet.VariantID{v.ID}, Shares: []float64{1}})
	}
	return choices
}

// choices returns the choices of a policy, at least one.
func (p Policy) choices(s Setup) []Choice {
	if p.Choices == nil {
		return []Choice{{}}
	}
	return p.Choices(s)
}

// settings returns the settings of a policy for a case: of each choice the default, or the whole
// sweep with the default among it.
func (p Policy) settings(c Case, sweep bool) []Setting {
	var settings []Setting
	for _, choice := range p.choices(c.Setup) {
		if p.Knob.Name == "" {
			settings = append(settings, Setting{Default: true, Choice: choice})
			continue
		}
		usual := p.Knob.Default(c, choice)
		values := []float64{usual}
		if sweep {
			values = append(values, p.Knob.Values(c, choice)...)
			slices.Sort(values)
			values = slices.Compact(values)
		}
		for _, value := range values {
			settings = append(settings, Setting{Knob: value, Default: value == usual, Choice: choice})
		}
	}
	return settings
}
