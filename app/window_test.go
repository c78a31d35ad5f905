package app

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/config"
	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/inventory"
)

func TestScaleDownWindowIsTwiceTheLongestStartup(t *testing.T) {
	const second = time.Second
	for name, c := range map[string]struct {
		peak     time.Duration
		startups []time.Duration
		want     time.Duration
	}{
		"no target":                         {5 * time.Minute, nil, 5 * time.Minute},
		"quick ones":                        {5 * time.Minute, []time.Duration{60 * second, 150 * second}, 5 * time.Minute},
		"a slow one":                        {5 * time.Minute, []time.Duration{60 * second, 200 * second}, 7 * time.Minute},
		"a little slower":                   {5 * time.Minute, []time.Duration{205 * second}, 7 * time.Minute},
		"a very slow one":                   {5 * time.Minute, []time.Duration{45 * time.Minute}, 30 * time.Minute},
		"not known":                         {5 * time.Minute, []time.Duration{0}, 5 * time.Minute},
		"a longer setting":                  {time.Hour, []time.Duration{20 * time.Minute}, time.Hour},
		"a setting of seconds, as in tests": {10 * second, []time.Duration{6 * second}, 12 * second},
	} {
		t.Run(name, func(t *testing.T) {
			settings, err := config.Default()
			require.NoError(t, err)
			settings.Prometheus.Windows.Peak = c.peak
			var workloads []fleet.Workload
			for _, startup := range c.startups {
				workloads = append(workloads, fleet.Workload{Startup: startup})
			}
			require.Equal(t, c.want, windowsOf(settings, inventory.Tables{Workloads: workloads}).ScaleDown)
		})
	}
}

func TestShortScaleDownWindowFollowsTheLongestStartup(t *testing.T) {
	const second = time.Second
	for startup, want := range map[time.Duration]time.Duration{
		10 * second: 2 * time.Minute, 80 * second: 2 * time.Minute, 100 * second: 150 * second,
		10 * time.Minute: 15 * time.Minute, time.Hour: 30 * time.Minute,
	} {
		settings, err := config.Default()
		require.NoError(t, err)
		declared := inventory.Tables{Workloads: []fleet.Workload{{Startup: second}, {Startup: startup}}}
		require.Equal(t, want, windowsOf(settings, declared).ShortScaleDown, startup)
		settings.Prometheus.Windows.ShortPeak = settings.Prometheus.Windows.Peak
		require.Zero(t, windowsOf(settings, declared).ShortScaleDown, "switched off")
		settings.Prometheus.Windows.ShortPeak, settings.ErrorBudget.Enabled = 2*time.Minute, false
		require.Zero(t, windowsOf(settings, declared).ShortScaleDown, "without an error budget nothing tells that a model meets its SLO")
	}
}

func TestIdleWindowCoversTheLongestRetentionOfAVariant(t *testing.T) {
	settings, err := config.Default()
	require.NoError(t, err)
	for after, want := range map[time.Duration]time.Duration{
		0: 10 * time.Minute, time.Minute: 10 * time.Minute, time.Hour: time.Hour, 1e6 * time.Hour: time.Hour,
	} {
		declared := inventory.Tables{Variants: []fleet.Variant{{}, {ScaleToZeroAfter: after}}}
		require.Equal(t, want, windowsOf(settings, declared).Idle, after)
	}
}
