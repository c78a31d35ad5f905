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

// Pool is the nodes that hold one kind of accelerator, all alike.
type Pool struct {
	Accelerator fleet.Accelerator
	Nodes       int // 1 to maxPool
	GPUs        int // of each node, 1 to maxPool
}

// maxPool bounds the numbers of a pool: a demo with more is a slip of the finger.
const maxPool = 1000

// ParsePool reads a pool as "L40S=2x1": the kind of accelerator, how many nodes, and how many accelerators on each.
func ParsePool(text string) (Pool, error) {
	kind, size, found := strings.Cut(text, "=")
	nodes, gpus, foundToo := strings.Cut(size, "x")
	if !found || !foundToo || kind == "" {
		return Pool{}, fmt.Errorf("pool %q: write it as KIND=NODESxGPUS, such as L40S=2x1", text)
	}
	pool := Pool{Accelerator: fleet.Accelerator(kind)}
	var faults []error
	for _, part := range []struct {
		name, text string
		into       *int
	}{{"nodes", nodes, &pool.Nodes}, {"GPUs of a node", gpus, &pool.GPUs}} {
		n, err := strconv.Atoi(part.text)
		if err != nil || n < 1 || n > maxPool {
			faults = append(faults, fmt.Errorf("pool %q: %q is no number of %s; write a whole number from 1 to %d", text, part.text, part.name, maxPool))
		}
		*part.into = n
	}
	return pool, errors.Join(faults...)
}

// limit puts the accelerators of the fleet on the nodes of pools. A kind without a pool stays unlimited.
func (w *world) limit(pools []Pool) error {
	var kinds []fleet.Accelerator
	for _, v := range w.variants {
		kinds = append(kinds, v.Accelerator)
	}
	slices.Sort(kinds)
	kinds = slices.Compact(kinds)
	var faults []error
	for i, p := range pools {
		switch {
		case !slices.Contains(kinds, p.Accelerator):
			faults = append(faults, fmt.Errorf("pool of %q: no variant of the demo runs on it; its kinds are %v", p.Accelerator, kinds))
		case slices.ContainsFunc(pools[:i], func(other Pool) bool { return other.Accelerator == p.Accelerator }):
			faults = append(faults, fmt.Errorf("pool of %s: it is there twice; give one per kind", p.Accelerator))
		case min(p.Nodes, p.GPUs) < 1 || max(p.Nodes, p.GPUs) > maxPool:
			faults = append(faults, fmt.Errorf("pool of %s: %d nodes of %d; give whole numbers from 1 to %d", p.Accelerator, p.Nodes, p.GPUs, maxPool))
		default:
			w.fleet.Nodes = append(w.fleet.Nodes, p.specs()...)
		}
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	return checkInitial(w.fleet)
}

func (p Pool) specs() []simulation.NodeSpec {
	specs := make([]simulation.NodeSpec, p.Nodes)
	for i := range specs {
		name := fmt.Sprintf("%s-%03d", strings.ToLower(string(p.Accelerator)), i)
		specs[i] = simulation.NodeSpec{Name: name, Accelerator: p.Accelerator, GPUs: p.GPUs}
	}
	return specs
}

// checkInitial returns an error where replicas of the beginning find no room on the nodes.
func checkInitial(spec simulation.FleetSpec) error {
	begun, err := simulation.NewFleet(spec)
	if err != nil {
		return err
	}
	var faults []error
	for _, s := range begun.States() {
		if s.Pending > 0 {
			faults = append(faults, fmt.Errorf("pools: %d of the %d replicas with which %s begins find no room; give its accelerator more nodes or larger ones",
				s.Pending, s.Wanted, s.Variant.Name))
		}
	}
	return errors.Join(faults...)
}

// PoolTick is one kind of accelerator on nodes at a decision.
type PoolTick struct {
	Accelerator string `json:"accelerator"`
	GPUs        int    `json:"gpus"`   // on its nodes
	Held        int    `json:"held"`   // by replicas that load, serve or drain
	Wanted      int    `json:"wanted"` // by all replicas that the scaler asks for
}

// PoolSummary is what became of one kind of accelerator on nodes. Held and Wanted are the most there were at one time.
type PoolSummary struct {
	PoolTick
	// PendingSeconds is how long replicas waited for room on a node, added up over them.
	PendingSeconds float64 `json:"pending_replica_seconds"`
	// Full are the stretches of time in which all were held.
	Full []Stretch `json:"full,omitzero"`
	// NoRoom are the variants that needed more of it than there was, by name.
	NoRoom []Refusal `json:"no_room,omitzero"`
}

// Refusal is for how long the plan said that there is no room for what a variant needs.
type Refusal struct {
	Variant string `json:"variant"`
	Seconds int    `json:"seconds"`
}

// Stretch is a stretch of virtual time in seconds. One that does not end before the run ends with it.
type Stretch struct {
	From  int `json:"from"`
	Until int `json:"until"`
}

// poolBook keeps of a run what its summary says of nodes.
type poolBook struct {
	rows []PoolSummary // by kind
	full []bool        // since the latest observation
	// refused is for how many seconds each variant had no room.
	refused map[fleet.VariantID]int
}

// observe notes what is held at a second. Its rows have the order of the pools, which stays.
func (b *poolBook) observe(second int, pools []fleet.Pool) {
	if b.rows == nil && len(pools) > 0 { // no rows are no part of the output
		b.rows, b.full = make([]PoolSummary, len(pools)), make([]bool, len(pools))
	}
	for i, pool := range pools {
		row, now := &b.rows[i], poolTick(pool)
		row.Accelerator, row.GPUs = now.Accelerator, now.GPUs
		row.Held = max(row.Held, now.Held)
		full := now.Held == now.GPUs
		switch {
		case full && !b.full[i]:
			row.Full = append(row.Full, Stretch{From: second, Until: second})
		case b.full[i]:
			row.Full[len(row.Full)-1].Until = second
		}
		b.full[i] = full
	}
}

// planned notes for which variants the plan in force has no room in this second.
func (b *poolBook) planned(plan fleet.Plan) {
	for _, d := range plan.Decisions {
		if d.Reason.Code == fleet.CodeInsufficientAccelerators {
			if b.refused == nil {
				b.refused = make(map[fleet.VariantID]int)
			}
			b.refused[d.Variant]++
		}
	}
}

// decided notes what the scaler asks for.
func (b *poolBook) decided(pools []PoolTick) {
	for i, pool := range pools {
		b.rows[i].Wanted = max(b.rows[i].Wanted, pool.Wanted)
	}
}

// summary returns the rows with the waits and refusals that the variants of the fleet account for.
func (b *poolBook) summary(w *world, expenses []simulation.Expense) []PoolSummary {
	for i := range b.rows {
		row := &b.rows[i]
		for _, e := range expenses {
			if string(w.accelerator(e.Variant)) == row.Accelerator {
				row.PendingSeconds += e.PendingSeconds
			}
		}
		row.PendingSeconds = round(row.PendingSeconds)
		for _, v := range w.variants {
			if seconds := b.refused[v.ID]; seconds > 0 && string(v.Accelerator) == row.Accelerator {
				row.NoRoom = append(row.NoRoom, Refusal{Variant: v.ID.Name, Seconds: seconds})
			}
		}
	}
	return b.rows
}

func (w *world) accelerator(id fleet.VariantID) fleet.Accelerator {
	at := slices.IndexFunc(w.variants, func(v fleet.Variant) bool { return v.ID == id })
	return w.variants[at].Accelerator
}

func poolTick(pool fleet.Pool) PoolTick {
	tick := PoolTick{Accelerator: string(pool.Accelerator)}
	for _, n := range pool.Nodes {
		tick.GPUs += n.Allocatable
		tick.Held += n.Allocated
	}
	return tick
}

// poolTicks returns the pools beside what the scaler asks of them. The rows of variants have the order of the world's.
func (w *world) poolTicks(pools []fleet.Pool, variants []VariantTick) []PoolTick {
	var ticks []PoolTick
	for _, pool := range pools {
		tick := poolTick(pool)
		for i, v := range w.variants {
			if v.Accelerator == pool.Accelerator && variants[i].Known {
				tick.Wanted += variants[i].Wanted * v.GPUsPerReplica
			}
		}
		ticks = append(ticks, tick)
	}
	return ticks
}
