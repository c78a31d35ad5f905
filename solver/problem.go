package solver

import (
	"time"

	"github.com/wva-project/wva/fleet"
)

// DefaultHorizon is the default of Problem.Horizon.
const DefaultHorizon = time.Hour

// DefaultSteps is the default of Problem.Steps for every 2,048 demands. A step takes 10 to 100 ns.
const DefaultSteps = 1 << 23

// DefaultTolerance is the default of Problem.Tolerance.
const DefaultTolerance = 0.001

// Problem is the input of Solve. The order of its rows has no effect, except that of nodes.
type Problem struct {
	Demands []Demand // one per model and role; of duplicates the largest counts
	Options []Option // one per variant
	// Pools are the available accelerators, one row per accelerator type. A type without a row is
	// unlimited, and one of several rows has the limits and the nodes of all.
	Pools  []Pool
	Quotas []Quota
	// Horizon is the time over which the price of a running replica is counted. Zero or less:
	// DefaultHorizon.
	Horizon time.Duration
	// Steps is the search budget of the whole problem. The models get equal shares of it, and the
	// steps that easy models leave go to the hard ones. A first plan is made with any budget. Zero
	// or less: DefaultSteps.
	Steps int
	// Tolerance is the gap between cost and bound, as a share of the cost, at which the search for
	// a contended component ends. Zero: DefaultTolerance. Below zero: only a proof or the budget
	// ends the search.
	Tolerance float64
	// Reasons requests Solution.Reasons.
	Reasons bool
}

// Demand is the load of one model, or of one role of it.
type Demand struct {
	Model fleet.ModelID
	Role  fleet.Role
	// Amount is in the unit of Option.Capacity. A negative, infinite or NaN amount is unknown: the
	// model's options keep Range.Clamp(Now).
	Amount float64
	// Penalty is the cost of leaving a part of the demand unserved, cheapest piece first. Demand
	// beyond the shares of all pieces costs as much as the last one. Of more than 64 pieces,
	// neighbours count as one at their mean price. If it is empty or invalid, no
	// price is too high: the least shortage comes first and the least cost second. The same applies
	// to a demand that competes for nothing and whose penalty is above a million times the price of
	// all that could serve it.
	//
	// Demands without a penalty that compete for accelerators get an internal one: a multiple of
	// the cost of serving them alone, in five pieces of which each costs twice the one before.
	// Shortage then spreads evenly over models of any size. This price is not part of any reported
	// sum.
	Penalty []Piece
	// Priority orders competing demands without a penalty: a higher one is served first.
	Priority int
}

// Piece is a part of a demand and the price of leaving it unserved.
type Piece struct {
	Share float64 // of the demand, above 0
	// Price is the cost of leaving the whole demand unserved for an hour; a share of it costs that
	// share.
	Price float64
}

// Option is a variant that can serve a model. If its capacity or price is negative, infinite, NaN
// or beyond the package's limits, it keeps Range.Clamp(Now) and its price counts as zero.
type Option struct {
	Variant fleet.VariantID
	// Model and Role identify the demand that it serves. Without such a demand it gets Range.Floor.
	Model    fleet.ModelID
	Role     fleet.Role
	Capacity float64       // of one replica; zero: it serves nothing, so it gets Range.Floor
	Price    float64       // of one replica for an hour
	Startup  time.Duration // a start costs the price of this time, once; negative counts as zero
	// Range is the allowed number of replicas. If its maximum is below its minimum, the minimum
	// applies.
	Range fleet.Range
	Now   int // existing replicas
	// Accelerator is the accelerator type. A replica uses GPUs accelerators on one node, or on each
	// of Nodes nodes, several of which may be the same node. Zero GPUs use nothing, and zero Nodes
	// are one.
	Accelerator fleet.Accelerator
	GPUs, Nodes int
	// Held is the existing replicas on nodes: for each, the nodes of its shares, as indices of the
	// pool's nodes. A plan may remove them, but it does not move them. One with an index that the
	// pool does not have, or with another number of shares, is ignored.
	Held [][]int32
	// Placement is the number by which nodes reject replicas. Zero: no node does.
	Placement int
}

// Pool is the accelerators of one type, by node.
type Pool struct {
	Accelerator fleet.Accelerator
	// Elastic is true if a node autoscaler adds nodes on demand: then only Limit counts.
	Elastic bool
	// Limit is the largest number of accelerators of an elastic pool for these options, without
	// those allocated to others. Zero: no limit.
	Limit int
	Nodes []Node // of equal ones, the first are used first
}

// Node is one node of a pool.
type Node struct {
	// Free is the number of accelerators available to the options' replicas together, including
	// those already allocated to them.
	Free int
	// Rejects are the placements of which the node takes no replicas. Existing ones may be there.
	Rejects []int
}

// Quota limits the accelerators of a namespace's variants together. It takes precedence over
// minimums and over existing replicas.
type Quota struct {
	Namespace   string
	Accelerator fleet.Accelerator // empty: all types together
	GPUs        int
}

// Solution is the plan and its proof.
type Solution struct {
	Counts []int   // the replicas of each option
	Shorts []Short // sorted by model and role
	// Unsatisfied minimums (and fixed numbers of replicas) because of insufficient capacity, sorted
	// by option.
	Misfits []Misfit
	// Cost is the objective over the horizon, and Penalty the part of it that pays for shortage. No
	// plan costs less than Bound. With competing demands that have no penalty, no plan is better by
	// more than Cost − Bound, shortage at its internal price included.
	Cost, Bound, Penalty float64
	// Proven is true if no plan is cheaper. Cost and Bound are then equal.
	Proven bool
	Steps  int // that were used
	// Reasons explain the number of each option; only if Problem.Reasons is set.
	Reasons []Reason
}

// Count is the number of replicas of an option.
type Count struct{ Option, Replicas int }

// Short is demand that the plan leaves unserved.
type Short struct {
	Model  fleet.ModelID
	Role   fleet.Role
	Amount float64 // in the unit of the demand
}

// Misfit is an unsatisfied minimum: the option has fewer replicas than Range.Floor because of
// insufficient capacity.
type Misfit struct{ Option, Least, Replicas int }

// Limit is the constraint, other than cost, that prevents another replica of a variant.
type Limit uint8

// The limits.
const (
	LimitNone  Limit = iota
	LimitMax         // Range.Max
	LimitNodes       // no node has enough free accelerators for another replica
	LimitPool        // the limit of the elastic pool
	LimitQuota       // the quota of the namespace
)

// Reason explains the number of an option, in comparison with the best plan that has another
// number.
type Reason struct {
	Limit Limit
	// RunnerUp is the cheapest plan for the model in which this option has another number: the
	// model's options that have replicas in it, sorted. Empty if there is no other plan.
	RunnerUp []Count
	// Extra is the price by which that plan is more expensive for an hour, in running replicas and
	// starts, without shortage. It is below zero if the plan is cheaper but uses contended
	// accelerators or leaves demand unserved. Short is the share of the demand that it leaves
	// unserved. Scarce is true if it uses more of the contended accelerators.
	Extra, Short float64
	Scarce       bool
}
