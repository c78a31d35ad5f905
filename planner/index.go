package planner

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/wva-project/wva/analyzer"
	"github.com/wva-project/wva/fleet"
)

// index is the view of a snapshot: its tables, joined once. All iteration is over sorted slices.
type index struct {
	now          time.Time
	size         int // variants
	models       []*model
	duplicates   []claim    // duplicate claims: another variant owns the target
	excluded     []*variant // variants that are not part of their model
	reserved     *reserved  // reserved by scaled variants; nil while those are planned
	names        map[modelKey]*model
	inconsistent []fleet.Conflict // conflicting definitions that were resolved
	keepFor      time.Duration
	usages       map[modelKey][]*fleet.Usage // sorted by pod
	previous     map[fleet.VariantID]fleet.PreviousDecision
	findings     map[fleet.VariantID][]fleet.Finding
	missing      []fleet.Missing
	accelerators map[fleet.Accelerator]fleet.AcceleratorSpec
	profiles     fleet.Profiles
	pools        []fleet.Pool
	supply       supply // accelerators that the variants may use
}

// claim is a variant whose target belongs to another variant.
type claim struct {
	variant fleet.Variant
	owner   fleet.VariantID
}

// model is one model with all observations of it. A model with disaggregated prefill and decode is
// two, one for each role: both must serve all of its requests.
type model struct {
	id       fleet.ModelID
	part     fleet.Role
	parts    int  // of the model
	mixed    bool // some of its variants have a role, some have none
	spec     fleet.Model
	priority int // the highest of its variants' service classes
	variants []*variant
	served   []served
	engine   []fleet.Load
	gateway  []fleet.Load
	// an older model with the same name in the engines' metrics; nil if there is none
	collision  *model
	sharedName string // the name that both have
}

// mayGoToZero reports whether the owners of all variants and the administrator allow zero.
func (m *model) mayGoToZero() bool {
	return !m.spec.ScaleToZeroOff && !slices.ContainsFunc(m.variants, func(v *variant) bool { return v.Range.Floor() > 0 })
}

// served is one name under which a model is served.
type served struct {
	name    string
	usages  []*fleet.Usage // of all pods with that name, deleted ones included
	gateway fleet.Reading  // the rate of requests at the gateway
}

// variant is one variant with its workload and the metrics of its pods.
type variant struct {
	fleet.Variant
	target          fleet.TargetID // Target, unversioned
	workload        fleet.Workload
	excluded        *fleet.Reason  // why it is not part of its model; nil if it is
	seen            bool           // the workload was observed
	pinned          *pinned        // the number that others set; nil if there is none
	bounds          string         // annotations that narrow its range, as the end of a sentence
	replicas        []*fleet.Usage // metrics of ready replicas
	previous        fleet.PreviousDecision
	profile         *fleet.Profile // profile of its engine; nil if there is none
	now             int            // current replicas
	ready           int            // ready and not terminating
	starting        int            // not ready yet, and not overdue
	overdue         int            // not ready after twice the usual start-up time
	startBlocked    bool           // further replicas would not start either
	scheduled       int            // with allocated accelerators and not terminating
	mostPlaceable   int            // most replicas that fit beside those of others
	recentlyStarted int            // replicas whose demand may still be in the window
	reports         reports
}

// reports counts a variant's ready replicas by their metrics. A replica that has just become ready
// may have none yet.
type reports struct{ good, missing, stale, invalid, tooShort int }

// newIndex joins a snapshot. For variants in dry run, beside lists the targets, models and names of
// the scaled variants; for those it is nil.
func newIndex(s fleet.Snapshot, beside *reserved, p Policy) *index {
	x := &index{
		now:          s.Time,
		size:         len(s.Variants),
		reserved:     beside,
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

// groupVariants groups the variants by model, separates those that cannot be decided, and selects
// the owner of each target: the oldest ScaledObject, then the first by name, even if it is invalid.
func (x *index) groupVariants(s fleet.Snapshot) {
	variants := make([]*variant, len(s.Variants))
	for i := range s.Variants {
		variants[i] = &variant{Variant: s.Variants[i], target: s.Variants[i].Target.Unversioned()}
	}
	slices.SortFunc(variants, func(a, b *variant) int { return a.ID.Compare(b.ID) })
	rememberAccelerators(variants, s)
	owners := make(map[fleet.TargetID]*variant, len(variants))
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

// attachWorkloads gives each variant its workload, and its ready pods their metrics.
func (x *index) attachWorkloads(s fleet.Snapshot, p Policy) {
	workloads := make(map[fleet.TargetID]*fleet.Workload, len(s.Workloads))
	for i := range s.Workloads {
		workloads[s.Workloads[i].ID.Unversioned()] = &s.Workloads[i]
	}
	for v := range x.owners() {
		if row := workloads[v.target]; row != nil {
			v.workload, v.seen = *row, true
			if row.Stale != "" { // KEDA may have applied the previous decision
				v.workload.Replicas = max(row.Replicas, x.previous[v.ID].Replicas)
			}
			v.previous, v.profile = x.previous[v.ID], x.profileOf(v)
			if v.DryRun { // the present autoscaler of a dry run is no conflict
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

// join counts a variant's pods and reads their metrics from the usages of its model's name, which
// are sorted by pod.
func (v *variant) join(usages []*fleet.Usage, now time.Time, p Policy) {
	v.now = max(0, v.workload.Replicas)
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
	// Current replicas without a pod count as starting too; the surge pods of a rolling update add
	// none. If they have had no pod for longer than a start takes, they count as overdue: a quota
	// may be exhausted.
	podless := max(0, v.now-v.ready-starts.waiting)
	since := v.previous.Changed
	if podless > 0 && (v.workload.ReplicaFailure != "" || !since.IsZero() && now.Sub(since) > overdue*v.workload.Startup) {
		v.overdue += podless
	}
	v.starting = max(0, v.now-v.ready-v.overdue)
	v.startBlocked = v.overdue > 0 && (podless > 0 && v.workload.ReplicaFailure != "" || starts.fail(overdue*v.workload.Startup, v.overdue))
}

// usageOf returns the row of a pod; nil if there is none.
func usageOf(usages []*fleet.Usage, pod string) *fleet.Usage {
	at, found := slices.BinarySearchFunc(usages, pod, func(row *fleet.Usage, pod string) int { return cmp.Compare(row.Pod, pod) })
	if !found {
		return nil
	}
	return usages[at]
}

// read counts the metrics of one ready replica; a nil row has none.
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
