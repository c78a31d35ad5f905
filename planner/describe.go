package planner

import (
	"cmp"
	"slices"

	"github.com/wva-project/wva/fleet"
)

// describe copies what the analyzer, the objectives and people ask for. Of a model that is served under several names the busiest
// one stands for all: lengths of several would not be those of any.
func (m *model) describe(d *demand) {
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
	for _, row := range m.gateway { // it sees requests arrive, engines only when they begin
		if rate := row.Arrivals.Or(0); row.Dispersion.State == fleet.Present && rate >= busiest {
			d.bursts, busiest = row.Dispersion, rate
		}
	}
	m.withoutPrefill(d)
}
