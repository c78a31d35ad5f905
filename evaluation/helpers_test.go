package evaluation_test

import (
	"context"
	"testing"

	"github.com/wva-project/wva/evaluation"
	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/simulation"
)

// newSetup returns an embedded fleet.
func newSetup(t *testing.T, fleet string, o evaluation.SetupOptions) evaluation.Setup {
	t.Helper()
	objects, err := evaluation.EmbeddedFleet(fleet)
	if err != nil {
		t.Fatal(err)
	}
	setup, err := evaluation.NewSetup(fleet, objects, o)
	if err != nil {
		t.Fatal(err)
	}
	return setup
}

func mustLoad(t *testing.T, text string) evaluation.Load {
	t.Helper()
	l, err := evaluation.ParseLoad(text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// newCase returns a case of an embedded fleet and a load, with seed 1.
func newCase(t *testing.T, fleet, load string, o evaluation.SetupOptions) evaluation.Case {
	t.Helper()
	c, err := evaluation.NewCase(mustLoad(t, load), newSetup(t, fleet, o), 1)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// crafted returns a case of given requests on H100 alone.
func crafted(t *testing.T, until float64, requests []simulation.Request) evaluation.Case {
	t.Helper()
	c := evaluation.Case{Load: "crafted", Setup: newSetup(t, "chat-h100", evaluation.SetupOptions{}), Seed: 1, Until: until}
	for _, r := range requests {
		r.Model = c.Setup.Model()
		c.Requests = append(c.Requests, r)
	}
	return c
}

// alone is the choice of the first variant.
func alone(c evaluation.Case) evaluation.Choice {
	return evaluation.Choice{Name: c.Setup.Variants[0].ID.Name, Variants: []fleet.VariantID{c.Setup.Variants[0].ID}, Shares: []float64{1}}
}

func mustPolicy(t *testing.T, name string) evaluation.Policy {
	t.Helper()
	p, err := evaluation.PolicyOf(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func mustRun(t *testing.T, c evaluation.Case, policy string, s evaluation.Setting) evaluation.Outcome {
	t.Helper()
	outcome, err := evaluation.Run(context.Background(), c, mustPolicy(t, policy), s)
	if err != nil {
		t.Fatal(err)
	}
	return outcome
}
