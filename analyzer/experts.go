package analyzer

import (
	"math"

	"github.com/wva-project/wva/analyzer/queueing"
	"github.com/wva-project/wva/fleet"
)

// The time of an iteration of a mixture-of-experts model rises steeply with small batches, and
// slowly with large ones, which use most experts already (fleet.EngineCost). The queueing model is
// linear in the batch: it gets the tangent at the batch of the replica's capacity, which is exact
// there and slower elsewhere. Requests miss an objective in batches above the mean, so it is that
// of one standard deviation more, as of requests that arrive independently.

const (
	// linearRounds bounds the search for the batch at capacity. The time is concave in the batch,
	// so that the batch rises to the fixed point, as with Newton's method, and each round is
	// conservative.
	linearRounds = 4
	// coarseBatch is the number of steps in a factor of two to which the batch is rounded, so that
	// noise does not change the line. Between two steps it is off by 1 % of the time of experts.
	coarseBatch = 2
)

// LinearProfile returns the cost of the engine of a question as the queueing model takes it, exact
// near the batch that the replica has at its highest rate within the objective.
func LinearProfile(cost fleet.EngineCost, q queueing.Question, maxRate MaxRate) (queueing.Profile, error) {
	return linear(cost, q, correction{iteration: 1, decode: 1, prefill: 1}, maxRate)
}

// MaxRate answers a question, such as queueing.Sizer.MaxRate.
type MaxRate func(queueing.Question) (queueing.Answer, error)

// linear does the same with the corrections of the replicas' metrics.
func (o Options) linear(q queueing.Question, cost fleet.EngineCost, c correction) queueing.Profile {
	q.Dispersion = o.arrivals.dispersionOf(0)
	p, err := linear(cost, q, c, func(q queueing.Question) (queueing.Answer, error) {
		a, err := o.Memo.maxRate(q, o.Memo.answersTo(q), nil)
		return a.Answer, err
	})
	if err != nil {
		return c.applied(Seconds(cost.Linear(fleet.UsualSparsity))) // the question itself will fail
	}
	return p
}

func linear(cost fleet.EngineCost, q queueing.Question, c correction, maxRate MaxRate) (queueing.Profile, error) {
	if cost.Experts == 0 {
		return c.applied(Seconds(cost)), nil
	}
	if q.Mix.MeanOutput() <= 1 { // prompts use all experts
		return c.applied(Seconds(cost.Linear(float64(q.Replica.BatchedTokens)))), nil
	}
	batch := float64(fleet.UsualSparsity)
	for range linearRounds {
		q.Replica.Profile = c.applied(Seconds(cost.Linear(batch)))
		a, err := maxRate(q)
		if err != nil {
			return queueing.Profile{}, err
		}
		mean := q.Mix.Batch(q.Replica, a.Rate)
		next := steps(max(1, mean+math.Sqrt(mean)), coarseBatch)
		if next == batch {
			break
		}
		batch = next
	}
	return c.applied(Seconds(cost.Linear(batch))), nil
}

// running returns the mean batch of the variant's replicas, or a common one if it is not known.
func (v Variant) running() float64 {
	sum, replicas := 0.0, 0.0
	for _, r := range v.Replicas {
		if running, known := r.Calibrating().Running.Known(); known && running > 0 {
			sum += running
			replicas++
		}
	}
	if replicas == 0 {
		return fleet.UsualSparsity
	}
	return max(1, sum/replicas)
}
