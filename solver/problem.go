package solver

import (
	"time"

	"github.com/wva-project/wva/fleet"
)

// DefaultHorizon is the time over which the price of a running replica is counted where the problem does not say.
const DefaultHorizon = time.Hour

// DefaultSteps is the budget of a problem that does not say, for every 2,048 demands that it has. A step takes 10 to 100 ns.
const DefaultSteps = 1 << 23

// DefaultTolerance is the gap at which a problem that does not say is solved well enough.
const DefaultTolerance = 0.001

// Problem is what is to be solved. The order of its rows carries no meaning.
type Problem struct {
	Demands []Demand // one per model and role; of several the largest counts
	Options []Option // one per variant; of several one counts, chosen by their content
	// Pools are the accelerators that are there, one row per kind. A kind without a row is unlimited.
	Pools []Pool
	// Holdings are the replicas that stand on nodes, a row for each. They stay where they are: a plan may give them up, and not
	// move them.
	Holdings []Holding
	Quotas   []Quota
	// Horizon is the time over which a running replica's price is counted. Zero or less: DefaultHorizon.
	Horizon time.Duration
	// Steps is the budget of search steps for the whole problem. It is shared evenly among the models, and what easy ones
	// leave goes to the hard ones. A first plan is made whatever the budget. Zero or less: DefaultSteps.
	Steps int
	// Tolerance is the share of the cost by which it may exceed the bound without a further search, where demands compete for
	// accelerators. Zero: DefaultTolerance. Below zero: only a proof or the budget ends the search.
	Tolerance float64
	// Reasons asks for Solution.Reasons.
	Reasons bool
}

// Demand is what is asked of one model, or of the replicas of one role of it.
type Demand struct {
	Model fleet.ModelID
	Role  fleet.Role
	// Amount is in the unit of Option.Capacity. An amount that is negative, infinite or not a number is unknown: the
	// model's options stay at Range.Clamp(Now).
	Amount float64
	// Penalty is what leaving a part of it unserved costs, cheapest pieces first; what goes beyond their shares costs as the last
	// one. Empty (or unusable, or where the demand does not compete above a million times the price of everything that could serve
	// it): no price is too high, so the least shortage comes first and the least cost second.
	//
	// Where such demands compete for accelerators, shortage costs them a multiple of what serving them alone would cost, in
	// five pieces of which each costs twice the one before: it spreads evenly over models, whatever their size. That price is
	// in no sum that is told.
	Penalty []Piece
	// Priority orders demands without a penalty that compete: those of a higher one are served first.
	Priority int
}

// Piece is a part of a demand and the price of leaving it unserved.
type Piece struct {
	Share float64 // of the demand, above 0
	Price float64 // of leaving the whole demand unserved for an hour at this rate; a share of it costs that share
}

// Option is a variant that can serve a model. One whose capacity or price is negative, infinite, not a number or beyond the
// package's limits cannot be weighed: it stays at Range.Clamp(Now), and its price counts as nothing.
type Option struct {
	Variant fleet.VariantID
	// Model and Role are those of the demand that it serves. Without such a demand it goes to Range.Floor.
	Model    fleet.ModelID
	Role     fleet.Role
	Capacity float64       // what one replica carries; zero: nothing, so it goes to Range.Floor
	Price    float64       // of one replica for an hour
	Startup  time.Duration // a start costs this long of the price, once; negative counts as zero
	// Range is where the number of replicas may be. Where it contradicts itself, the minimum wins.
	Range fleet.Range
	Now   int // replicas that stand
	// Accelerator is the kind that a replica takes: GPUs of them on one node, or on each of Nodes nodes, of which several may be
	// the same one. Zero GPUs take nothing, and zero Nodes are one.
	Accelerator fleet.Accelerator
	GPUs, Nodes int
}

// Pool is the accelerators of one kind, by node.
type Pool struct {
	Accelerator fleet.Accelerator
	// Elastic is true where a node autoscaler adds nodes as they are asked for: then only Limit counts.
	Elastic bool
	// Limit is how many accelerators there may be in all of an elastic pool, those that others hold not counted. Zero: any number.
	Limit int
	Nodes []Node
}

// Node is one node of a pool.
type Node struct {
	Name string
	// Free is how many accelerators the options' replicas may have together, those that they hold already included.
	Free int
}

// Holding is a replica that stands, and the nodes on which it holds its accelerators: Option.Nodes of them, a node several times
// where it holds several shares of it. A row that names other nodes than those of the pool is not counted.
type Holding struct {
	Variant fleet.VariantID
	Nodes   []string
}

// Quota is how many accelerators the variants of a namespace may have together. It goes before minimums, and before what stands.
type Quota struct {
	Namespace   string
	Accelerator fleet.Accelerator // empty: all kinds together
	GPUs        int
}

// Solution is the plan and its proof.
type Solution struct {
	Counts []Count // sorted by variant, every variant of the options once
	Shorts []Short // sorted by model and role
	// Misfits are minimums (and replicas that are to stay) for which there is no room, sorted by variant.
	Misfits []Misfit
	// Cost is the objective over the horizon, and Penalty the part of it that pays for shortage. No plan costs less than Bound; of
	// demands without a penalty that compete: no plan is better by more than Cost − Bound, shortage at its price included.
	Cost, Bound, Penalty float64
	// Proven is true where the plan is the cheapest there is. Cost and Bound are then equal.
	Proven bool
	Steps  int // that were taken
	// Reasons say why each variant has its number, sorted by variant; only where Problem.Reasons.
	Reasons []Reason
}

// Count is the number of replicas of a variant.
type Count struct {
	Variant  fleet.VariantID
	Replicas int
}

// Short is demand that the plan leaves unserved.
type Short struct {
	Model  fleet.ModelID
	Role   fleet.Role
	Amount float64 // in the unit of the demand
}

// Misfit is a variant that has less than the least of its range (Range.Floor), because there is no room for more.
type Misfit struct {
	Variant         fleet.VariantID
	Least, Replicas int
}

// Limit is what keeps a variant from having another replica, beside that it costs something.
type Limit uint8

// The limits.
const (
	LimitNone  Limit = iota
	LimitMax         // its range ends
	LimitNodes       // no node has room for another replica
	LimitPool        // the elastic pool may not grow further
	LimitQuota       // the quota of its namespace is full
)

// Reason says why a variant has its number, beside what the plan would be with another one.
type Reason struct {
	Variant fleet.VariantID
	Limit   Limit
	// RunnerUp is the cheapest other plan for the model in which this variant has another number: the model's variants that have
	// replicas in it. Empty where there is no other plan.
	RunnerUp []Count
	// Extra is by how much that plan is dearer for an hour in running replicas and starts, shortage not counted; below zero where
	// it is cheaper, and accelerators that others need more, or demand left unserved, speak against it. Short is the share of the
	// demand that it leaves unserved, and Scarce is true where it takes accelerators that are scarce.
	Extra, Short float64
	Scarce       bool
}
