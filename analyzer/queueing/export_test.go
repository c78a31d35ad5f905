package queueing

// NewSizer returns a sizer whose simulations have the random orders of a seed. Those of seed 0 are
// the product's.
func NewSizer(seed uint64) *Sizer { return &Sizer{seed: seed * mostSeries} }
