package config

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// A reload keeps the settings that need a restart and replaces the rest: a valid file could then
// break a rule over both.
func TestNoRuleTiesAReloadableSettingToOneThatNeedsARestart(t *testing.T) {
	reloadable := make(map[string]bool)
	for _, s := range Settings() {
		reloadable[s.Key] = s.Reloadable
	}
	c := new(Config)
	rules := slices.Concat(c.timingRules(), c.credentialRules(), c.otherRules())
	require.NotEmpty(t, rules)
	for _, r := range rules {
		require.Contains(t, reloadable, r.key)
		for _, other := range r.others {
			require.Contains(t, reloadable, other)
			require.Equal(t, reloadable[r.key], reloadable[other], "%s and %s", r.key, other)
		}
	}
}
