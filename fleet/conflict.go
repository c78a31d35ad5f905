package fleet

import (
	"cmp"
	"slices"
)

// Conflict is a contradiction between definitions of variants, or another autoscaler of a workload.
// The consequence for each variant is in its reason.
type Conflict struct {
	Type ConflictType `json:"type"`
	// Variants are all that take part, sorted.
	Variants []VariantID `json:"variants"`
	// Text says what contradicts what, how it is resolved, and ends with the remedy.
	Text string `json:"text"`
}

// ConflictType is the stable name of a type of conflict. Each is a Code too.
type ConflictType string

// The types of conflicts.
const (
	// ConflictDuplicateTarget: several ScaledObjects scale one workload.
	ConflictDuplicateTarget = ConflictType(CodeDuplicateTarget)
	// ConflictMultipleTriggers: one ScaledObject has several WVA triggers.
	ConflictMultipleTriggers = ConflictType(CodeMultipleTriggers)
	// ConflictConflictingHPA: an HPA that KEDA did not make scales the workload.
	ConflictConflictingHPA = ConflictType(CodeConflictingHPA)
	// ConflictUnsupportedTrigger: KEDA would not apply the number as it is meant.
	ConflictUnsupportedTrigger = ConflictType(CodeUnsupportedTrigger)
	// ConflictInconsistentMetadata: variants state different values of the same thing.
	ConflictInconsistentMetadata = ConflictType(CodeInconsistentMetadata)
)

// Compare orders by type, then variants, then text.
func (c Conflict) Compare(other Conflict) int {
	return cmp.Or(
		cmp.Compare(c.Type, other.Type),
		slices.CompareFunc(c.Variants, other.Variants, VariantID.Compare),
		cmp.Compare(c.Text, other.Text),
	)
}
