package fleet

// Advice is what would be decided of an advisory variant if it were scaled here. It is told to people only.
type Advice struct {
	Variant VariantID `json:"variant"`
	// Replicas is the number that is advised. It means something only where Known.
	Replicas int  `json:"replicas"`
	Known    bool `json:"known"`
	// Held is true where deciding was not possible: the advice is to leave the replicas as they are.
	Held   bool   `json:"held,omitzero"`
	Reason Reason `json:"reason"`
	Facts  Facts  `json:"facts"`
	// Cost is the price of the advised replicas for an hour, where Known; CostNow that of the replicas which are asked for
	// today, where Facts.CurrentKnown.
	Cost    float64 `json:"cost"`
	CostNow float64 `json:"costNow"`
}

// Advise returns the advice that a decision makes.
func Advise(d Decision) Advice {
	a := Advice{Variant: d.Variant, Replicas: d.Replicas, Known: d.Known, Held: d.Held, Reason: d.Reason, Facts: d.Facts}
	if a.Known {
		a.Cost = float64(a.Replicas) * a.Facts.Cost
	}
	if a.Facts.CurrentKnown {
		a.CostNow = float64(a.Facts.Current) * a.Facts.Cost
	}
	return a
}

// Saved returns by how much an hour would be cheaper if the advice were followed, below zero where it would be dearer; false
// where one of the two prices is not known. Summed over time it is what would have been saved.
func (a Advice) Saved() (float64, bool) {
	if !a.Known || !a.Facts.CurrentKnown {
		return 0, false
	}
	return a.CostNow - a.Cost, true
}
