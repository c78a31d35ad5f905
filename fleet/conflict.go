package fleet

import (
	"cmp"
	"slices"
)

// Conflict is something that contradicts itself in what the variants say, or a hand other than ours at a workload. It is no
// fault of one variant alone; what follows from it for each stands in its reason.
type Conflict struct {
	Kind ConflictKind `json:"kind"`
	// Variants are all that take part, sorted.
	Variants []VariantID `json:"variants"`
	// Text says what contradicts what, what is done about it, and ends with the remedy.
	Text string `json:"text"`
}

// ConflictKind is the stable name of a kind of conflict.
type ConflictKind string

// The kinds of conflicts.
const (
	ConflictTwoObjects        ConflictKind = "TwoObjects"        // several ScaledObjects scale one target
	ConflictTwoTriggers       ConflictKind = "TwoTriggers"       // several triggers of ours stand in one object
	ConflictForeignAutoscaler ConflictKind = "ForeignAutoscaler" // a HorizontalPodAutoscaler of somebody else scales the target
	ConflictMisapplied        ConflictKind = "Misapplied"        // KEDA would make another number of ours
	ConflictFacts             ConflictKind = "Facts"             // variants say different things of the same
)

// Compare orders by kind, then variants, then text.
func (c Conflict) Compare(other Conflict) int {
	return cmp.Or(
		cmp.Compare(c.Kind, other.Kind),
		slices.CompareFunc(c.Variants, other.Variants, VariantID.Compare),
		cmp.Compare(c.Text, other.Text),
	)
}
