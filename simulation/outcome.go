package simulation

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/wva-project/wva/fleet"
)

// Loss is the reason for which a request was lost. The zero value is Served: it was not lost.
type Loss uint8

// How requests end.
const (
	Served    Loss = iota
	QueueFull      // the gateway's queue had reached its limit
	TimedOut       // it waited in the gateway's queue for too long
	TooLong        // it fits into the KV cache of no variant of its model
	CutOff         // its replica was removed, and it did not finish within the grace
)

var losses = [...]string{
	Served: "served", QueueFull: "queue full", TimedOut: "timed out", TooLong: "too long", CutOff: "cut off",
}

// String returns the reason in words.
func (l Loss) String() string {
	if int(l) < len(losses) {
		return losses[l]
	}
	return fmt.Sprintf("Loss(%d)", uint8(l))
}

// Outcome is how a request ended, as its client saw it.
type Outcome struct {
	Request
	End  float64 // when its last token came or it was lost
	TTFT float64 // seconds from its arrival at the gateway to its first token. Only if Served
	ITL  float64 // mean seconds between its tokens; 0 for a single one. Only if Served
	Loss Loss
}

// Meets reports whether the request was served within both limits of an objective. A zero limit is
// no limit.
func (o Outcome) Meets(objective fleet.Objective) bool {
	return o.Loss == Served &&
		(objective.TTFT == 0 || o.TTFT <= objective.TTFT.Seconds()) &&
		(objective.ITL == 0 || o.ITL <= objective.ITL.Seconds())
}

// Tally counts the requests of a model. Each one that arrived is in exactly one of the other
// numbers.
type Tally struct {
	Model    fleet.ModelID
	Arrived  int
	Served   int
	Lost     int
	Queued   int // at the gateway, now
	InFlight int // at engines, now
}

// Recent are the latencies of a model, over the requests that were served within some time.
type Recent struct {
	Served int
	TTFT   float64 // the 95th percentile in seconds; 0 without requests
	ITL    float64 // the 95th percentile of the requests' means in seconds; 0 without requests
}

// Expense is the use and cost of a variant so far. A replica counts from when it is scheduled until
// it is gone, start-up and drain included. A pending one costs nothing.
type Expense struct {
	Variant        fleet.VariantID
	ReplicaSeconds float64
	// PendingSeconds is how long replicas were pending, summed over them.
	PendingSeconds float64
	GPUSeconds     float64
	Cost           float64
}

// Outcomes returns the outcomes of requests, in the order of their ends. The slice is shared: it
// must not be written to.
func (f *Fleet) Outcomes() []Outcome { return f.outcomes }

// Attainment returns the share of a model's requests, of all that arrived, that were served within
// an objective. Requests that are lost or not finished miss it. It is 1 without requests.
func (f *Fleet) Attainment(model fleet.ModelID, objective fleet.Objective) float64 {
	g, ok := f.byModel[model]
	if !ok {
		return 1
	}
	return share(within(f.outcomes, model, objective), g.arrived)
}

// undecided returns how many requests of a model are not finished and may still be served within an
// objective: the first token came within the limit on TTFT, or that limit is not over yet.
func (f *Fleet) undecided(model fleet.ModelID, objective fleet.Objective) (count int) {
	g, ok := f.byModel[model]
	if !ok {
		return 0
	}
	open := slices.Clone(g.queue)
	for _, v := range f.variants {
		if v.Model != model {
			continue
		}
		for _, p := range v.pods {
			open = append(append(open, p.engine.running...), p.engine.waiting...)
		}
	}
	for _, s := range open {
		first := f.now
		if s.started() {
			first = s.firstToken
		}
		if objective.TTFT == 0 || first-s.Arrival <= objective.TTFT.Seconds() {
			count++
		}
	}
	return count
}

// Recent returns the latencies of the requests of a model that were served within the last seconds.
func (f *Fleet) Recent(model fleet.ModelID, seconds float64) Recent {
	from := sort.Search(len(f.outcomes), func(i int) bool { return f.outcomes[i].End > f.now-seconds })
	var ttfts, itls []float64
	for _, o := range f.outcomes[from:] {
		if o.Model == model && o.Loss == Served {
			ttfts, itls = append(ttfts, o.TTFT), append(itls, o.ITL)
		}
	}
	return Recent{Served: len(ttfts), TTFT: percentile95(ttfts), ITL: percentile95(itls)}
}

// Tallies returns the counts of every model, sorted by model.
func (f *Fleet) Tallies() []Tally {
	tallies := make([]Tally, len(f.gateways))
	for i, g := range f.gateways {
		tallies[i] = Tally{
			Model: g.ID, Arrived: g.arrived, Served: g.answered, Lost: g.lost, Queued: len(g.queue),
			InFlight: g.arrived - g.answered - g.lost - len(g.queue),
		}
	}
	return tallies
}

// Expenses returns the use and cost of every variant up to now, sorted by variant.
func (f *Fleet) Expenses() []Expense {
	expenses := make([]Expense, len(f.variants))
	for i, v := range f.variants {
		scheduled, pending := v.replicaSeconds, v.pendingSeconds
		for _, p := range v.pods {
			if p.hasGPUs() {
				scheduled += f.now - p.scheduled
			} else {
				pending += f.now - p.created
			}
		}
		expenses[i] = Expense{
			Variant: v.ID, ReplicaSeconds: scheduled, PendingSeconds: pending,
			GPUSeconds: scheduled * float64(v.GPUs), Cost: scheduled / 3600 * v.Cost,
		}
	}
	return expenses
}

// answer records a request that was served now.
func (f *Fleet) answer(g *gateway, s *sequence) {
	g.answered++
	o := Outcome{Request: s.Request, End: f.now, TTFT: s.firstToken - s.Arrival}
	if s.Output > 1 {
		o.ITL = (s.lastToken - s.firstToken) / float64(s.Output-1)
	}
	f.outcomes = append(f.outcomes, o)
}

// lose records a request that is lost now.
func (f *Fleet) lose(g *gateway, s *sequence, why Loss) {
	g.lost++
	f.outcomes = append(f.outcomes, Outcome{Request: s.Request, End: f.now, Loss: why})
}

// percentile95 returns the smallest value that at least 95 % of the values do not exceed. It sorts
// them.
func percentile95(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[int(math.Ceil(float64(len(values))*0.95))-1]
}
