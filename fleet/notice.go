package fleet

import "cmp"

// Notice is something that people are told on a variant's ScaledObject, at the moment at which it begins to be so. Two notices
// of the same are equal values.
type Notice struct {
	Variant VariantID
	// Warning is true where somebody has to do something, false where it is only worth knowing.
	Warning bool
	Code    Code
	// Text is a sentence for people. That of a warning holds nothing that changes while the warning stands.
	Text string
}

// CodeHoldEnded is the code of the notice that a variant is decided again.
const CodeHoldEnded Code = "HoldEnded"

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
