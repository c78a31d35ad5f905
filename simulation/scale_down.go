package simulation

import (
	"cmp"
	"slices"
)

// active returns the replicas that are not being removed.
func (v *variant) active() []*pod {
	active := make([]*pod, 0, len(v.pods))
	for _, p := range v.pods {
		if p.state != draining {
			active = append(active, p)
		}
	}
	return active
}

// removedBefore orders replicas as a ReplicaSet removes them: first those without a node, then
// those that are not ready, then those that were ready for the shortest time, then the newest.
func removedBefore(a, b *pod) int {
	if a.state == ready && b.state == ready && a.readyAt != b.readyAt {
		return cmp.Compare(b.readyAt, a.readyAt)
	}
	return cmp.Or(cmp.Compare(a.state, b.state), cmp.Compare(b.ordinal, a.ordinal))
}

// scaleDown removes replicas. Those that are ready drain first.
func (f *Fleet) scaleDown(surplus []*pod) {
	var drained []*pod
	for _, p := range surplus {
		if p.state != ready {
			f.remove(p)
			continue
		}
		p.state, p.deadline = draining, f.now+p.variant.Grace
		p.variant.gateway.leave(p)
		drained = append(drained, p)
	}
	for _, p := range drained {
		f.handOver(p)
		f.settle(p)
	}
}

// handOver moves the waiting requests of a draining replica that have no token yet to replicas that
// are ready. A request stays if none can take it.
func (f *Fleet) handOver(p *pod) {
	for _, s := range slices.Clone(p.engine.waiting) {
		if s.started() {
			continue
		}
		if f.dispatch(p.variant.gateway, s) {
			p.engine.release(s)
		}
	}
}

// cutOff ends a drain at its deadline.
func (f *Fleet) cutOff(p *pod) {
	for _, s := range slices.Concat(p.engine.running, p.engine.waiting) {
		f.lose(p.variant.gateway, s, CutOff)
	}
	f.remove(p)
}

// remove takes a replica out of the fleet. Its accelerators are free at once.
func (f *Fleet) remove(p *pod) {
	v := p.variant
	if p.hasGPUs() {
		v.replicaSeconds += f.now - p.scheduled
		p.release()
	} else {
		v.pendingSeconds += f.now - p.created
		f.pending = slices.DeleteFunc(f.pending, func(other *pod) bool { return other == p })
	}
	p.state = gone
	f.events.set(p)
	at := slices.Index(v.pods, p)
	v.pods = slices.Delete(v.pods, at, at+1)
	f.schedule()
}
