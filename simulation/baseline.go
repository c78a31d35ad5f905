package simulation

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/wva-project/wva/fleet"
)

// WaitingThreshold is the number of waiting requests per replica that the vLLM production stack's
// guide to autoscaling with KEDA sets as its threshold
// (docs/source/use_cases/autoscaling-keda.rst).
const WaitingThreshold = 5.0

// ScrapeInterval is the number of seconds between two scrapes of the engines for a baseline.
const ScrapeInterval = 15.0

// Run is the input that all policies have in common.
type Run struct {
	Fleet      FleetSpec // a baseline sets Initial of the variants itself
	Requests   []Request // sorted by arrival
	Until      float64   // the end of the run and of its cost, in seconds
	Objectives []ModelObjective
	// Observe, if it is not nil, is called at each scrape of a baseline and at the end. It must not
	// change the fleet.
	Observe func(*Fleet)
}

func (r Run) observe(f *Fleet) {
	if r.Observe != nil {
		r.Observe(f)
	}
}

// Baseline is a simple policy for comparison: a published autoscaler, or a static fleet. Each row
// acts by itself. A variant without a row has no replicas, since published guides for one workload
// do not cover several that serve one model.
type Baseline struct{ Rows []BaselineRow }

// BaselineRow is the policy for one variant.
type BaselineRow struct {
	Variant  fleet.VariantID
	Replicas int // at the beginning
	// Queue scales the variant. If it is nil, the number of replicas stays: a static fleet.
	Queue *QueueRule
}

// QueueRule is a ScaledObject on the requests that wait at the variant's engines, with an HPA that
// keeps the default behavior. Its metric is vllm:num_requests_waiting, summed over the replicas.
// The guide keeps at least one replica: at zero, no engine reports a queue.
type QueueRule struct {
	Threshold float64 // waiting requests per replica. Zero means WaitingThreshold
	Min, Max  int     // 1 <= Min <= Max
}

// RunBaseline runs a baseline on the fleet, the requests and the seeds of a run.
//
// Engines are scraped at 0 s and every 15 s. HPAs sync every 15 s, 7 s after a scrape, with the
// values of that scrape.
func RunBaseline(run Run, baseline Baseline) (Result, error) {
	if !(run.Until >= 0) || math.IsInf(run.Until, 0) {
		return Result{}, fmt.Errorf("the run ends at %v s; give a time >= 0", run.Until)
	}
	spec, err := baseline.fleetSpec(run.Fleet)
	if err != nil {
		return Result{}, fmt.Errorf("baseline: %w", err)
	}
	f, err := NewFleet(spec)
	if err != nil {
		return Result{}, err
	}
	if err := f.Offer(run.Requests); err != nil {
		return Result{}, err
	}
	queues, err := baseline.queues()
	if err != nil {
		return Result{}, fmt.Errorf("baseline: %w", err)
	}
	recorder := &Recorder{}
	recorder.Observe(f)
	for begin := 0.0; begin <= run.Until; begin += ScrapeInterval {
		f.Advance(begin)
		run.observe(f)
		if err := scrapeAndSync(f, queues, begin, run.Until); err != nil {
			return Result{}, err
		}
		recorder.Observe(f)
	}
	f.Advance(run.Until)
	run.observe(f)
	return recorder.Result(f, run.Objectives), nil
}

// fleetSpec returns the spec with the baseline's replicas at the beginning, and no others.
func (b Baseline) fleetSpec(spec FleetSpec) (FleetSpec, error) {
	var errs []error
	spec.Variants = slices.Clone(spec.Variants)
	for i := range spec.Variants {
		spec.Variants[i].Initial = 0
	}
	served := map[fleet.ModelID]bool{}
	for i, row := range b.Rows {
		at := slices.IndexFunc(spec.Variants, func(v VariantSpec) bool { return v.ID == row.Variant })
		switch {
		case at < 0:
			errs = append(errs, fmt.Errorf("variant %s is not in the fleet", row.Variant))
		case slices.ContainsFunc(b.Rows[:i], func(other BaselineRow) bool { return other.Variant == row.Variant }):
			errs = append(errs, fmt.Errorf("variant %s has two rows", row.Variant))
		default:
			spec.Variants[at].Initial = row.Replicas
			served[spec.Variants[at].Model] = true
		}
	}
	for _, v := range spec.Variants {
		if !served[v.Model] {
			errs = append(errs, fmt.Errorf("variant %s: no variant of model %s has a row; name one", v.ID, v.Model))
		}
	}
	return spec, errors.Join(errs...)
}

// waitingQueue is the HPA of a row with a QueueRule.
type waitingQueue struct {
	variant fleet.VariantID
	hpa     *HPA
	scraped float64 // waiting requests
}

func (b Baseline) queues() ([]*waitingQueue, error) {
	var queues []*waitingQueue
	var errs []error
	for _, row := range b.Rows {
		if row.Queue == nil {
			continue
		}
		threshold := row.Queue.Threshold
		if threshold == 0 {
			threshold = WaitingThreshold
		}
		hpa, err := NewHPA(HPASpec{Min: row.Queue.Min, Max: row.Queue.Max, Target: threshold})
		if err != nil {
			errs = append(errs, fmt.Errorf("variant %s: %w", row.Variant, err))
		}
		queues = append(queues, &waitingQueue{variant: row.Variant, hpa: hpa})
	}
	return queues, errors.Join(errs...)
}

// scrapeAndSync is one scrape, to which the fleet was advanced, and the sync of the HPAs that
// follows it.
func scrapeAndSync(f *Fleet, queues []*waitingQueue, begin, until float64) error {
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
		if replicas := q.hpa.Decide(sync, v.replicas, q.scraped); replicas != v.replicas {
			if err := f.Scale(q.variant, replicas); err != nil {
				return err
			}
		}
	}
	return nil
}
