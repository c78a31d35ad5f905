package analyzer_test

import (
	"fmt"

	"github.com/wva-project/wva/analyzer"
	"github.com/wva-project/wva/fleet"
)

// Two replicas serve 5 req/s each with 35 % of their KV cache. The target is 70 %, so that one
// replica can serve the demand of 10 req/s.
func ExampleAnalyze() {
	replica := &fleet.Usage{
		Running: fleet.Observed(50), Waiting: fleet.Observed(0),
		KV: fleet.Observed(0.35), KVTokens: fleet.Observed(200_000),
		FirstTokens: fleet.Observed(5), MeanRate: fleet.Observed(5), PeakRate: fleet.Observed(9), Scrapes: analyzer.MinScrapes,
	}
	m := analyzer.Model{
		Rate: fleet.Observed(10), InFlight: 100,
		Variants: []analyzer.Variant{{Replicas: []*fleet.Usage{replica, replica}}},
	}
	c := analyzer.Analyze(m, analyzer.Options{})[0]
	fmt.Printf("%.1f of the demand per replica, limited by %s, from %s; load %.1f\n",
		c.Share.Value, c.LimitedBy, c.Basis, c.Load.Value)
	// Output: 1.0 of the demand per replica, limited by KV cache, from its own replicas; load 0.5
}
