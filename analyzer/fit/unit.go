package fit

import (
	"fmt"
	"math"
)

// Unit is the unit of the times in a file.
type Unit string

// The units. UnitByName is that of the name of each column.
const (
	UnitByName   Unit = ""
	Microseconds Unit = "us"
	Milliseconds Unit = "ms"
	Seconds      Unit = "s"
)

// word names a unit in texts.
func (u Unit) word() string {
	return map[Unit]string{Microseconds: "microseconds", Milliseconds: "milliseconds", Seconds: "seconds"}[u]
}

// scales returns the milliseconds of each unit.
func scales() map[Unit]float64 {
	return map[Unit]float64{Microseconds: 1e-3, Milliseconds: 1, Seconds: 1e3}
}

// A median TPOT outside these bounds is probably in another unit than its column says: people read
// slower than the slowest, and no engine is faster than the fastest. In ms.
const (
	slowestTPOT = 500
	fastestTPOT = 0.5
	commonTPOT  = 15
)

// shortestTTFT is the least median TTFT in units of TPOT. A request waits for an iteration at
// least.
const shortestTTFT = 0.1

// checkUnits asks about times that are probably in another unit than their columns say. Times whose
// unit was given are not in question.
func (t *tableReader) checkUnits() error {
	if t.unit != UnitByName || len(t.tpot) == 0 || len(t.ttft) == 0 {
		return nil
	}
	figure := func(x float64) float64 { return x }
	tpot, ttft := median(t.tpot, figure), median(t.ttft, figure)
	switch {
	case !(tpot >= fastestTPOT && tpot <= slowestTPOT):
		at, seems := t.columns["tpot"], likely(tpot/t.columns["tpot"].scale)
		return fmt.Errorf("the median TPOT is %.4g ms by the column %s, which is not from %v to %v ms; are the times in another unit? "+
			"They look like %s: write --unit %s if they are, or --unit %s to confirm that of the column",
			tpot, at.header, fastestTPOT, slowestTPOT, seems.word(), seems, at.unit())
	case ttft < shortestTTFT*tpot:
		at := t.columns["ttft"]
		return fmt.Errorf("the median TTFT is %.4g ms by the column %s, but TPOT is %.4g ms; a first token takes an iteration at least. "+
			"Are the two in different units? End the name of each column in its unit, _ms, _s or _us, or write --unit %s to confirm that of TTFT",
			ttft, at.header, tpot, at.unit())
	}
	return nil
}

// unit returns the unit in which the column is read.
func (p position) unit() Unit {
	for unit, scale := range scales() {
		if scale == p.scale {
			return unit
		}
	}
	return Milliseconds
}

// likely returns the unit in which a figure is nearest to a common TPOT.
func likely(tpot float64) Unit {
	best, least := Milliseconds, math.Inf(1)
	for _, unit := range []Unit{Milliseconds, Seconds, Microseconds} {
		if far := math.Abs(math.Log(tpot * scales()[unit] / commonTPOT)); far < least {
			best, least = unit, far
		}
	}
	return best
}
