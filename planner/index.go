package planner

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/wva-project/wva/analyzer"
	"github.com/wva-project/wva/fleet"
)

// index is the tables of a snapshot, joined once. Everything that is ranged over is a sorted slice.
type index struct {
	now          time.Time
	models       []*model
	losers       []claim // variants whose target another one owns
	invalid      []*variant
	standing     map[fleet.VariantID]fleet.Standing
	missing      []fleet.Missing
	accelerators map[fleet.Accelerator]fleet.AcceleratorSpec
}

// claim is a variant whose target belongs to another variant.
type claim struct {
	variant fleet.Variant
	owner   fleet.VariantID
}

// model is one model with everything that was observed of it.
type model struct {
	id       fleet.ModelID
	spec     fleet.Model
	variants []*variant
	served   []served
	engine   []fleet.Load
	gateway  []fleet.Load
	twin     fleet.ModelID // another model with the same name in the engines' metrics; zero where there is none
}

// served is one name under which a model is served.
type served struct {
	name    string
	usages  []*fleet.Usage // of all pods that carry the name, those of pods that are gone included
	gateway fleet.Reading  // the rate of requests at the gateway
}

// variant is one variant with its workload and what its pods report.
type variant struct {
	fleet.Variant
	workload fleet.Workload
	seen     bool // the workload was observed
	replicas []analyzer.Replica
	now      int  // replicas asked for
	ready    int  // ready and not on their way out
	coming   int  // not ready yet, and not overdue
	overdue  int  // not ready, past the time that this target usually needs
	sterile  bool // further replicas would not start either
	young    int  // replicas that were made so recently that the demand they were made for may be in the window still
	reports  reports
}

// reports counts a variant's ready replicas by what they report. A replica that has just become ready owes nothing yet.
type reports struct{ good, missing, stale, invalid, tooShort int }

type podKey struct{ namespace, pod, model string }

type modelKey struct{ namespace, model string }

func newIndex(s fleet.Snapshot, p Policy) *index {
	x := &index{
		now:          s.Time,
		standing:     make(map[fleet.VariantID]fleet.Standing, len(s.Standing)),
		accelerators: make(map[fleet.Accelerator]fleet.AcceleratorSpec, len(s.Accelerators)),
		missing:      hiding(s.Missing),
	}
	for _, row := range s.Standing {
		x.standing[row.Variant] = row
	}
	for _, row := range s.Accelerators {
		x.accelerators[row.Name] = row
	}
	x.groupVariants(s)
	x.attachLoads(s)
	x.attachWorkloads(s, p)
	return x
}

// hiding returns what hides something, sorted.
func hiding(rows []fleet.Missing) []fleet.Missing {
	rows = slices.DeleteFunc(slices.Clone(rows), func(row fleet.Missing) bool { return row.Hides == "" })
	slices.SortFunc(rows, func(a, b fleet.Missing) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Reason, b.Reason))
	})
	return rows
}

// groupVariants sorts the variants into models, sets aside those that contradict themselves, and settles who owns a target:
// the oldest ScaledObject, then the first by name.
func (x *index) groupVariants(s fleet.Snapshot) {
	variants := slices.SortedFunc(slices.Values(s.Variants), func(a, b fleet.Variant) int { return a.ID.Compare(b.ID) })
	owners := make(map[fleet.TargetID]fleet.Variant, len(variants))
	for _, v := range variants {
		owner, claimed := owners[v.Target]
		if !claimed || v.Created.Before(owner.Created) {
			owners[v.Target] = v
		}
	}
	specs := make(map[fleet.ModelID]fleet.Model, len(s.Models))
	for _, row := range s.Models {
		specs[row.ID] = row
	}
	byID := make(map[fleet.ModelID]*model)
	for _, v := range variants {
		switch owner := owners[v.Target].ID; {
		case owner != v.ID:
			x.losers = append(x.losers, claim{v, owner})
			continue
		case fault(v) != "":
			x.invalid = append(x.invalid, &variant{Variant: v})
			continue
		}
		m := byID[v.Model]
		if m == nil {
			m = &model{id: v.Model, spec: specs[v.Model]}
			byID[v.Model] = m
		}
		m.variants = append(m.variants, &variant{Variant: v})
	}
	x.models = slices.SortedFunc(maps.Values(byID), func(a, b *model) int { return a.id.Compare(b.id) })
}

// attachLoads gives each model the loads and usages that carry its name in the engines' metrics. Of two rows of one source
// the later wins, reading by reading.
func (x *index) attachLoads(s fleet.Snapshot) {
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
	usages := make(map[modelKey][]*fleet.Usage, len(x.models))
	for i := range s.Usages {
		key := modelKey{s.Usages[i].Namespace, s.Usages[i].Model}
		usages[key] = append(usages[key], &s.Usages[i])
	}
	owners := map[modelKey]fleet.ModelID{}
	for _, m := range x.models {
		for _, name := range m.servedNames() {
			key := modelKey{m.id.Namespace, name}
			if owner, taken := owners[key]; taken {
				m.twin = owner
			}
			owners[key] = m.id
			served := served{name: name, usages: usages[key]}
			slices.SortFunc(served.usages, func(a, b *fleet.Usage) int { return cmp.Compare(a.Pod, b.Pod) })
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

// attachWorkloads gives each variant its workload, and its ready pods what they report.
func (x *index) attachWorkloads(s fleet.Snapshot, p Policy) {
	workloads := make(map[fleet.TargetID]fleet.Workload, len(s.Workloads))
	for _, row := range s.Workloads {
		workloads[row.ID] = row
	}
	usages := make(map[podKey]*fleet.Usage, len(s.Usages))
	for i := range s.Usages {
		row := &s.Usages[i]
		usages[podKey{row.Namespace, row.Pod, row.Model}] = row
	}
	variants := slices.Clone(x.invalid)
	for _, m := range x.models {
		variants = append(variants, m.variants...)
	}
	for _, v := range variants {
		if v.workload, v.seen = workloads[v.Target]; v.seen {
			v.join(usages, x.now, p)
		}
	}
}

// join counts a variant's pods and reads what they report.
func (v *variant) join(usages map[podKey]*fleet.Usage, now time.Time, p Policy) {
	v.now = v.workload.Replicas
	if v.workload.Startup <= 0 {
		v.workload.Startup = p.Startup
	}
	byName := func(a, b fleet.Pod) int { return cmp.Compare(a.Name, b.Name) }
	pods := v.workload.Pods
	if !slices.IsSortedFunc(pods, byName) {
		pods = slices.SortedFunc(slices.Values(pods), byName)
	}
	var starts starts
	v.replicas = make([]analyzer.Replica, 0, len(pods))
	for i := range pods {
		pod := &pods[i]
		if pod.Terminating {
			continue
		}
		if now.Sub(pod.Created) < v.workload.Startup+p.Settle {
			v.young++
		}
		switch {
		case pod.Ready:
			v.ready++
			v.read(usages[podKey{v.Target.Namespace, pod.Name, v.EngineModel()}], now.Sub(pod.ReadyAt), p)
		case now.Sub(pod.Created) > overdue*v.workload.Startup:
			v.overdue++
		}
		starts.note(pod)
	}
	// Replicas that are asked for and have no pod yet are on their way too; the surge of a rolling update adds none.
	v.coming = max(0, v.now-v.ready-v.overdue)
	v.sterile = v.overdue > 0 && starts.fail(overdue*v.workload.Startup, v.overdue)
}

// starts is how the replicas of a workload came up.
type starts struct {
	oldestWaiting, newestReady time.Time
	unschedulable              bool
}

func (s *starts) note(pod *fleet.Pod) {
	switch {
	case pod.Ready && pod.ReadyAt.After(s.newestReady):
		s.newestReady = pod.ReadyAt
	case !pod.Ready:
		s.unschedulable = s.unschedulable || pod.Waiting == "Unschedulable"
		if s.oldestWaiting.IsZero() || pod.Created.Before(s.oldestWaiting) {
			s.oldestWaiting = pod.Created
		}
	}
}

// fail reports whether further replicas would not start either: nothing has become ready since the first of those that wait
// was overdue, and they wait for room on a node, or are more than one. A single one may have a fault of its own.
func (s *starts) fail(patience time.Duration, waiting int) bool {
	return !s.newestReady.After(s.oldestWaiting.Add(patience)) && (s.unschedulable || waiting > 1)
}

// read files what one ready replica reports; nil is nothing.
func (v *variant) read(row *fleet.Usage, age time.Duration, p Policy) {
	owes := age >= p.MetricsGrace
	if row == nil {
		row = &fleet.Usage{}
	}
	states := []fleet.ReadingState{row.Running.State, row.Waiting.State, row.KV.State}
	switch {
	case slices.Contains(states, fleet.Absent):
		if owes {
			v.reports.missing++
		}
		return
	case slices.Contains(states, fleet.NaN):
		v.reports.invalid++
		return
	case slices.Contains(states, fleet.Stale):
		v.reports.stale++
		return
	case owes && row.FirstTokens.State == fleet.Absent && row.Scrapes > 0 && row.Scrapes < analyzer.MinScrapes:
		v.reports.tooShort++
	}
	v.reports.good++
	v.replicas = append(v.replicas, analyzer.Replica{
		Running: row.Running, Waiting: row.Waiting, KV: row.KV, KVTokens: row.KVTokens, FirstTokens: row.FirstTokens,
		WaitingGrowth: row.WaitingGrowth, ITL: row.ITL, ITLFloor: row.ITLFloor, PeakRate: row.PeakRate,
		PeakThroughput: row.PeakThroughput, MeanRate: row.MeanRate, MeanKV: row.MeanKV, MeanITL: row.MeanITL, Scrapes: row.Scrapes,
	})
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

// later returns the newer of two loads of one source, filled up with what only the older has.
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
		{&b.TTFT, a.TTFT},
		{&b.ITL, a.ITL},
	} {
		if pair.newer.State == fleet.Absent {
			*pair.newer = pair.older
		}
	}
	b.PeakCovered = b.PeakCovered || a.PeakCovered
	b.IdleCovered = max(b.IdleCovered, a.IdleCovered)
	if a.LastActive.After(b.LastActive) {
		b.LastActive = a.LastActive
	}
	return b
}
