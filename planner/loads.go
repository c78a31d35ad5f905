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
	engine, gateway := make(map[modelKey]*fleet.Load, len(x.models)), make(map[modelKey]*fleet.Load, len(x.models))
	for i := range s.Loads {
		row, table := &s.Loads[i], engine
		if row.Source == fleet.SourceGateway {
			table = gateway
		}
		key := modelKey{row.Namespace, row.Model}
		if other, found := table[key]; found {
			row = new(later(*other, *row))
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
				m.engine = append(m.engine, *row)
			}
			if row, found := gateway[key]; found {
				m.gateway = append(m.gateway, *row)
				served.gateways = append(served.gateways, *row)
			}
			m.served = append(m.served, served)
		}
	}
	x.attachAdapters(gateway)
}

// attachAdapters adds the gateway's rows of adapters to the loads of their models. An adapter's
// name is a claim: the name of a model is that model's alone, and of several models with one
// adapter the oldest has it.
func (x *view) attachAdapters(gateway map[modelKey]*fleet.Load) {
	hasAdapters := func(v *variant) bool { return len(v.Adapters) > 0 }
	if !slices.ContainsFunc(x.models, func(m *model) bool { return slices.ContainsFunc(m.variants, hasAdapters) }) {
		return
	}
	adapters := make(map[modelKey]bool)
	for _, m := range slices.SortedFunc(slices.Values(x.models), olderModel) {
		attached := make(map[string]bool)
		for _, v := range m.variants {
			var shared []string
			var other fleet.ModelID // of the first of them
			for _, name := range v.Adapters {
				key := modelKey{m.id.Namespace, name}
				switch owner := x.named(key); {
				case owner != nil && owner.id != m.id:
					if shared = append(shared, name); len(shared) == 1 {
						other = owner.id
					}
					continue
				case owner != nil && !adapters[key], attached[name]:
					continue // a name of the model itself, or of an adapter of two variants
				}
				x.names[key], adapters[key], attached[name] = m, true, true
				if row, found := gateway[key]; found {
					m.addAdapter(v.EngineModel(), *row)
				}
			}
			if len(shared) > 0 {
				x.addFinding(v.ID, sharedAdapters(shared, other))
			}
		}
	}
}

// addAdapter adds a gateway's row of an adapter on the model that engines serve under a name.
func (m *model) addAdapter(name string, row fleet.Load) {
	m.gateway = append(m.gateway, row)
	at := slices.IndexFunc(m.served, func(s served) bool { return s.name == name })
	m.served[at].gateways = append(m.served[at].gateways, row)
}

// named returns the model that has a name in the engines' metrics already; nil if there is none.
func (x *view) named(key modelKey) *model {
	if owner := x.names[key]; owner != nil || x.reserved == nil {
		return owner
	}
	return x.reserved.names[key]
}

// usagesByModel returns the rows of each model's name, sorted by pod, as they mostly are already.
func usagesByModel(rows []fleet.Usage, models int) map[modelKey][]*fleet.Usage {
	group := make(map[modelKey]int, models) // the index in both:
	keys, groups := make([]modelKey, 0, models), make([][]*fleet.Usage, 0, models)
	unsorted, at := make(map[int]bool), -1
	for i := range rows {
		row := &rows[i]
		if key := (modelKey{row.Namespace, row.Model}); at < 0 || keys[at] != key {
			var known bool
			if at, known = group[key]; !known {
				at = len(groups)
				group[key], keys, groups = at, append(keys, key), append(groups, nil)
			}
		}
		own := groups[at]
		if last := len(own) - 1; last >= 0 && comparePods(row, own[last]) < 0 {
			unsorted[at] = true
		}
		groups[at] = append(own, row)
	}
	usages := make(map[modelKey][]*fleet.Usage, len(groups))
	for i, own := range groups {
		if unsorted[i] {
			slices.SortFunc(own, comparePods)
		}
		usages[keys[i]] = own
	}
	return usages
}

// comparePods orders usages by pod; of two rows of one pod, the latest and then the higher one is
// first.
func comparePods(a, b *fleet.Usage) int {
	return cmp.Or(cmp.Compare(a.Pod, b.Pod), b.Time.Compare(a.Time), cmp.Compare(b.FirstTokens.Or(0), a.FirstTokens.Or(0)),
		cmp.Compare(b.Running.Or(0), a.Running.Or(0)), cmp.Compare(b.Waiting.Or(0), a.Waiting.Or(0)))
}

// peakRows returns the loads of engines that tell the highest demand of the peak window. A name
// that nothing has served throughout it has none; its row stays for the longer windows.
func (m *model) peakRows() []fleet.Load {
	return slices.DeleteFunc(slices.Clone(m.engine), func(row fleet.Load) bool {
		return row.PeakArrivals.State == fleet.Absent && row.PeakInFlight.State == fleet.Absent && m.isUnserved(row.Model)
	})
}

// isUnserved reports whether a name has neither replicas nor pods that report. A workload that is
// not seen may have both.
func (m *model) isUnserved(name string) bool {
	for _, v := range m.variants {
		if v.EngineModel() == name && (!v.seen || v.now > 0 || len(v.workload.Pods) > 0) {
			return false
		}
	}
	return !slices.ContainsFunc(m.served, func(s served) bool {
		return s.name == name && slices.ContainsFunc(s.usages, func(row *fleet.Usage) bool {
			return reportsGauges(row) || row.FirstTokens.State != fleet.Absent
		})
	})
}

// findStrangers finds the pods that serve a model and belong to no workload of a variant: those of
// another cluster, or pods that are not seen as their replicas. A pod that ended a short while ago
// still has its last gauges, and an engine that sleeps in a launcher without a replica serves
// nothing.
func (x *view) findStrangers(workloads []fleet.Workload) {
	var own map[podKey]bool // nil until needed: the pods of most models are all its replicas
	for _, m := range x.models {
		for _, name := range m.served {
			for _, row := range m.unread(name.usages) {
				if row.Running.State != fleet.Present || row.Missed || row.Asleep {
					continue
				}
				if own == nil {
					own = podsOf(workloads)
				}
				if !own[podKey{row.Namespace, row.Pod}] {
					m.strangers = append(m.strangers, row.Pod)
				}
			}
		}
	}
}

// unread returns the rows that are not those of the model's ready replicas. Both are sorted by pod.
func (m *model) unread(rows []*fleet.Usage) (unread []*fleet.Usage) {
	engines := make([][]*fleet.Usage, len(m.variants))
	for i, v := range m.variants {
		engines[i] = v.engines
	}
	for _, row := range rows {
		at := slices.IndexFunc(engines, func(left []*fleet.Usage) bool { return len(left) > 0 && left[0] == row })
		if at < 0 {
			unread = append(unread, row)
			continue
		}
		engines[at] = engines[at][1:]
	}
	return unread
}

type podKey struct{ namespace, pod string }

// podsOf returns the pods of all workloads, and those that they had a short while ago.
func podsOf(workloads []fleet.Workload) map[podKey]bool {
	pods := make(map[podKey]bool, len(workloads))
	for i := range workloads {
		w := &workloads[i]
		for _, name := range w.Ended {
			pods[podKey{w.ID.Namespace, name}] = true
		}
		for j := range w.Pods {
			for _, name := range w.Pods[j].Names() {
				pods[podKey{w.ID.Namespace, name}] = true
			}
		}
	}
	return pods
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

// olderLoad orders two loads by time, those of one time by how much they are.
func olderLoad(a, b fleet.Load) int {
	return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Arrivals.Or(0), b.Arrivals.Or(0)), cmp.Compare(a.Queued.Or(0), b.Queued.Or(0)),
		cmp.Compare(a.PeakArrivals.Or(0), b.PeakArrivals.Or(0)), cmp.Compare(a.PeakInFlight.Or(0), b.PeakInFlight.Or(0)),
		cmp.Compare(len(a.Latencies.Parts), len(b.Latencies.Parts)))
}

// later returns the newer of two loads of one source. Readings that it lacks are taken from the
// older one.
func later(a, b fleet.Load) fleet.Load {
	if olderLoad(b, a) < 0 {
		a, b = b, a
	}
	if b.PeakArrivals.State == fleet.Absent {
		b.ShortPeak = a.ShortPeak // of the same row
	}
	for _, pair := range []struct {
		newer *fleet.Reading
		older fleet.Reading
	}{
		{&b.Arrivals, a.Arrivals},
		{&b.Queued, a.Queued},
		{&b.PeakArrivals, a.PeakArrivals},
		{&b.PeakInFlight, a.PeakInFlight},
		{&b.PeakError, a.PeakError},
		{&b.RecentArrivals, a.RecentArrivals},
		{&b.RecentError, a.RecentError},
		{&b.PromptTokens, a.PromptTokens},
		{&b.OutputTokens, a.OutputTokens},
		{&b.PastPromptTokens, a.PastPromptTokens},
		{&b.PastOutputTokens, a.PastOutputTokens},
		{&b.StepTokens, a.StepTokens},
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
	if len(b.Latencies.Parts) == 0 {
		b.Latencies = a.Latencies
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
