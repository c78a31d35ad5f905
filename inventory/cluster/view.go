package cluster

import (
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/inventory"
)

// maxRebuildInterval is the time after which tables are rebuilt without a cause.
const maxRebuildInterval = 24 * time.Hour

// view is the state of all watches at one instant, and how far it is to be trusted.
type view struct {
	now     time.Time
	options *Options
	objects inventory.Objects
	states  map[watchID]watchState
	// scale targets without a number of replicas, or that cannot be decoded
	unread    map[inventory.Key]unreadTarget
	undecoded []inventory.Problem // of other objects that cannot be decoded
	// undecodedAutoscaler is true if one of them is of a node autoscaler, and undecodedDevices if
	// one is of dynamic resource allocation
	undecodedAutoscaler, undecodedDevices bool

	kinds    map[schema.GroupKind]kind
	arranged bool
	noPods   bool
}

// unreadTarget is a scale target without a number of replicas, or that cannot be decoded.
type unreadTarget struct {
	scaleLookup
	row row
}

// view collects the rows of the watches.
func (c *Cluster) view(now time.Time) *view {
	v := &view{now: now, options: &c.options, states: map[watchID]watchState{}, unread: map[inventory.Key]unreadTarget{}}
	c.mu.Lock()
	v.kinds, v.arranged, v.noPods = maps.Clone(c.kinds), c.arranged, c.noPods
	c.mu.Unlock()
	watches := c.runningWatches()
	selected := c.selected(watches)
	for _, w := range watches {
		v.states[w.watchID] = v.gather(w, func(namespace string) bool {
			if w.watchedResource == tenantConfig && namespace == c.options.ConfigNamespace {
				return false // it is seen by the watch of that namespace
			}
			return w.countsEverywhere || c.includes(namespace, selected)
		})
	}
	return v
}

// selected returns the namespaces that match the selector; nil if there is no selector.
func (c *Cluster) selected(watches []*resourceWatch) map[string]bool {
	if c.options.NamespaceSelector == nil {
		return nil
	}
	chosen := map[string]bool{}
	for _, w := range watches {
		if w.watchedResource != namespaces {
			continue
		}
		w.mu.Lock()
		for key, row := range w.rows {
			chosen[key.Name] = c.options.NamespaceSelector.Matches(labels.Set(row.labels))
		}
		w.mu.Unlock()
	}
	return chosen
}

// gather adds the rows of a watch, and returns its state.
func (v *view) gather(w *resourceWatch, includes func(namespace string) bool) watchState {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, row := range w.rows {
		if !includes(key.Namespace) {
			continue
		}
		v.objects.Append(row.objects)
		problem, isFault := row.problem(w.watchID, key)
		switch {
		case row.incomplete != nil:
			v.unread[inventory.KeyOf(row.incomplete)] = unreadTarget{scaleLookup{w, key}, row}
		case isFault && w.isTarget:
			v.unread[inventory.Key{Group: w.resource.Group, Kind: w.kind, Namespace: key.Namespace, Name: key.Name}] = unreadTarget{scaleLookup{w, key}, row}
		case isFault:
			v.undecoded = append(v.undecoded, problem)
			v.undecodedAutoscaler = v.undecodedAutoscaler || w.isOfNodeAutoscaler()
			v.undecodedDevices = v.undecodedDevices || w.isOfDevices()
		}
	}
	return watchState{watchedResource: w.watchedResource, id: w.watchID, health: w.health, rows: len(w.rows), absent: w.absent}
}

// stateOf returns the state of the watch of a resource in a namespace.
func (v *view) stateOf(resource schema.GroupVersionResource, namespace string) (watchState, bool) {
	if state, found := v.states[watchID{resource: resource, namespace: namespace}]; found {
		return state, true
	}
	state, found := v.states[watchID{resource: resource}]
	return state, found
}

func (v *view) trusts(resource schema.GroupVersionResource, namespace string) bool {
	state, found := v.stateOf(resource, namespace)
	return found && state.health.trusted(v.now, v.options.MaxAge)
}

// tables returns the tables of the objects.
func (v *view) tables() inventory.Tables {
	options := v.options.Tables
	options.HPAsRead = func(namespace string) bool { return v.trusts(autoscalers.gvr, namespace) }
	objects := v.objects
	if !v.devicesKnown() {
		objects.ResourceSlices = nil // without all claims, devices would look free
	}
	return objects.Tables(options)
}

// markUnnamed marks the watches of kinds that no variant names.
func (v *view) markUnnamed(w wantedKinds) {
	for id, d := range w {
		watch := watchID{resource: v.kinds[id.GroupKind].resource, namespace: id.namespace}
		if state, runs := v.states[watch]; runs {
			state.unnamed = !d.named
			v.states[watch] = state
		}
	}
}

// isComplete reports whether every readable resource was read.
func (v *view) isComplete(w wantedKinds, variants []fleet.Variant) bool {
	if !v.arranged {
		return false
	}
	for id, state := range v.states {
		if isSettled, _ := state.settled(v.now); !isSettled || v.isReplaced(id, state) {
			return false
		}
	}
	for id, d := range w {
		k := v.kinds[id.GroupKind]
		if _, runs := v.states[watchID{resource: k.resource, namespace: id.namespace}]; !k.settled(v.now, d.named) || (k.found && !runs) {
			return false
		}
	}
	return !slices.ContainsFunc(variants, func(variant fleet.Variant) bool {
		target, isUnread := v.unread[inventory.TargetKey(variant.Target)]
		return isUnread && target.row.awaitsLookup()
	})
}

// isReplaced reports whether the pods of all namespaces are forbidden, and those of Namespaces are
// about to be watched instead, with the claims there.
func (v *view) isReplaced(id watchID, state watchState) bool {
	ofPods := v.states[watchID{resource: pods.gvr}]
	return state.followsPods && id.namespace == "" && len(v.options.Namespaces) > 0 && ofPods.health.isUnreadable()
}

// lookupsDue returns the scale subresources to read, and the time after which the tables have to be
// rebuilt because an answer is missing or trust ends.
func (v *view) lookupsDue(variants []fleet.Variant) (open []scaleLookup, next time.Duration) {
	next = maxRebuildInterval
	asked := map[inventory.Key]bool{}
	for _, variant := range variants {
		key := inventory.TargetKey(variant.Target)
		target, isUnread := v.unread[key]
		if !isUnread || asked[key] {
			continue
		}
		asked[key] = true
		isOpen, again := target.row.lookupDue(v.now)
		if isOpen {
			open = append(open, target.scaleLookup)
		} else if !again.IsZero() {
			next = min(next, again.Sub(v.now))
		}
	}
	for _, state := range v.states {
		expiry, _ := state.health.expiry(v.options.MaxAge)
		_, givenUp := state.settled(v.now)
		for _, at := range []time.Time{expiry, givenUp} {
			if at.After(v.now) {
				next = min(next, at.Sub(v.now))
			}
		}
	}
	return open, next
}

// markUnreliable marks rows of the tables that may be out of date, and removes problems that only
// follow from others.
func (v *view) markUnreliable(t *inventory.Tables) {
	for i := range t.Workloads {
		w := &t.Workloads[i]
		w.Stale, w.KnownAt = v.staleReason(w.ID), v.knownAt(w.ID)
	}
	if !v.acceleratorsCounted() {
		t.Pools = nil
	}
	if !v.nodeAutoscalersKnown() {
		for i := range t.Pools {
			t.Pools[i].Elastic, t.Pools[i].Adds, t.Pools[i].LimitedBy, t.Pools[i].BacksOff = true, 0, "", false
		}
	}
	unseen := map[string]bool{}
	for i := range t.Variants {
		variant := &t.Variants[i]
		variant.Hidden = v.hiddenReason(variant.Target)
		_, isUnread := v.unread[inventory.TargetKey(variant.Target)]
		if isUnread || !v.isListed(variant.Target) {
			unseen[inventory.ScaledObjectKey(variant.ID.Namespace, variant.ID.Name).String()] = true
			if variant.DryRun {
				unseen[inventory.HPAKey(variant.ID.Namespace, variant.ID.Name).String()] = true
			}
		}
	}
	// A target that was not found tells nothing if its kind is not read: the problem of the kind
	// does.
	t.Problems = slices.DeleteFunc(t.Problems, func(p inventory.Problem) bool {
		return unseen[p.Object] && strings.HasPrefix(p.Text, "its scale target ")
	})
}

// hiddenReason returns why the replicas of a target, or its pods, cannot be read. It is empty if
// they can, and if the API server does not serve the kind. It names resources only, never objects:
// the owner of a variant reads it.
func (v *view) hiddenReason(id fleet.TargetID) string {
	k := v.kinds[kindOf(id)]
	if id.Name == "" || !k.found {
		return ""
	}
	untrusted := func(gvr schema.GroupVersionResource) string {
		return "the watch of " + gvr.GroupResource().String() + " fails; check WVA's role and the API server"
	}
	if !v.trusts(k.resource, id.Namespace) {
		return untrusted(k.resource)
	}
	for _, r := range resources {
		if r.holdsVariants && r.isWatched(v.options) && !v.trusts(r.gvr, id.Namespace) {
			return untrusted(r.gvr)
		}
	}
	return v.mixedReason(id)
}

// staleReason returns why the number of replicas of a target may be out of date; empty if it is
// not.
func (v *view) staleReason(id fleet.TargetID) string {
	k := v.kinds[kindOf(id)]
	if state, watched := v.stateOf(k.resource, id.Namespace); watched && state.health.failure != nil {
		return "the watch of " + k.resource.GroupResource().String() + " fails"
	}
	return ""
}

// kindOf returns the kind of a target.
func kindOf(id fleet.TargetID) schema.GroupKind {
	key := inventory.TargetKey(id)
	return schema.GroupKind{Group: key.Group, Kind: key.Kind}
}

// isListed reports whether the objects of a target's kind were listed in its namespace.
func (v *view) isListed(id fleet.TargetID) bool {
	k := v.kinds[kindOf(id)]
	state, watched := v.stateOf(k.resource, id.Namespace)
	return k.found && watched && state.health.listed
}

// acceleratorsCounted reports whether the free accelerators are known: nodes were listed, and the
// pods of all namespaces.
func (v *view) acceleratorsCounted() bool {
	return v.states[watchID{resource: nodes.gvr}].health.listed && v.states[watchID{resource: pods.gvr}].health.listed
}

// nodeAutoscalersKnown reports whether the node autoscalers are.
func (v *view) nodeAutoscalersKnown() bool {
	return !v.undecodedAutoscaler && v.allKnown((*watchedResource).isOfNodeAutoscaler)
}

// devicesKnown reports whether the devices of dynamic resource allocation are, with the claims of
// all namespaces.
func (v *view) devicesKnown() bool {
	return !v.undecodedDevices && v.allKnown((*watchedResource).isOfDevices)
}

// allKnown reports whether objects of all namespaces were listed, or the API server does not serve
// them. One that did not serve them, and now forbids to read them, has never shown any.
func (v *view) allKnown(isOne func(*watchedResource) bool) bool {
	return !slices.ContainsFunc(resources, func(r *watchedResource) bool {
		if !isOne(r) {
			return false
		}
		state, found := v.states[watchID{r.gvr, r.namespace, r.labels}]
		failure := state.health.failure
		return !found || !state.health.listed || state.absent && failure != nil && failure.class != failedOtherwise
	})
}

// problems returns the problems of reading the cluster.
func (v *view) problems(variants []fleet.Variant) []inventory.Problem {
	problems := slices.Clone(v.undecoded)
	hasNodes := v.states[watchID{resource: nodes.gvr}].health.listed
	for id, state := range v.states {
		switch {
		case !hasNodes && (state.isOfNodeAutoscaler() || state.isOfDevices()): // no accelerators
			continue
		case (!hasNodes || v.objects.NodeGroups == nil) && state.watchedResource == capacityQuotas:
			continue // no node groups
		case len(v.objects.Kueue.Locals) == 0 && state.isOfKueue(): // no queue, no quotas
			continue
		}
		if p, fails := state.problem(state.health.trusted(v.now, v.options.MaxAge)); fails && !v.isReplaced(id, state) {
			problems = append(problems, p)
		}
	}
	if v.noPods {
		problems = append(problems, inventory.Problem{
			Object: "watch of pods", Remedy: "allow list and watch on pods in a cluster role",
			Text: "list on pods in all namespaces is forbidden, so the accelerators allocated to other pods are not known and no pool is shown",
		})
	}
	reported := map[types.NamespacedName]bool{}
	for _, variant := range variants {
		target, isUnread := v.unread[inventory.TargetKey(variant.Target)]
		if !isUnread || reported[target.key] {
			continue
		}
		if p, is := target.row.problem(target.watch.watchID, target.key); is {
			reported[target.key] = true
			problems = append(problems, p)
		}
	}
	return problems
}
