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
//	Alpha + Experts·Touched(n) + Beta·n + Gamma·C/1000 +
//	Prefill·Σchunk + PrefillSquared·Σchunk·(2·position+chunk)/10⁶
//
// milliseconds, where position is how many tokens of the prompt are in the KV cache already. None
// is negative, and Alpha is above zero.
type EngineCost struct {
	Alpha          float64 `json:"alpha"`          // ms
	Beta           float64 `json:"beta"`           // ms per request in decode
	Gamma          float64 `json:"gamma"`          // ms per thousand tokens of context
	Prefill        float64 `json:"prefill"`        // ms per token of a prompt
	PrefillSquared float64 `json:"prefillSquared"` // ms per million squared tokens of a prompt
	// Experts is the ms that all experts of a mixture-of-experts model take; 0: it has none.
	Experts float64 `json:"experts,omitzero"`
	// Sparsity is the number of experts of a layer over those that each token uses, by the model's
	// configuration; 0: UsualSparsity. At 1 every token uses all experts.
	Sparsity float64 `json:"sparsity,omitzero"`
}

// UsualSparsity is that of most published models with experts, such as 8 of 256.
const UsualSparsity = 32

// Touched returns the expected share of the experts that a batch of n tokens uses: each token uses
// one in Sparsity of them, chosen independently.
func (c EngineCost) Touched(n float64) float64 { return -math.Expm1(-c.decay() * n) }

// decay is by how much the logarithm of the share of unused experts falls with each token.
func (c EngineCost) decay() float64 {
	const all = 50 // the share that is left is below any figure's precision
	switch {
	case c.Sparsity == 0:
		return -math.Log1p(-1.0 / UsualSparsity)
	case c.Sparsity <= 1:
		return all
	}
	return min(all, -math.Log1p(-1/c.Sparsity))
}

// Linear returns the cost without experts whose iterations take as long at a batch of n requests,
// and as their time rises there: the tangent. At other batches its iterations are longer, as the
// share of experts in use grows ever more slowly, so that capacities computed with it are
// conservative.
func (c EngineCost) Linear(n float64) EngineCost {
	decay := c.decay()
	slope := c.Experts * decay * math.Exp(-float64(decay*n))
	c.Alpha += float64(c.Experts*c.Touched(n)) - float64(slope*n)
	c.Beta += slope
	c.Experts, c.Sparsity = 0, 0
	return c
}

// CostFigure is one of the figures of an EngineCost, as people write it.
type CostFigure struct {
	// Name is that of the figure in configuration and triggers, such as "alpha".
	Name string
	// Unit is that of the figure in texts.
	Unit string
	// Lowest and Highest bound it, both included. Only Alpha has to be above zero: no engine is
	// faster than its Lowest, and a figure in seconds is then rejected.
	Lowest, Highest float64
	// Of returns the figure's place.
	Of func(*EngineCost) *float64
}

// CostFigures returns the figures in the order in which they are written. The first is required.
func CostFigures() []CostFigure {
	const ms, ratio = "milliseconds", "experts for each one that a token uses"
	return []CostFigure{
		{"alpha", ms, 0.1, 10_000, func(c *EngineCost) *float64 { return &c.Alpha }},
		{"beta", ms, 0, 1000, func(c *EngineCost) *float64 { return &c.Beta }},
		{"gamma", ms, 0, 1000, func(c *EngineCost) *float64 { return &c.Gamma }},
		{"prefill", ms, 0, 1000, func(c *EngineCost) *float64 { return &c.Prefill }},
		{"prefillSquared", ms, 0, 1_000_000, func(c *EngineCost) *float64 { return &c.PrefillSquared }},
		{"experts", ms, 0, 10_000, func(c *EngineCost) *float64 { return &c.Experts }},
		{"sparsity", ratio, 1, 10_000, func(c *EngineCost) *float64 { return &c.Sparsity }},
	}
}

// Check returns an error if a figure is outside the bounds of CostFigures.
func (c EngineCost) Check() error {
	for i, figure := range CostFigures() {
		x := *figure.Of(&c)
		if i > 0 && x == 0 { // it is left out
			continue
		}
		if math.IsNaN(x) || x < figure.Lowest || x > figure.Highest {
			return fmt.Errorf("%s %v is not from %v to %v; write it in %s", figure.Name, x, figure.Lowest, figure.Highest, figure.Unit)
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
