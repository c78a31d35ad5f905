package config_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/config"
	"github.com/wva-project/wva/fleet"
)

// variantsOf returns a variant of each model.
func variantsOf(models ...fleet.ModelID) []fleet.Variant {
	variants := make([]fleet.Variant, len(models))
	for i, id := range models {
		variants[i].Model = id
	}
	return variants
}

func loaded(t *testing.T, lines ...string) *config.Config {
	t.Helper()
	c, err := config.Load(given(t, "--config", complete(t, lines...)))
	require.NoError(t, err)
	return c
}

func TestLaterRowsOfModelsOverrideEarlierOnesFieldByField(t *testing.T) {
	a := fleet.ModelID{Namespace: "team-a", Name: "meta-llama/Llama-3.1-8B"}
	b := fleet.ModelID{Namespace: "team-b", Name: "meta-llama/Llama-3.1-8B"}
	c := fleet.ModelID{Namespace: "team-b", Name: "ibm-granite/granite-3.3-8b"}
	off := func(id fleet.ModelID, retention time.Duration) fleet.Model {
		return fleet.Model{ID: id, ScaleToZeroOff: true, Retention: retention}
	}
	for _, test := range []struct {
		name  string
		lines []string
		want  []fleet.Model
	}{
		{"nothing is set", nil, nil},
		{"off for all", []string{"scaleToZero: {enabled: false}"}, []fleet.Model{off(a, 0), off(c, 0), off(b, 0)}},
		{"off for all but a namespace", []string{"scaleToZero: {enabled: false}", "models: [{namespace: team-b, scaleToZero: true}]"}, []fleet.Model{off(a, 0)}},
		{"off for a pattern", []string{`models: [{model: "meta-llama/*", scaleToZero: false}]`}, []fleet.Model{off(a, 0), off(b, 0)}},
		{"off in a namespace", []string{`models: [{namespace: "*-a", scaleToZero: false}]`}, []fleet.Model{off(a, 0)}},
		{"both fields match", []string{`models: [{namespace: team-b, model: "*granite*", scaleToZero: false}]`}, []fleet.Model{off(c, 0)}},
		{"field by field", []string{`models: [{namespace: "*", scaleToZero: false, retention: 1h}, {model: "meta-llama/*", retention: 30m}, {namespace: team-b, model: "meta-llama/*", scaleToZero: true}]`}, []fleet.Model{
			off(a, 30*time.Minute), off(c, time.Hour), {ID: b, Retention: 30 * time.Minute},
		}},
		{"the last one wins, not the narrowest", []string{`models: [{namespace: team-a, scaleToZero: false}, {namespace: "team-*", scaleToZero: true}]`}, nil},
		{"the default of the retention is the policy's", []string{"scaleToZero: {retention: 1h}"}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			variants := variantsOf(b, a, c, b, fleet.ModelID{Namespace: "team-a"})
			require.Equal(t, test.want, loaded(t, test.lines...).ModelsOf(variants))
		})
	}
}

// TestModelsOfAgreesWithReadingTheRowsBackwards compares with the rule read from the other end: the
// last row that says something decides.
func TestModelsOfAgreesWithReadingTheRowsBackwards(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 12))
	pick := func(texts ...string) string { return texts[random.IntN(len(texts))] }
	c, err := config.Default()
	require.NoError(t, err)
	for range 3000 {
		c.ScaleToZero.Enabled, c.Models = random.IntN(2) == 0, nil
		for range random.IntN(6) {
			row := config.ModelRow{
				Namespace: pick("", "*", "a", "a*", "b"), Model: pick("", "*/m", "o/*", "o/m", "p"),
				Retention: time.Duration(random.IntN(3)) * time.Minute,
			}
			if random.IntN(2) == 0 {
				row.ScaleToZero = new(random.IntN(2) == 0)
			}
			c.Models = append(c.Models, row)
		}
		id := fleet.ModelID{Namespace: pick("a", "ab", "b"), Name: pick("o/m", "o/n", "p")}
		want := fleet.Model{ID: id, ScaleToZeroOff: !c.ScaleToZero.Enabled}
		said := false
		for i := range c.Models {
			row := c.Models[len(c.Models)-1-i]
			if !row.Matches(id) {
				continue
			}
			if row.ScaleToZero != nil && !said {
				want.ScaleToZeroOff, said = !*row.ScaleToZero, true
			}
			if want.Retention == 0 {
				want.Retention = row.Retention
			}
		}
		got := fleet.Model{ID: id}
		if rows := c.ModelsOf(variantsOf(id)); len(rows) > 0 {
			got = rows[0]
		}
		require.Equal(t, want, got, "%+v", c.Models)
	}
}

func TestIdleWindowReachesTheLongestRetention(t *testing.T) {
	after := func(d time.Duration) []fleet.Variant { return []fleet.Variant{{}, {ScaleToZeroAfter: d}} }
	for _, test := range []struct {
		name, file string
		variants   []fleet.Variant
		want       time.Duration
	}{
		{"nothing is set", "", nil, 10 * time.Minute},
		{"the window", "prometheus: {windows: {idle: 20m}}", nil, 20 * time.Minute},
		{"the default", "scaleToZero: {retention: 30m}", nil, 30 * time.Minute},
		{"a row", "models: [{namespace: a, retention: 2h}]", nil, 2 * time.Hour},
		{"a row without effect", "models: [{namespace: a, retention: 2h, scaleToZero: false}]", nil, 10 * time.Minute},
		{"a variant", "", after(45 * time.Minute), 45 * time.Minute},
		{"a variant below the window", "", after(time.Minute), 10 * time.Minute},
		{"no object makes everybody's queries long", "", after(720 * time.Hour), time.Hour},
		{"the administrator does", "prometheus: {windows: {idle: 720h}}", after(700 * time.Hour), 720 * time.Hour},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, err := config.Load(given(t, "--prometheus-url", "http://p", "--manifests", t.TempDir(), "--config", written(t, test.file)))
			require.NoError(t, err)
			require.Equal(t, test.want, c.IdleWindow(test.variants))
		})
	}
}

func TestPricesOfAcceleratorsAreBounded(t *testing.T) {
	for text, want := range map[string]string{
		"4.1": "", "1000000": "", "0.0000001": "", "0": `price "0" is not above 0; write a number above 0 and at most 1000000`,
		"-1": `price "-1" is below 0`, "1000001": `price "1000001" is above 1e+06`, "cheap": `price "cheap" is not a number`,
	} {
		c, err := config.Load(given(t, "--config", complete(t, "accelerators: [{name: H100, speed: 3.2, price: "+text+"}, {name: T4, speed: 1}]")))
		if want == "" {
			require.NoError(t, err)
			require.Positive(t, c.Accelerators[0].Price)
			require.Zero(t, c.Accelerators[1].Price, "not given")
			continue
		}
		require.ErrorContains(t, err, want)
	}
}

func TestServiceClassesListTheirNamespaces(t *testing.T) {
	c := loaded(t, `serviceClasses: [{name: premium, priority: 10, namespaces: [team-a, "prod-*"]}, {name: free, priority: 1}]`)
	require.Equal(t, []fleet.ServiceClass{{Name: "premium", Priority: 10, Namespaces: []string{"team-a", "prod-*"}}, {Name: "free", Priority: 1}}, c.ServiceClasses)
	require.Len(t, c.Warnings(), 1, "the second is granted to nobody")
}
