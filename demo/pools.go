package demo

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/simulation"
)

// Pool is the nodes of one accelerator type, which are all alike.
type Pool struct {
	Accelerator fleet.Accelerator
	Nodes       int // 1 to maxPool
	GPUs        int // of each node, 1 to maxPool
}

// maxPool bounds the numbers of a pool. A larger one is a typing error.
const maxPool = 1000

// ParsePool parses a pool such as "L40S=2x1": the accelerator type, the number of nodes, and the
// number of GPUs of each node.
func ParsePool(text string) (Pool, error) {
	accelerator, size, found := strings.Cut(text, "=")
	nodes, gpus, foundToo := strings.Cut(size, "x")
	if !found || !foundToo || accelerator == "" {
		return Pool{}, fmt.Errorf("pool %q: write it as ACCELERATOR=NODESxGPUS, such as L40S=2x1", text)
	}
	pool := Pool{Accelerator: fleet.Accelerator(accelerator)}
	var errs []error
	for _, part := range []struct {
		name, text string
		into       *int
	}{{"nodes", nodes, &pool.Nodes}, {"GPUs of a node", gpus, &pool.GPUs}} {
		n, err := strconv.Atoi(part.text)
		if err != nil || n < 1 || n > maxPool {
			errs = append(errs, fmt.Errorf("pool %q: %q is no number of %s; write a whole number from 1 to %d", text, part.text, part.name, maxPool))
		}
		*part.into = n
	}
	return pool, errors.Join(errs...)
}

// addNodes adds the nodes of pools. Accelerators of a type without a pool stay unlimited.
func (s *scenario) addNodes(pools []Pool) error {
	var used []fleet.Accelerator
	for _, v := range s.variants {
		used = append(used, v.Accelerator)
	}
	slices.Sort(used)
	used = slices.Compact(used)
	var errs []error
	for i, p := range pools {
		switch {
		case !slices.Contains(used, p.Accelerator):
			errs = append(errs, fmt.Errorf("pool of %q: no variant of the demo runs on it; use one of %v", p.Accelerator, used))
		case slices.ContainsFunc(pools[:i], func(other Pool) bool { return other.Accelerator == p.Accelerator }):
			errs = append(errs, fmt.Errorf("pool of %s: it is defined twice; keep one per accelerator type", p.Accelerator))
		case min(p.Nodes, p.GPUs) < 1 || max(p.Nodes, p.GPUs) > maxPool:
			errs = append(errs, fmt.Errorf("pool of %s: %d nodes of %d GPUs; set whole numbers from 1 to %d", p.Accelerator, p.Nodes, p.GPUs, maxPool))
		default:
			s.fleet.Nodes = append(s.fleet.Nodes, p.NodeSpecs()...)
		}
	}
	if err := invalid(errs...); err != nil {
		return err
	}
	return invalid(checkInitial(s.fleet))
}

// NodeSpecs returns the nodes of the pool, named by accelerator and number.
func (p Pool) NodeSpecs() []simulation.NodeSpec {
	specs := make([]simulation.NodeSpec, p.Nodes)
	for i := range specs {
		name := fmt.Sprintf("%s-%03d", strings.ToLower(string(p.Accelerator)), i)
		specs[i] = simulation.NodeSpec{Name: name, Accelerator: p.Accelerator, GPUs: p.GPUs}
	}
	return specs
}

// checkInitial returns an error if initial replicas cannot be scheduled.
func checkInitial(spec simulation.FleetSpec) error {
	initial, err := simulation.NewFleet(spec)
	if err != nil {
		return err
	}
	var errs []error
	for _, s := range initial.States() {
		if s.Pending > 0 {
			errs = append(errs, fmt.Errorf("pools: %d of the %d initial replicas of %s are Pending; give its accelerator more or larger nodes",
				s.Pending, s.Replicas, s.Variant.Name))
		}
	}
	return errors.Join(errs...)
}

// PoolTick is the state of one accelerator type on nodes after a cycle.
type PoolTick struct {
	Accelerator string `json:"accelerator"`
	GPUs        int    `json:"gpus"`      // of its nodes
	Allocated   int    `json:"allocated"` // to replicas that load, serve or drain
	Wanted      int    `json:"wanted"`    // by the decisions of all variants
}

// PoolSummary is the use of one accelerator type on nodes. Allocated and Wanted are the highest
// numbers of the run.
type PoolSummary struct {
	PoolTick
	// PendingSeconds is how long replicas were Pending, summed over them.
	PendingSeconds float64 `json:"pending_replica_seconds"`
	// Full are the periods in which all accelerators were allocated.
	Full []Period `json:"full,omitzero"`
	// Insufficient are the variants that needed more accelerators than were free, by name.
	Insufficient []Shortage `json:"insufficient_accelerators,omitzero"`
}

// Shortage is how long the decision of a variant had the reason InsufficientAccelerators.
type Shortage struct {
	Variant string `json:"variant"`
	Seconds int    `json:"seconds"`
}

// Period is a period of virtual time in seconds. If it has not ended before, it ends with the run.
type Period struct {
	From  int `json:"from"`
	Until int `json:"until"`
}

// poolRecorder records the use of pools during a run.
type poolRecorder struct {
	rows []PoolSummary // by accelerator
	full []bool        // at the latest observation
	// insufficient is for how many seconds each variant had too few accelerators.
	insufficient map[fleet.VariantID]int
}

// observe records the allocated accelerators at a second. The order of the pools stays the same.
func (r *poolRecorder) observe(second int, pools []fleet.Pool) {
	if r.rows == nil && len(pools) > 0 { // without pools, the output has no rows
		r.rows, r.full = make([]PoolSummary, len(pools)), make([]bool, len(pools))
	}
	for i, pool := range pools {
		row, now := &r.rows[i], poolTick(pool)
		row.Accelerator, row.GPUs = now.Accelerator, now.GPUs
		row.Allocated = max(row.Allocated, now.Allocated)
		full := now.Allocated == now.GPUs
		switch {
		case full && !r.full[i]:
			row.Full = append(row.Full, Period{From: second, Until: second})
		case r.full[i]:
			row.Full[len(row.Full)-1].Until = second
		}
		r.full[i] = full
	}
}

// recordPlan records the variants that have too few accelerators in this second.
func (r *poolRecorder) recordPlan(plan fleet.Plan) {
	for _, d := range plan.Decisions {
		if d.Reason.Code == fleet.CodeInsufficientAccelerators {
			if r.insufficient == nil {
				r.insufficient = make(map[fleet.VariantID]int)
			}
			r.insufficient[d.Variant]++
		}
	}
}

// recordWanted records the accelerators that the decisions need.
func (r *poolRecorder) recordWanted(pools []PoolTick) {
	for i, pool := range pools {
		r.rows[i].Wanted = max(r.rows[i].Wanted, pool.Wanted)
	}
}

// summary returns the rows with the Pending times and shortages of the fleet's variants.
func (r *poolRecorder) summary(s *scenario, expenses []simulation.Expense) []PoolSummary {
	for i := range r.rows {
		row := &r.rows[i]
		for _, e := range expenses {
			if string(s.accelerator(e.Variant)) == row.Accelerator {
				row.PendingSeconds += e.PendingSeconds
			}
		}
		row.PendingSeconds = round(row.PendingSeconds)
		for _, v := range s.variants {
			if seconds := r.insufficient[v.ID]; seconds > 0 && string(v.Accelerator) == row.Accelerator {
				row.Insufficient = append(row.Insufficient, Shortage{Variant: v.ID.Name, Seconds: seconds})
			}
		}
	}
	return r.rows
}

func (s *scenario) accelerator(id fleet.VariantID) fleet.Accelerator {
	at := slices.IndexFunc(s.variants, func(v fleet.Variant) bool { return v.ID == id })
	return s.variants[at].Accelerator
}

func poolTick(pool fleet.Pool) PoolTick {
	tick := PoolTick{Accelerator: string(pool.Accelerator)}
	for _, n := range pool.Nodes {
		tick.GPUs += n.Allocatable
		tick.Allocated += n.Allocated
	}
	return tick
}

// poolTicks returns the state of the pools, with the accelerators that the decisions need. The
// order of variants is that of the scenario.
func (s *scenario) poolTicks(pools []fleet.Pool, variants []VariantTick) []PoolTick {
	var ticks []PoolTick
	for _, pool := range pools {
		tick := poolTick(pool)
		for i, v := range s.variants {
			if v.Accelerator == pool.Accelerator && variants[i].Known {
				tick.Wanted += variants[i].Wanted * v.GPUsPerReplica
			}
		}
		ticks = append(ticks, tick)
	}
	return ticks
}
