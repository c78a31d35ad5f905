package evaluation

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/config"
)

func TestEachMechanismIsSwitchedOffAlone(t *testing.T) {
	standard, err := productConfig(nil)
	require.NoError(t, err)
	for _, m := range mechanisms {
		without, err := productConfig(m.off)
		require.NoError(t, err)
		require.NotEqual(t, standard, without, m.name)
	}
	none, err := productConfig(func(c *config.Config) { c.ProfileCatalogue = config.Off })
	require.NoError(t, err)
	require.NotEmpty(t, standard.EngineProfiles())
	require.Empty(t, none.EngineProfiles())
}

func TestMechanismsDecideByTheirSwitch(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: 21 s under the race detector")
	}
	c := plain(t, "chat-h100", "constant:rate=70,minutes=6", SetupOptions{})
	replicas := map[string]float64{}
	for _, name := range []string{"wva", "wva-without-sizing"} {
		p, err := PolicyOf(name)
		require.NoError(t, err)
		o, err := Run(t.Context(), c, p, Setting{})
		require.NoError(t, err)
		replicas[name] = o.AverageReplicas
	}
	require.NotEqual(t, replicas["wva"], replicas["wva-without-sizing"])
}

func TestPolicyNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range Policies() {
		require.False(t, seen[p.Name], p.Name)
		seen[p.Name] = true
		require.NotEmpty(t, p.Summary)
		if p.Knob.Name != "" {
			c := plain(t, "chat", "constant:rate=5,minutes=10", SetupOptions{})
			for _, choice := range p.choices(c.Setup) {
				values := p.Knob.Values(c, choice)
				require.GreaterOrEqual(t, len(values), 8, p.Name)
				require.IsIncreasing(t, values, p.Name)
			}
		}
	}
}
