package planner

import (
	"fmt"
	"math"
	"slices"
	"time"
)

const (
	// chanceOfCapacity is by how much a capacity may be too low by chance: the lengths and times
	// that it comes from are those of a few minutes.
	chanceOfCapacity = 0.15
	// longProof is how long, and requestsOfProof how many requests, replicas must have served.
	longProof       = 9 * time.Minute
	requestsOfProof = 100
)

// proveCapacity raises the capacity of the variant that serves the model so that it is enough for
// the demand now, if it served the same rate within the objective and lacks no more than chance.
// The demand stays: the proof of one variant says nothing of another.
func (z *sizedModel) proveCapacity() {
	needed, committed := z.latest, z.committed()
	if needed <= committed || needed > float64(committed*(1+chanceOfCapacity)) || z.growth > 0 {
		return
	}
	serving := slices.IndexFunc(z.candidates, func(c candidate) bool { return c.alive() > 0 })
	if serving == none || slices.ContainsFunc(z.candidates[serving+1:], func(c candidate) bool { return c.alive() > 0 }) {
		return
	}
	if z.proof = z.served(z.candidates[serving]); z.proof > 0 {
		z.candidates[serving].share *= needed / committed * (1 + tiny)
	}
}

// served returns for how long no more replicas than a variant has ready now served the constant
// rate, with no more misses than the objective allows, nor in the latest part; 0 if that is not
// known, if any replica of the model started since, or if the objective is missed now. It needs the
// error budget.
func (z *sizedModel) served(c candidate) time.Duration {
	d, length := z.demand, z.demand.partLength
	if d.constant.over < longConstant || d.constant.rises || !z.correction.known || z.starts() || z.missesNow() {
		return 0
	}
	number := int(math.Ceil(float64(longProof) / float64(length)))
	first := len(d.parts) - number
	proof := time.Duration(number) * length
	if first < 1 || proof > d.constant.parts || d.parts[first].end.Sub(d.parts[first-1].end) > length {
		return 0
	}
	more := func(p budgetPart) bool { return p.replicas > min(c.now, c.ready) }
	latest := d.parts[len(d.parts)-1]
	// their numbers are those at their ends, so that of the part before is one of them
	if slices.ContainsFunc(d.parts[first-1:], more) || d.starting.overlaps(d.parts[first-1].end, latest.end.Add(2*length)) {
		return 0
	}
	objective, _ := z.singleObjective()
	all := sumOfParts(d.parts[first:])
	if all.requests < requestsOfProof || !all.meets(objective.Percentile, 1) || !latest.meets(objective.Percentile, 1) {
		return 0
	}
	return proof
}

// missesNow reports whether the objective is missed, or a queue that no part has yet may miss it:
// the TTFT of engines does not have the wait at the gateway.
func (z *sizedModel) missesNow() bool {
	objective, _ := z.singleObjective()
	_, missed := z.missedObjective()
	few := float64(z.ready())
	return missed || z.demand.queued > few || objective.TTFT <= 0 && z.demand.backlog > few
}

// provenText returns that the replicas proved to be enough as text; "" if they did not have to.
func (z *sizedModel) provenText() string {
	if z.proof <= 0 {
		return ""
	}
	return fmt.Sprintf("the existing replicas served this rate for %.0f min: capacities that lack up to %.0f %% are chance",
		z.proof.Minutes(), 100*chanceOfCapacity)
}
