package planner

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/wva-project/wva/fleet"
)

// attachLoads gives each model the loads and usages with its name in the engines' metrics. Of two
// rows of one source the later one is used, reading by reading. A name that two models have belongs
// to the older model.
func (x *view) attachLoads(s fleet.Snapshot) {
	engine, gateway := make(map[modelKey]fleet.Load, len(x.models)), make(map[modelKey]fleet.Load, len(x.models))
	for _, row := range s.Loads {
		table := engine
		if row.Source == fleet.SourceGateway {
			table = gateway
		}
		key := modelKey{row.Namespace, row.Model}
		if other, found := table[key]; found {
			row = later(other, row)
		}
		table[key] = row
	}
	x.usages = usagesByModel(s.Usages, len(x.models))
	x.names = make(map[modelKey]*model, len(x.models))
	for _, m := range slices.SortedFunc(slices.Values(x.models), olderModel) {
		for _, name := range m.servedNames() {
			key := modelKey{m.id.Namespace, name}
			if owner := x.named(key); owner != nil && owner.id != m.id {
				m.collision, m.sharedName = owner, name
			} else if owner == nil {
				x.names[key] = m
			}
			served := served{name: name, usages: x.usages[key]}
			if row, found := engine[key]; found {
				m.engine = append(m.engine, row)
			}
			if row, found := gateway[key]; found {
				m.gateway = append(m.gateway, row)
				served.gateway = row.Arrivals
			}
			m.served = append(m.served, served)
		}
	}
}

// named returns the model that has a name in the engines' metrics already; nil if there is none.
func (x *view) named(key modelKey) *model {
	if owner := x.names[key]; owner != nil || x.reserved == nil {
		return owner
	}
	return x.reserved.names[key]
}

// usagesByModel returns the rows of each model's name, sorted by pod.
func usagesByModel(rows []fleet.Usage, models int) map[modelKey][]*fleet.Usage {
	usages, keys := make(map[modelKey][]*fleet.Usage, models), make([]modelKey, 0, models)
	for i := range rows {
		key := modelKey{rows[i].Namespace, rows[i].Model}
		own, known := usages[key]
		if !known {
			keys = append(keys, key)
		}
		usages[key] = append(own, &rows[i])
	}
	for _, key := range keys {
		slices.SortFunc(usages[key], func(a, b *fleet.Usage) int { return cmp.Compare(a.Pod, b.Pod) })
	}
	return usages
}

// olderModel orders models by their oldest variant, then by name.
func olderModel(a, b *model) int {
	return cmp.Or(a.created().Compare(b.created()), a.id.Compare(b.id))
}

// created returns when the model's oldest ScaledObject was made.
func (m *model) created() time.Time {
	oldest := m.variants[0].Created
	for _, v := range m.variants[1:] {
		if v.Created.Before(oldest) {
			oldest = v.Created
		}
	}
	return oldest
}

// servedNames returns the names under which the model's variants report, each once, sorted.
func (m *model) servedNames() []string {
	var names []string
	for _, v := range m.variants {
		names = append(names, v.EngineModel())
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// later returns the newer of two loads of one source. Readings that it lacks are taken from the
// older one.
func later(a, b fleet.Load) fleet.Load {
	if a.Time.After(b.Time) {
		a, b = b, a
	}
	for _, pair := range []struct {
		newer *fleet.Reading
		older fleet.Reading
	}{
		{&b.Arrivals, a.Arrivals},
		{&b.Queued, a.Queued},
		{&b.PeakArrivals, a.PeakArrivals},
		{&b.PeakInFlight, a.PeakInFlight},
		{&b.Trend, a.Trend},
		{&b.PromptTokens, a.PromptTokens},
		{&b.OutputTokens, a.OutputTokens},
		{&b.PrefixHits, a.PrefixHits},
		{&b.Dispersion, a.Dispersion},
		{&b.TTFT, a.TTFT},
		{&b.ITL, a.ITL},
	} {
		if pair.newer.State == fleet.Absent {
			*pair.newer = pair.older
		}
	}
	if len(b.PromptLengths) == 0 {
		b.PromptLengths = a.PromptLengths
	}
	if len(b.OutputLengths) == 0 {
		b.OutputLengths = a.OutputLengths
	}
	b.PeakCovered = b.PeakCovered || a.PeakCovered
	b.IdleCovered = max(b.IdleCovered, a.IdleCovered)
	if a.LastActive.After(b.LastActive) {
		b.LastActive = a.LastActive
	}
	return b
}

// hiding returns the missing data that hide a source of load, sorted.
func hiding(rows []fleet.Missing) []fleet.Missing {
	rows = slices.DeleteFunc(slices.Clone(rows), func(row fleet.Missing) bool { return row.Hides == "" })
	slices.SortFunc(rows, func(a, b fleet.Missing) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Reason, b.Reason))
	})
	return rows
}

// fewNames returns the first two of the names as text, and the number of the others.
func fewNames(names []string) string {
	const most = 2
	if len(names) <= most {
		return strings.Join(names, " or ")
	}
	return fmt.Sprintf("%s or %d more", strings.Join(names[:most], ", "), len(names)-most)
}
