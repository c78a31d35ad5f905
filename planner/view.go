package planner

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/wva-project/wva/fleet"
)

// view is a snapshot whose tables are joined once. Contradictions are resolved into values of their
// own: no row of the snapshot is changed. All iteration is over sorted slices.
type view struct {
	now          time.Time
	policy       Policy
	size         int // variants
	rules        []rule
	models       []*model
	byTarget     map[fleet.TargetID]*variant
	duplicates   []claim    // variants whose target belongs to another one
	excluded     []*variant // variants that are not part of their model
	reserved     *reserved  // reserved by scaled variants; nil while those are planned
	names        map[modelKey]*model
	inconsistent []fleet.Conflict // contradicting definitions that were resolved
	usages       map[modelKey][]*fleet.Usage
	previous     map[fleet.VariantID]*fleet.PreviousDecision // copies of the rows
	findings     map[fleet.VariantID][]fleet.Finding
	missing      []fleet.Missing // that hide a source of load
	accelerators map[fleet.Accelerator]fleet.AcceleratorSpec
	profiles     fleet.Profiles
	gpus         freeGPUs
	quotas       []*quota
	scratch      struct { // of countPods
		pods   []*fleet.Pod
		ready  []replicaReport
		name   modelKey
		usages []*fleet.Usage // with that name
	}
}

// claim is a variant whose target belongs to another variant.
type claim struct {
	variant *fleet.Variant
	owner   fleet.VariantID
}

// model is one model with all observations of it. A model with disaggregated prefill and decode is
// two, one for each role: both must serve all of its requests.
type model struct {
	id        fleet.ModelID
	part      fleet.Role
	parts     int  // of the model
	mixed     bool // some of its variants have a role, some have none
	spec      fleet.Model
	priority  int // the highest granted of its variants
	variants  []*variant
	served    []served
	engine    []fleet.Load
	gateway   []fleet.Load
	strangers []string // pods that serve the model and belong to no workload of a variant
	allStuck  bool     // every replica that reports is stuck
	// every variant of the model, of all roles, may scale to zero
	allowsZero bool
	retention  time.Duration // how long it has to be idle before it may scale to zero
	// an older model with the same name in the engines' metrics; nil if there is none
	collision  *model
	sharedName string // the name that both have
}

// served is one name under which a model is served.
type served struct {
	name     string
	usages   []*fleet.Usage // of all pods with that name, deleted ones included
	gateways []fleet.Load   // of its requests at gateways, those of adapters included
	counted  bool           // they count its requests, and miss none that engines serve
}

// modelKey identifies a model in the engines' metrics.
type modelKey struct{ namespace, model string }

// newView joins a snapshot. For variants in dry run, beside lists the targets, models and names of
// the scaled variants; for those it is nil.
func newView(s fleet.Snapshot, beside *reserved, p Policy) *view {
	x := &view{
		now: s.Time, policy: p, size: len(s.Variants), reserved: beside, rules: rules(),
		previous:     make(map[fleet.VariantID]*fleet.PreviousDecision, len(s.Previous)),
		accelerators: make(map[fleet.Accelerator]fleet.AcceleratorSpec, len(s.Accelerators)),
		profiles:     fleet.NewProfiles(s.Profiles),
		missing:      hiding(s.Missing),
		findings:     findings(s),
	}
	if beside == nil {
		previous := slices.Clone(s.Previous)
		for i := range previous {
			if row := &previous[i]; !row.Decided.IsZero() {
				row.Replicas = min(row.Replicas, mostReplicas)
				x.previous[row.Variant] = row
			}
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
	x.attachWorkloads(s)
	x.findStrangers(s.Workloads)
	x.includeInvalid()
	x.rank(s.Classes)
	x.findConsent()
	x.gpus = newGPUs(s.Pools, x.owners(), x.now)
	x.findFullTypes()
	x.attachQuotas(s.Quotas, s.Limits)
	return x
}

// groupVariants groups the variants by model, separates those that cannot be decided, and selects
// the owner of each target: the oldest ScaledObject, then the first by name, even if it is invalid.
func (x *view) groupVariants(s fleet.Snapshot) {
	rows, variants := make([]*fleet.Variant, len(s.Variants)), make([]*variant, len(s.Variants))
	for i := range s.Variants {
		rows[i] = &s.Variants[i]
	}
	slices.SortFunc(rows, func(a, b *fleet.Variant) int { return a.ID.Compare(b.ID) })
	all, unseen := make([]variant, len(rows)), &fleet.Workload{} // in order, as they are read
	for i, row := range rows {
		all[i] = variant{Variant: row, workload: unseen, target: row.Target.Unversioned(), accelerator: row.Accelerator, price: row.Cost, objective: row.Objective}
		variants[i] = &all[i]
		x.limitReplicas(variants[i])
	}
	rememberAccelerators(variants, s)
	owners := make(map[fleet.TargetID]*variant, len(variants))
	x.byTarget = owners
	for _, v := range variants {
		if owner := owners[v.target]; owner == nil || v.Created.Before(owner.Created) {
			owners[v.target] = v
		}
	}
	specs := make(map[fleet.ModelID]int, len(s.Models)) // the index of its row
	for i := range s.Models {
		specs[s.Models[i].ID] = i
	}
	byPart := make(map[partKey]*model, len(s.Models))
	unique := len(owners) == len(variants) // nearly always
	for _, v := range variants {
		owner := v
		if !unique {
			owner = owners[v.target]
		}
		switch {
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
			m = &model{id: key.id, part: key.part}
			if i, known := specs[v.Model]; known {
				m.spec = s.Models[i]
			}
			byPart[key] = m
		}
		m.variants = append(m.variants, v)
	}
	x.models = slices.SortedFunc(maps.Values(byPart), func(a, b *model) int {
		return cmp.Or(a.id.Compare(b.id), cmp.Compare(a.part, b.part))
	})
	for _, m := range x.models {
		x.excluded = append(x.excluded, m.excludeNewest()...)
	}
	x.countParts()
}

// mostVariants is the most variants of one model that are decided together: the work of a mix grows
// faster than their number.
const mostVariants = 64

// excludeNewest removes the variants of a model beyond the most that are decided together, and
// returns them. The oldest stay, of several the first by name.
func (m *model) excludeNewest() []*variant {
	if len(m.variants) <= mostVariants {
		return nil
	}
	slices.SortStableFunc(m.variants, func(a, b *variant) int { return a.Created.Compare(b.Created) })
	why := reason(fleet.CodeInvalidDefinition, "the model has more than %d variants, and this is not one of the oldest", mostVariants).
		With(fleet.DetailRemedy, "delete other variants of the model, or serve it under several models")
	newest := slices.Clone(m.variants[mostVariants:])
	m.variants = slices.Clip(m.variants[:mostVariants])
	for _, v := range newest {
		v.excluded = &why
	}
	slices.SortFunc(m.variants, func(a, b *variant) int { return a.ID.Compare(b.ID) })
	return newest
}

// rememberAccelerators gives variants whose accelerator type is known from nodes only the one on
// which they last ran, until a ready replica shows another. Without replicas there is no node, and
// the name should not come and go with them.
func rememberAccelerators(variants []*variant, s fleet.Snapshot) {
	if !slices.ContainsFunc(variants, func(v *variant) bool { return v.accelerator == "" }) {
		return
	}
	last := make(map[fleet.VariantID]fleet.Accelerator, len(s.Previous))
	for _, row := range s.Previous {
		last[row.Variant] = row.Accelerator
	}
	shown := make(map[fleet.TargetID]bool, len(s.Workloads))
	for i := range s.Workloads {
		if slices.ContainsFunc(s.Workloads[i].Pods, func(p fleet.Pod) bool { return p.Ready }) {
			shown[s.Workloads[i].ID.Unversioned()] = true
		}
	}
	for _, v := range variants {
		if v.accelerator == "" && !shown[v.target] {
			v.accelerator = last[v.ID]
		}
	}
}

// attachWorkloads gives each variant its workload, and its ready pods their metrics.
func (x *view) attachWorkloads(s fleet.Snapshot) {
	for i := range s.Workloads {
		if v := x.byTarget[s.Workloads[i].ID.Unversioned()]; v != nil {
			v.workload, v.seen = &s.Workloads[i], true
		}
	}
	for _, m := range x.models {
		for _, v := range m.variants {
			x.attachWorkload(v)
		}
		m.setStuckAside(x.policy)
		m.setSilentAside()
		for _, v := range m.variants {
			v.fixed = v.fixedByOthers()
		}
	}
	for _, v := range x.excluded {
		x.attachWorkload(v)
	}
}

// attachWorkload gives a variant the state of its workload.
func (x *view) attachWorkload(v *variant) {
	row := v.workload
	if !v.seen {
		return
	}
	v.now = x.specReplicas(v, row)
	v.startup = cmp.Or(max(0, row.Startup), x.policy.Startup)
	v.previous, _ = x.previousOf(v.ID)
	if row.Stale != "" { // KEDA may have applied the previous decision
		v.now = max(v.now, v.previous.Replicas)
	}
	v.spec = v.now
	if v.DryRun { // the present autoscaler of a dry run is no conflict
		v.workload = new(*row)
		v.workload.ConflictingHPA = ""
	}
	v.profile = x.profileOf(v)
	v.countPods(x.usagesOf(modelKey{v.Target.Namespace, v.EngineModel()}), x)
	if found, is := v.scrapedTwice(); is {
		x.addFinding(v.ID, found)
	}
}

// previousOf returns the previous decision of a variant; false if there is none.
func (x *view) previousOf(id fleet.VariantID) (row fleet.PreviousDecision, found bool) {
	if known := x.previous[id]; known != nil {
		return *known, true
	}
	return row, false
}

// usagesOf returns the rows of a name in the engines' metrics. The variants of a model mostly have
// one.
func (x *view) usagesOf(name modelKey) []*fleet.Usage {
	if x.scratch.usages == nil || x.scratch.name != name {
		x.scratch.name, x.scratch.usages = name, x.usages[name]
	}
	return x.scratch.usages
}

// rank gives each model the highest granted priority of its variants' classes, over all roles.
func (x *view) rank(classes []fleet.ServiceClass) {
	byName := make(map[string]fleet.ServiceClass, len(classes))
	for _, class := range classes {
		if before, twice := byName[class.Name]; class.Name != "" && (!twice || before.Priority < class.Priority) {
			byName[class.Name] = class
		}
	}
	highest := make(map[fleet.ModelID]int, len(x.models))
	for _, m := range x.models {
		for i, v := range m.variants {
			priority := 0
			if class, found := byName[v.ServiceClass]; found && class.GrantedTo(v.ID.Namespace) {
				priority = class.Priority
			}
			if i == 0 || priority > m.priority {
				m.priority = priority
			}
		}
		if other, found := highest[m.id]; !found || other < m.priority {
			highest[m.id] = m.priority
		}
	}
	for _, m := range x.models {
		m.priority = highest[m.id]
	}
}

// owners yields the variants that own their target.
func (x *view) owners() iter.Seq[*variant] {
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

// atZero reports whether the model has no replica, and none is asked for.
func (m *model) atZero() bool {
	return !slices.ContainsFunc(m.variants, func(v *variant) bool { return v.now > 0 || v.live > 0 })
}

func (m *model) ready() (ready int) {
	for _, v := range m.variants {
		ready += v.ready
	}
	return ready
}
