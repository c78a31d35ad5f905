package planner

import (
	"cmp"
	"slices"

	"github.com/wva-project/wva/fleet"
)

// describeRequests copies the lengths, latencies and burstiness of requests for the analyzer, the
// objectives and the API. If a model is served under several names, the busiest one stands for all:
// a mixture of lengths would be that of no name.
func (m *model) describeRequests(d *demand) {
	rows := slices.SortedStableFunc(slices.Values(m.engine), func(a, b fleet.Load) int {
		return -cmp.Compare(a.PeakArrivals.Or(0), b.PeakArrivals.Or(0))
	})
	for _, row := range rows {
		if d.prompt.State != fleet.Present || d.output.State != fleet.Present {
			d.prompt, d.output = first(d.prompt, row.PromptTokens), first(d.output, row.OutputTokens)
			d.prompts, d.outputs, d.hits = row.PromptLengths, row.OutputLengths, row.PrefixHits
		}
		d.ttft, d.itl = first(d.ttft, row.TTFT), first(d.itl, row.ITL)
		d.bursts = first(d.bursts, row.Dispersion)
	}
	busiest := 0.0
	for _, row := range m.gateway { // it sees arrivals, engines only starts
		if rate := row.Arrivals.Or(0); row.Dispersion.State == fleet.Present && rate >= busiest {
			d.bursts, busiest = row.Dispersion, rate
		}
	}
	m.withoutPrefill(d)
}
