package evaluation

import (
	"fmt"
	"math"
	"slices"

	"github.com/wva-project/wva/fleet"
)

// static is a fleet that never changes. Its knob is the number of replicas, and it is sized with
// hindsight. Of several variants, each alone is tried, and mixes of two.
func static() Policy {
	return Policy{
		Name:    "static",
		Summary: "a number of replicas that never changes, chosen with hindsight",
		Knob: Knob{
			Name:    "replicas",
			Default: staticDefault,
			Values:  staticValues,
		},
		Choices: mixes,
		Initial: func(_ Case, s Setting) map[fleet.VariantID]int { return s.Choice.split(int(s.Knob)) },
	}
}

// staticDefault returns the number for the busiest minutes, within the variants' maxima.
func staticDefault(c Case, choice Choice) float64 {
	n := int(math.Ceil(replicasFor(c, choice, busiestRate(c))))
	for n > 1 && !choice.allows(c.Setup, n) {
		n--
	}
	return float64(n)
}

// staticValues returns numbers of replicas from half of those for the mean rate to three times
// those for the busiest minutes.
func staticValues(c Case, choice Choice) []float64 {
	low := max(1, math.Floor(replicasFor(c, choice, meanRate(c))/2))
	high := max(low+8, math.Ceil(replicasFor(c, choice, busiestRate(c))*3))
	return slices.DeleteFunc(wholeNumbers(geometric(low, high, 14)), func(n float64) bool { return !choice.allows(c.Setup, int(n)) })
}

// allows reports whether a number of replicas exceeds no variant's maximum.
func (c Choice) allows(s Setup, replicas int) bool {
	split := c.split(replicas)
	return !slices.ContainsFunc(c.Variants, func(id fleet.VariantID) bool { return split[id] > s.variant(id).Range.Max })
}

// mixes returns each variant alone, and of each pair equal parts and three parts to one.
func mixes(s Setup) []Choice {
	choices := eachVariant(s)
	for i, a := range choices[:len(s.Fleet.Variants)] {
		for _, b := range choices[i+1 : len(s.Fleet.Variants)] {
			for _, parts := range [][2]float64{{1, 1}, {3, 1}, {1, 3}} {
				whole := parts[0] + parts[1]
				choices = append(choices, Choice{
					Name:     fmt.Sprintf("%g %s : %g %s", parts[0], a.Name, parts[1], b.Name),
					Variants: []fleet.VariantID{a.Variants[0], b.Variants[0]},
					Shares:   []float64{parts[0] / whole, parts[1] / whole},
				})
			}
		}
	}
	return choices
}

// split distributes replicas over the variants of a choice by their shares, rounded to the nearest
// number of the first ones.
func (c Choice) split(replicas int) map[fleet.VariantID]int {
	split := map[fleet.VariantID]int{}
	rest := replicas
	for i, id := range c.Variants {
		n := int(math.Round(c.Shares[i] * float64(replicas)))
		if i == len(c.Variants)-1 {
			n = rest
		}
		n = min(n, rest)
		split[id], rest = n, rest-n
	}
	return split
}
