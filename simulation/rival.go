package simulation

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/wva-project/wva/fleet"
)

// WaitingThreshold is the number of waiting requests per replica at which the vLLM production stack's guide to
// autoscaling with KEDA sets its trigger (docs/source/use_cases/autoscaling-keda.rst).
const WaitingThreshold = 5.0

// ScrapeInterval is how many seconds pass between two scrapes of the engines that rivals see.
const ScrapeInterval = 15.0

// Run is what every policy is put to alike.
type Run struct {
	Fleet    FleetSpec // Initial of its variants is the rival's to say
	Requests []Request // sorted by arrival
	Until    float64   // seconds at which the account is closed
	Promises []Promise
}

// Rival is a published way of setting replicas, to compare with. Each row acts for itself. Variants without a row have
// no replicas: what is published for one workload says nothing of several that serve one model.
type Rival struct{ Rows []RivalRow }

// RivalRow is what a rival does with one variant.
type RivalRow struct {
	Variant  fleet.VariantID
	Replicas int // at the beginning
	// Queue scales the variant. Without it the number stays: a static fleet.
	Queue *QueueRule
}

// QueueRule is a ScaledObject on the requests that wait at the variant's engines, vllm:num_requests_waiting summed over
// its replicas, with an HPA that keeps the default behavior. The guide keeps one replica at least: at zero, no engine is
// there to report a queue.
type QueueRule struct {
	Threshold float64 // waiting requests per replica. Zero means WaitingThreshold
	Min, Max  int     // 1 <= Min <= Max
}

// RunRival puts a rival to a run: the same fleet, the same requests, the same seeds.
//
// Engines are scraped at 0 s and every 15 s; HPAs sync every 15 s, 7 s after a scrape, and see the latest one.
func RunRival(run Run, rival Rival) (Result, error) {
	if !(run.Until >= 0) || math.IsInf(run.Until, 0) {
		return Result{}, fmt.Errorf("the run ends at %v s; give a time >= 0", run.Until)
	}
	spec, err := rival.staffed(run.Fleet)
	if err != nil {
		return Result{}, fmt.Errorf("rival: %w", err)
	}
	f, err := NewFleet(spec)
	if err != nil {
		return Result{}, err
	}
	if err := f.Offer(run.Requests); err != nil {
		return Result{}, err
	}
	queues, err := rival.queues()
	if err != nil {
		return Result{}, fmt.Errorf("rival: %w", err)
	}
	recorder := &Recorder{}
	recorder.Observe(f)
	for begin := 0.0; begin <= run.Until; begin += ScrapeInterval {
		if err := turn(f, queues, begin, run.Until); err != nil {
			return Result{}, err
		}
		recorder.Observe(f)
	}
	f.Advance(run.Until)
	return recorder.Result(f, run.Promises), nil
}

// staffed returns the fleet with the rival's replicas at the beginning, and no others.
func (r Rival) staffed(spec FleetSpec) (FleetSpec, error) {
	var faults []error
	spec.Variants = slices.Clone(spec.Variants)
	for i := range spec.Variants {
		spec.Variants[i].Initial = 0
	}
	served := map[fleet.ModelID]bool{}
	for i, row := range r.Rows {
		at := slices.IndexFunc(spec.Variants, func(v VariantSpec) bool { return v.ID == row.Variant })
		switch {
		case at < 0:
			faults = append(faults, fmt.Errorf("variant %s is not in the fleet", row.Variant))
		case slices.ContainsFunc(r.Rows[:i], func(other RivalRow) bool { return other.Variant == row.Variant }):
			faults = append(faults, fmt.Errorf("variant %s has two rows", row.Variant))
		default:
			spec.Variants[at].Initial = row.Replicas
			served[spec.Variants[at].Model] = true
		}
	}
	for _, v := range spec.Variants {
		if !served[v.Model] {
			faults = append(faults, fmt.Errorf("variant %s: no variant of model %s has a row; name one", v.ID, v.Model))
		}
	}
	return spec, errors.Join(faults...)
}

// waitingQueue is a row that scales at work.
type waitingQueue struct {
	variant fleet.VariantID
	hpa     *HPA
	scraped float64 // waiting requests
}

func (r Rival) queues() ([]*waitingQueue, error) {
	var queues []*waitingQueue
	var faults []error
	for _, row := range r.Rows {
		if row.Queue == nil {
			continue
		}
		threshold := row.Queue.Threshold
		if threshold == 0 {
			threshold = WaitingThreshold
		}
		hpa, err := NewHPA(HPASpec{Min: row.Queue.Min, Max: row.Queue.Max, Target: threshold})
		if err != nil {
			faults = append(faults, fmt.Errorf("variant %s: %w", row.Variant, err))
		}
		queues = append(queues, &waitingQueue{variant: row.Variant, hpa: hpa})
	}
	return queues, errors.Join(faults...)
}

// turn is one scrape and the sync that sees it.
func turn(f *Fleet, queues []*waitingQueue, begin, until float64) error {
	f.Advance(begin)
	for _, q := range queues {
		v, _ := f.variant(q.variant)
		q.scraped = float64(v.state().Waiting)
	}
	sync := begin + math.Floor(HPASync/2)
	if sync > until {
		return nil
	}
	f.Advance(sync)
	for _, q := range queues {
		v, _ := f.variant(q.variant)
		if replicas := q.hpa.Decide(sync, v.wanted, q.scraped); replicas != v.wanted {
			if err := f.Scale(q.variant, replicas); err != nil {
				return err
			}
		}
	}
	return nil
}

// StaticPeak returns a static fleet for the run: of each given variant the least number, up to most, with which the
// share of requests, 0 to 1, is served as promised; most where no number is enough. It knows the whole run beforehand,
// which no operator does: a static fleet in practice has a reserve on top.
//
// Each variant is sized alone, on the requests of its model; give one per model.
func StaticPeak(run Run, variants []fleet.VariantID, share float64, most int) (Rival, error) {
	var rival Rival
	for _, id := range variants {
		replicas, err := run.leastReplicas(id, share, most)
		if err != nil {
			return Rival{}, err
		}
		rival.Rows = append(rival.Rows, RivalRow{Variant: id, Replicas: replicas})
	}
	return rival, nil
}

// leastReplicas searches by halving: more replicas serve no less.
func (run Run) leastReplicas(id fleet.VariantID, share float64, most int) (int, error) {
	at := slices.IndexFunc(run.Fleet.Variants, func(v VariantSpec) bool { return v.ID == id })
	if at < 0 {
		return 0, fmt.Errorf("static fleet: variant %s is not in the fleet", id)
	}
	alone := run.only(run.Fleet.Variants[at])
	least := 1
	for least < most {
		middle := (least + most) / 2
		result, err := RunRival(alone, Rival{Rows: []RivalRow{{Variant: id, Replicas: middle}}})
		if err != nil {
			return 0, fmt.Errorf("static fleet: %w", err)
		}
		if result.Attainment >= share {
			most = middle
		} else {
			least = middle + 1
		}
	}
	return most, nil
}

// only returns the run of one variant and the requests of its model.
func (run Run) only(v VariantSpec) Run {
	other := func(id fleet.ModelID) bool { return id != v.Model }
	run.Fleet.Variants = []VariantSpec{v}
	run.Fleet.Models = slices.DeleteFunc(slices.Clone(run.Fleet.Models), func(m ModelSpec) bool { return other(m.ID) })
	run.Requests = slices.DeleteFunc(slices.Clone(run.Requests), func(r Request) bool { return other(r.Model) })
	return run
}
