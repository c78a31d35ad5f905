package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/config"
)

func TestShortPeakWindowIsWarnedAbout(t *testing.T) {
	for peak, want := range map[string]int{"1m": 1, "4m59s": 1, "5m": 0, "20m": 0} {
		c, err := config.Load(given(t, "--config", complete(t), "--prometheus-windows-peak", peak))
		require.NoError(t, err)
		warnings := c.Warnings()
		require.Len(t, warnings, want)
		if want > 0 {
			require.Contains(t, warnings[0], "prometheus.windows.peak of "+peak+" is short")
			require.Contains(t, warnings[0], "set it to 5m or more")
		}
	}
}
