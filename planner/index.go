package planner

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/wva-project/wva/analyzer"
	"github.com/wva-project/wva/fleet"
)

// index is the tables of a snapshot, joined once. Everything that is ranged over is a sorted slice.
type index struct {
	now          time.Time
	size         int // variants
	models       []*model
	duplicates       []claim    // variants whose target another one owns
	excluded        []*variant // variants that take no part in their model
	reserved        *reserved     // what variants that are scaled have; nil while those are planned themselves
	names        map[modelKey]*model
	inconsistent        []fleet.Conflict // facts that are not believed
	keepFor      time.Duration
	usages       map[modelKey][]*fleet.Usage // sorted by pod
	previous     map[fleet.VariantID]fleet.PreviousDecision
	findings     map[fleet.VariantID][]fleet.Finding
	missing      []fleet.Missing
	accelerators map[fleet.Accelerator]fleet.AcceleratorSpec
	profiles     fleet.Profiles
	pools        []fleet.Pool
	supply        supply // all that the variants may have of pools
}

// claim is a variant whose target belongs to another variant.
type claim struct {
	variant fleet.Variant
	owner   fleet.VariantID
}

// model is one model with everything that was observed of it. A model whose prefill and decode are served apart is two, one
// for each part of the work: both must carry all of its requests.
type model struct {
	id       fleet.ModelID
	part     fleet.Role
	parts    int  // of the model
	mixed    bool // some of its variants do all of the work, and some a part
	spec     fleet.Model
	priority int // the highest of its variants' service classes
	variants []*variant
	served   []served
	engine   []fleet.Load
	gateway  []fleet.Load
	collision     *model // an older model with the same name in the engines' metrics; nil where there is none
	sharedName   string // that name
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
	target   targetKey // of Target
	workload fleet.Workload
	excluded    *fleet.Reason  // why it takes no part in its model
	seen     bool           // the workload was observed
	pinned    *pinned         // the number, where it is not ours to decide
	bounds   string         // what narrows its range besides the definition, as the end of a sentence
	replicas []*fleet.Usage // what ready replicas report
	previous fleet.PreviousDecision
	profile  *fleet.Profile // what is known of its engine beforehand; nil where nothing is
	now      int            // replicas asked for
	ready    int            // ready and not on their way out
	starting   int            // not ready yet, and not overdue
	overdue  int            // not ready, past the time that this target usually needs
	startBlocked  bool           // further replicas would not start either
	scheduled   int            // replicas that hold accelerators, and are not on their way out
	mostPlaceable    int            // the most replicas that it could have beside what the others hold
	recentlyStarted    int            // replicas that were made so recently that the demand they were made for may be in the window still
	reports  reports
}

// reports counts a variant's ready replicas by what they report. A replica that has just become ready owes nothing yet.
type reports struct{ good, missing, stale, invalid, tooShort int }

// targetKey names a workload whatever the version of its kind: two ScaledObjects may spell it differently.
type targetKey struct{ namespace, group, kind, name string }

func keyOf(id fleet.TargetID) targetKey {
	group, _, grouped := strings.Cut(id.APIVersion, "/")
	if !grouped {
		group = "" // the core's "v1"
	}
	return targetKey{id.Namespace, group, id.Kind, id.Name}
}

// newIndex joins a snapshot; of advisory variants, beside what those have that are scaled.
func newIndex(s fleet.Snapshot, beside *reserved, p Policy) *index {
	x := &index{
		now:          s.Time,
		size:         len(s.Variants),
		reserved:        beside,
		previous:     make(map[fleet.VariantID]fleet.PreviousDecision, len(s.Previous)),
		accelerators: make(map[fleet.Accelerator]fleet.AcceleratorSpec, len(s.Accelerators)),
		profiles:     fleet.NewProfiles(s.Profiles),
		missing:      hiding(s.Missing),
		findings:     findings(s),
		keepFor:      p.KeepFor,
		pools:        s.Pools,
	}
	for _, row := range s.Previous {
		if beside == nil && !row.Decided.IsZero() {
			x.previous[row.Variant] = row
		}
	}
	for _, row := range s.Accelerators {
		x.accelerators[row.Name] = row
	}
	x.groupVariants(s)
	for _, m := range x.models {
		x.inconsistent = append(x.inconsistent, m.resolveMetadata()...)
	}
	x.attachLoads(s)
	x.attachWorkloads(s, p)
	x.includeInvalid()
	x.rank(s.Classes)
	x.countSupply()
	return x
}

// groupVariants sorts the variants into models, sets aside those that cannot be decided, and settles who owns a target:
// the oldest ScaledObject, then the first by name, whatever else is wrong with it.
func (x *index) groupVariants(s fleet.Snapshot) {
	variants := make([]*variant, len(s.Variants))
	for i := range s.Variants {
		variants[i] = &variant{Variant: s.Variants[i], target: keyOf(s.Variants[i].Target)}
	}
	slices.SortFunc(variants, func(a, b *variant) int { return a.ID.Compare(b.ID) })
	recall(variants, s)
	owners := make(map[targetKey]*variant, len(variants))
	for _, v := range variants {
		if owner := owners[v.target]; owner == nil || v.Created.Before(owner.Created) {
			owners[v.target] = v
		}
	}
	specs := make(map[fleet.ModelID]fleet.Model, len(s.Models))
	for _, row := range s.Models {
		specs[row.ID] = row
	}
	byPart := make(map[partKey]*model)
	for _, v := range variants {
		switch owner := owners[v.target]; {
		case owner != v && v.Target.Name != "":
			x.duplicates = append(x.duplicates, claim{v.Variant, owner.ID})
			continue
		case x.excludes(v):
			x.excluded = append(x.excluded, v)
			continue
		}
		key := partKey{v.Model, partOf(v.Role)}
		m := byPart[key]
		if m == nil {
			m = &model{id: key.id, part: key.part, spec: specs[v.Model]}
			byPart[key] = m
		}
		m.variants = append(m.variants, v)
	}
	x.models = slices.SortedFunc(maps.Values(byPart), func(a, b *model) int {
		return cmp.Or(a.id.Compare(b.id), cmp.Compare(a.part, b.part))
	})
	x.countParts()
}

// attachWorkloads gives each variant its workload, and its ready pods what they report.
func (x *index) attachWorkloads(s fleet.Snapshot, p Policy) {
	workloads := make(map[targetKey]*fleet.Workload, len(s.Workloads))
	for i := range s.Workloads {
		workloads[keyOf(s.Workloads[i].ID)] = &s.Workloads[i]
	}
	for v := range x.owners() {
		if row := workloads[v.target]; row != nil {
			v.workload, v.seen = *row, true
			if row.Stale != "" { // KEDA may have followed a number that stands
				v.workload.Replicas = max(row.Replicas, x.previous[v.ID].Replicas)
			}
			v.previous, v.profile = x.previous[v.ID], x.profileOf(v)
			if v.DryRun { // whoever scales it today is no foreign hand
				v.workload.ConflictingHPA = ""
			}
			v.join(x.usages[modelKey{v.Target.Namespace, v.EngineModel()}], x.now, p)
		}
	}
	for _, m := range x.models {
		for _, v := range m.variants {
			v.bound()
		}
	}
}

// owners yields the variants that own their target.
func (x *index) owners() iter.Seq[*variant] {
	return func(yield func(*variant) bool) {
		for _, m := range x.models {
			for _, v := range m.variants {
				if !yield(v) {
					return
				}
			}
		}
		for _, v := range x.excluded {
			if !yield(v) {
				return
			}
		}
	}
}

// join counts a variant's pods and reads what they report, of the usages under its model's name, which are sorted by pod.
func (v *variant) join(usages []*fleet.Usage, now time.Time, p Policy) {
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
	v.replicas = make([]*fleet.Usage, 0, len(pods))
	for i := range pods {
		pod := &pods[i]
		if pod.Terminating {
			continue
		}
		if now.Sub(pod.Created) < v.workload.Startup+p.MinReplicaLifetime {
			v.recentlyStarted++
		}
		switch {
		case pod.Ready:
			v.ready++
			v.read(usageOf(usages, pod.Name), now.Sub(pod.ReadyAt), p)
		case v.isOverdue(pod, now):
			v.overdue++
		}
		if pod.Ready || len(pod.Nodes) > 0 {
			v.scheduled++
		}
		starts.note(pod)
	}
	// Replicas that are asked for and have no pod yet are on their way too; the surge of a rolling update adds none. Those that
	// have got none for as long as a start takes do not start either: a quota may be full.
	podless := max(0, v.now-v.ready-starts.waiting)
	since := v.previous.Changed
	if podless > 0 && (v.workload.ReplicaFailure != "" || !since.IsZero() && now.Sub(since) > overdue*v.workload.Startup) {
		v.overdue += podless
	}
	v.starting = max(0, v.now-v.ready-v.overdue)
	v.startBlocked = v.overdue > 0 && (podless > 0 && v.workload.ReplicaFailure != "" || starts.fail(overdue*v.workload.Startup, v.overdue))
}

// usageOf returns the row of a pod; nil where there is none.
func usageOf(usages []*fleet.Usage, pod string) *fleet.Usage {
	at, found := slices.BinarySearchFunc(usages, pod, func(row *fleet.Usage, pod string) int { return cmp.Compare(row.Pod, pod) })
	if !found {
		return nil
	}
	return usages[at]
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
	v.replicas = append(v.replicas, row)
}
