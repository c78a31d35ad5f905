package planner

import "slices"

// delayProbes delays a probe until accelerators are free for it. Existing replicas get the free GPU
// slots first. If none is left, other models must have replicas beyond their equal part: a probe
// never preempts a last replica or the part of another.
func (r *round) delayProbes() {
	if len(r.gpus) == 0 || !slices.ContainsFunc(r.models, func(z *sizedModel) bool { return z.probe != none }) {
		return
	}
	free := newSlots(r.gpus)
	for v := range r.owners() {
		free.keep(v, v.allocated())
	}
	for v := range r.owners() {
		free.take(v, v.fits)
	}
	users := make(map[*gpuType][]gpuUser)
	for _, z := range byPriority(r.models) {
		if z.probe == none {
			continue
		}
		c := z.candidates[z.probe]
		k := c.gpuType
		if k == nil || c.scheduled+c.fits > 0 || free.take(c.variant, 1) > 0 {
			continue
		}
		if _, known := users[k]; !known {
			users[k] = r.usersOf(k)
		}
		z.waits = c.takes() > z.mayYield(users[k], k.total())
	}
}

// gpuUser is a model with replicas on an accelerator type.
type gpuUser struct {
	*sizedModel
	gpus   int
	yields bool // could yield a replica
}

// usersOf returns the models with replicas on an accelerator type.
func (r *round) usersOf(k *gpuType) (users []gpuUser) {
	for _, z := range r.models {
		gpus := 0
		for _, c := range z.candidates {
			if c.gpuType == k {
				gpus += c.allocated() * c.takes()
			}
		}
		if gpus > 0 {
			users = append(users, gpuUser{z, gpus, r.couldYield(z, k)})
		}
	}
	return users
}

// mayYield returns the accelerators of a type that its users may yield to a probe of a model: all
// if they have a lower priority, else those beyond an equal part, up to such a part.
func (z *sizedModel) mayYield(users []gpuUser, total int) (yield int) {
	claims := 1
	for _, u := range users {
		if u.sizedModel != z && u.priority >= z.priority && u.wanted > 0 {
			claims++
		}
	}
	part, equals := total/claims, 0
	for _, u := range users {
		switch {
		case u.sizedModel == z || u.priority > z.priority || !u.yields:
		case u.priority == z.priority && u.wanted > 0:
			equals += max(0, u.gpus-part)
		default:
			yield += u.gpus
		}
	}
	return yield + min(equals, part)
}

// couldYield reports whether a model has more than one replica on an accelerator type, and one of
// them may go.
func (r *round) couldYield(z *sizedModel, k *gpuType) bool {
	allocated, mayGo := 0, false
	for _, c := range z.candidates {
		if c.gpuType != k {
			continue
		}
		bounds := withoutYielding(r.bounds(z, &c))
		allocated += c.allocated()
		mayGo = mayGo || c.allocated() > within(c.variant, bounds).Min
	}
	return allocated > 1 && mayGo
}
