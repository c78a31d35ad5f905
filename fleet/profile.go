package fleet

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Profile describes an engine that serves a model on one accelerator type, measured beforehand.
type Profile struct {
	// Namespace is that of the variants that the row is for; empty: of all namespaces.
	Namespace string `json:"namespace,omitzero"`
	// Model is the model's public name, as variants give it in modelID; each * in it stands for any
	// text. Case does not matter.
	Model       string      `json:"model"`
	Accelerator Accelerator `json:"accelerator"`
	// Precision is that of the weights, such as bf16 or fp8; empty if the row is for any.
	Precision string `json:"precision,omitzero"`
	// TensorParallel is over how many accelerators each layer is split; >= 1.
	TensorParallel int `json:"tensorParallel"`

	Cost EngineCost `json:"cost"`
	// KVTokens is the KV cache size of one replica in tokens, MaxSequences its limit of requests in
	// a batch and BatchedTokens that of tokens in one iteration. They count if neither the engine
	// nor its arguments give them. Zero: not known.
	KVTokens      float64 `json:"kvTokens,omitzero"`
	MaxSequences  int     `json:"maxSequences,omitzero"`
	BatchedTokens int     `json:"batchedTokens,omitzero"`
	// Origin is the source of the figures.
	Origin string `json:"origin,omitzero"`
}

// EngineCost is the time of one engine iteration. An iteration in which n requests decode, whose
// contexts add up to C tokens, and chunks of prompts are computed takes
//
//	Alpha + Beta·n + Gamma·C/1000 + Prefill·Σchunk + PrefillSquared·Σchunk·(2·position+chunk)/10⁶
//
// milliseconds, where position is how many tokens of the prompt are in the KV cache already. None
// is negative, and Alpha is above zero.
type EngineCost struct {
	Alpha          float64 `json:"alpha"`          // ms
	Beta           float64 `json:"beta"`           // ms per request in decode
	Gamma          float64 `json:"gamma"`          // ms per thousand tokens of context
	Prefill        float64 `json:"prefill"`        // ms per token of a prompt
	PrefillSquared float64 `json:"prefillSquared"` // ms per million squared tokens of a prompt
}

// CostFigure is one of the figures of an EngineCost, as people write it.
type CostFigure struct {
	// Name is that of the figure in configuration and triggers, such as "alpha".
	Name string
	// Lowest and Highest bound it, both included. Only Alpha has to be above zero: no engine is
	// faster than its Lowest, and a figure in seconds is then rejected.
	Lowest, Highest float64
	// Of returns the figure's place.
	Of func(*EngineCost) *float64
}

// CostFigures returns the figures in the order in which they are written. The first is required.
func CostFigures() []CostFigure {
	return []CostFigure{
		{"alpha", 0.1, 10_000, func(c *EngineCost) *float64 { return &c.Alpha }},
		{"beta", 0, 1000, func(c *EngineCost) *float64 { return &c.Beta }},
		{"gamma", 0, 1000, func(c *EngineCost) *float64 { return &c.Gamma }},
		{"prefill", 0, 1000, func(c *EngineCost) *float64 { return &c.Prefill }},
		{"prefillSquared", 0, 1_000_000, func(c *EngineCost) *float64 { return &c.PrefillSquared }},
	}
}

// Check returns an error if a figure is outside the bounds of CostFigures.
func (c EngineCost) Check() error {
	for _, figure := range CostFigures() {
		if x := *figure.Of(&c); math.IsNaN(x) || x < figure.Lowest || x > figure.Highest {
			return fmt.Errorf("%s %v is not from %v to %v; write it in milliseconds", figure.Name, x, figure.Lowest, figure.Highest)
		}
	}
	return nil
}

// String returns the cost as a trigger gives it, such as "alpha=6.07,beta=0.034": Alpha, and the
// figures that are not zero. It returns "" for the zero value.
func (c EngineCost) String() string {
	if c == (EngineCost{}) {
		return ""
	}
	var parts []string
	for i, figure := range CostFigures() {
		if x := *figure.Of(&c); i == 0 || x != 0 {
			parts = append(parts, figure.Name+"="+strconv.FormatFloat(x, 'g', -1, 64))
		}
	}
	return strings.Join(parts, ",")
}

// Bucket is one bucket of a histogram of lengths.
type Bucket struct {
	// Upper is the largest length that counts; 0 in the last bucket, which has no bound.
	Upper float64 `json:"upper,omitzero"`
	// Count is how much falls into this bucket alone: a rate or a number, only shares matter.
	Count float64 `json:"count"`
}
