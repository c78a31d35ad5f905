package demo

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/app"
	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/inventory"
)

// A server with the configuration of the demo, which queries by HTTP and has the real clock, sees
// each instant of a demo too.
func TestTheDemoDecidesAsTheServerDoes(t *testing.T) {
	t.Parallel()
	var options Options
	require.NoError(t, options.setDefaults())
	requests, err := options.load()
	require.NoError(t, err)
	scenario, err := newScenario(options)
	require.NoError(t, err)
	r, err := newRun(options, scenario, requests)
	require.NoError(t, err)
	defer func() { require.NoError(t, r.close()) }()
	require.NoError(t, r.startProduct(t.Context()))

	prometheus := httptest.NewServer(r.store.Handler())
	defer prometheus.Close()
	config := *scenario.config
	config.Prometheus.URL = prometheus.URL
	server, err := app.New(app.Options{
		Config: &config, Source: &app.Source{Tables: func() inventory.Tables { return *r.product.latest.Load() }},
	})
	require.NoError(t, err)

	plans, outside, numbers := 0, 0, map[fleet.VariantID]map[int]bool{}
	for second := range 10 * 60 {
		require.NoError(t, r.second(t.Context(), second))
		decided, err := server.Step(t.Context(), epoch.Add(time.Duration(second)*time.Second))
		require.NoError(t, err)
		inDemo, _ := r.product.board.Plan()
		inServer, _ := server.Board().Plan()
		require.Equal(t, encoded(t, inDemo), encoded(t, inServer), "second %d", second)
		if !decided {
			continue
		}
		plans++
		if second%int(interval.Seconds()) != int(lag.Seconds()) {
			outside++
		}
		for _, d := range inServer.Decisions {
			if numbers[d.Variant] == nil {
				numbers[d.Variant] = map[int]bool{}
			}
			numbers[d.Variant][d.Replicas] = true
		}
	}
	require.Equal(t, 40+outside, plans)
	require.Positive(t, outside, "requests waited for a model that was scaled to zero")
	require.Len(t, numbers, len(scenario.variants))
	for id, different := range numbers {
		require.Greater(t, len(different), 1, "%s: a number that never changes shows nothing", id)
	}
}

func encoded(t *testing.T, plan fleet.Plan) string {
	t.Helper()
	data, err := fleet.EncodePlan(plan)
	require.NoError(t, err)
	return string(data)
}
