package fleet

import "cmp"

// Notice is an event for people on a variant's ScaledObject, at the moment at which a situation
// begins or a number changes. Two notices of the same situation are equal values.
type Notice struct {
	Variant VariantID
	// Warning is true if somebody has to act, false if it is for information.
	Warning bool
	Code    Code
	// Text is one line for people. That of a warning holds nothing that changes while the situation
	// lasts.
	Text string
}

// Compare orders by variant, then warnings before the rest, then code and text.
func (n Notice) Compare(other Notice) int {
	return cmp.Or(
		n.Variant.Compare(other.Variant),
		n.weight()-other.weight(),
		cmp.Compare(n.Code, other.Code),
		cmp.Compare(n.Text, other.Text),
	)
}

func (n Notice) weight() int {
	if n.Warning {
		return 0
	}
	return 1
}
