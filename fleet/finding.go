package fleet

import (
	"cmp"
	"slices"
)

// Problem is a fact with its remedy. They are two fields, because a fact may quote a value that a
// tenant wrote. The zero value is none.
type Problem struct {
	Text   string `json:"text"`   // one line: the field, its value and the consequence
	Remedy string `json:"remedy"` // what to do
}

// String returns text and remedy as one line; "" for the zero value.
func (p Problem) String() string {
	if p == (Problem{}) {
		return ""
	}
	return p.Text + "; " + p.Remedy
}

// Finding is something in the definition of a variant that reads well and does not scale as it
// should.
type Finding struct {
	Code   Code   `json:"code"`
	Text   string `json:"text"`   // one line: the field, its value and the consequence
	Remedy string `json:"remedy"` // what to do
}

// String returns text and remedy as one line.
func (f Finding) String() string { return f.Text + "; " + f.Remedy }

// Compare orders by code, then text.
func (f Finding) Compare(other Finding) int {
	return cmp.Or(cmp.Compare(f.Code, other.Code), cmp.Compare(f.Text, other.Text))
}

// SortFindings returns the findings sorted, each once.
func SortFindings(findings []Finding) []Finding {
	return slices.Compact(slices.SortedFunc(slices.Values(findings), Finding.Compare))
}

// Autoscaler is the state of the HPA that KEDA makes for a ScaledObject. The zero value is unknown.
type Autoscaler struct {
	// Observed is false if the HPAs of the namespace, or the status of the ScaledObject, were not
	// read.
	Observed bool `json:"observed,omitzero"`
	// Code is empty if the HPA applies the number, or none is needed: HPAMissing, HPAInactive or
	// AmbiguousSelector otherwise.
	Code Code `json:"code,omitzero"`
	// Text is the problem with its remedy; empty with Code.
	Text string `json:"text,omitzero"`
}
