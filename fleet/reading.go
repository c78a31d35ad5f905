package fleet

import (
	"fmt"
	"math"
)

// ReadingState is the state of one metric at one instant. The zero value is Absent.
type ReadingState uint8

// The five states of a metric.
const (
	Absent  ReadingState = iota // no series answered
	Present                     // a finite value, measured recently enough
	Stale                       // a series answered, but its last sample is too old to act on
	NaN                         // the engine reported something that is not a finite number
	// a counter was born again within the window; the value is a lower bound
	Reset
)

var readingStates = [...]string{Absent: "absent", Present: "present", Stale: "stale", NaN: "nan", Reset: "reset"}

// String returns the state's name in lower case.
func (s ReadingState) String() string {
	if int(s) < len(readingStates) {
		return readingStates[s]
	}
	return fmt.Sprintf("ReadingState(%d)", uint8(s))
}

// MarshalText encodes the state as its name.
func (s ReadingState) MarshalText() ([]byte, error) {
	if int(s) >= len(readingStates) {
		return nil, fmt.Errorf("reading state %d is unknown", uint8(s))
	}
	return []byte(readingStates[s]), nil
}

// UnmarshalText decodes a state's name.
func (s *ReadingState) UnmarshalText(text []byte) error {
	for state, name := range readingStates {
		if name == string(text) {
			*s = ReadingState(state)
			return nil
		}
	}
	return fmt.Errorf("reading state %q: write one of %v", text, readingStates)
}

// Reading is one metric at one instant. Its zero value is an absent one. Value is a number up to
// largest; it means something only when the state is Present or Reset.
type Reading struct {
	State ReadingState `json:"state"`
	Value float64      `json:"value,omitzero"`
}

// largest is the magnitude up to which a metric is a number: no engine, gateway or clock reports
// more, and sums and products of such numbers over a fleet are finite.
const largest = 1e15

// Observed returns the reading of a measured value: Present, or NaN if no metric can have the
// value.
func Observed(value float64) Reading {
	if !(math.Abs(value) <= largest) { // also NaN
		return Reading{State: NaN}
	}
	return Reading{State: Present, Value: value}
}

// Known returns the value and whether it may be used: the state is Present or Reset.
func (r Reading) Known() (float64, bool) {
	if r.State == Present || r.State == Reset {
		return r.Value, true
	}
	return 0, false
}

// Or returns the value if it is known, else the given one.
func (r Reading) Or(value float64) float64 {
	if v, ok := r.Known(); ok {
		return v
	}
	return value
}
