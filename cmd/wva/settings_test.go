package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/config"
	"github.com/wva-project/wva/fleet"
)

func TestPoolsAreFixedThatTheConfigurationNames(t *testing.T) {
	seen := []fleet.Pool{{Accelerator: "H100", Elastic: true}, {Accelerator: "L40S", Elastic: true}, {Accelerator: "T4"}}
	s := &settings{config: &config.Config{FixedAccelerators: []string{"H100", "B200"}}}
	require.Equal(t, []fleet.Pool{{Accelerator: "H100"}, {Accelerator: "L40S", Elastic: true}, {Accelerator: "T4"}}, s.pools(seen))
	require.True(t, seen[0].Elastic, "what was seen is shared")
	require.Nil(t, s.pools(nil))
}
