package fit

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/wva-project/wva/fleet"
)

// Result is what rows say of an engine.
type Result struct {
	Cost fleet.EngineCost `json:"cost"`
	// Lead is how many iterations a request of the benchmark waited before its prompt, and Wave what part of its prompt's work each
	// client delayed the others, on average. They tell of the benchmark, not of the engine.
	Lead float64 `json:"lead"`
	Wave float64 `json:"wave"`
	// Rows is how many rows were used; Repeated is how many more were copies of them.
	Rows     int `json:"rows"`
	Repeated int `json:"repeated"`

	TPOT Deviation `json:"tpot"`
	TTFT Deviation `json:"ttft"`
	// LeftOut is how well each half of the rows is foretold by the other; nil where the rows are too few.
	LeftOut *LeftOut `json:"leftOut,omitempty"`
	// Saturating is what a term for experts would gain; nil where the rows show none.
	Saturating *Saturating `json:"saturating,omitempty"`
	Warnings   []Warning   `json:"warnings,omitempty"`
}

// Deviation is how far a fit is from the rows, knowing only what they were measured at.
type Deviation struct {
	Mean   float64 `json:"mean"`   // of the relative errors without their signs
	Worst  Row     `json:"worst"`  // where it is largest
	Fitted float64 `json:"fitted"` // what the fit says there, ms

	most float64 // the relative error there
}

// LeftOut holds mean relative errors, without signs, on rows that the fit has not seen.
type LeftOut struct {
	TPOT float64 `json:"tpot"`
	TTFT float64 `json:"ttft"`
}

// Saturating is the fit with the sixth term of the package comment.
type Saturating struct {
	Cost    fleet.EngineCost `json:"cost"`
	Experts float64          `json:"experts"` // ms
	TPOT    float64          `json:"tpot"`    // mean relative error
	LeftOut *LeftOut         `json:"leftOut,omitempty"`
}

// cellsForHalves is how many different points rows need at least to be parted in two halves that are fitted.
const cellsForHalves = 8

// Fit returns the cost that fits rows of one engine best. The order of the rows does not matter.
func Fit(rows []Row) (Result, error) {
	if len(rows) == 0 {
		return Result{}, errors.New("there are no rows; measure some, at several concurrencies and lengths")
	}
	for i, r := range rows {
		if err := errors.Join(r.faults()...); err != nil {
			return Result{}, fmt.Errorf("row %d: %w", i+1, err)
		}
	}
	used := distinct(rows)
	slices.SortFunc(used, compareRows)
	saturating := estimate(used, true)
	line := straight(used, saturating)
	result := Result{
		Cost: line.cost(), Lead: line.x[lead], Wave: line.wave,
		Rows: len(used), Repeated: len(rows) - len(used),
		LeftOut:  leftOut(used, false),
		Warnings: warnings(used, line),
	}
	result.TTFT, result.TPOT = deviations(used, line)
	if saturating.x[experts] > 0 {
		_, tpot := deviations(used, saturating)
		result.Saturating = &Saturating{Cost: saturating.cost(), Experts: saturating.x[experts], TPOT: tpot.Mean, LeftOut: leftOut(used, true)}
	}
	if err := result.Cost.Check(); err != nil {
		return Result{}, fmt.Errorf("the rows give figures that no engine has: %w", err)
	}
	return result, nil
}

// deviations returns how far a form is from rows.
func deviations(rows []Row, f form) (ttft, tpot Deviation) {
	for _, r := range rows {
		fittedTTFT, fittedTPOT := f.predict(r)
		ttft.add(r, fittedTTFT, r.TTFT)
		tpot.add(r, fittedTPOT, r.TPOT)
	}
	ttft.Mean /= float64(len(rows))
	tpot.Mean /= float64(len(rows))
	return ttft, tpot
}

// add counts the error of one row.
func (d *Deviation) add(r Row, fitted, observed float64) {
	wrong := math.Abs(fitted/observed - 1)
	d.Mean += wrong
	if wrong > d.most || d.Fitted == 0 {
		d.most, d.Worst, d.Fitted = wrong, r, fitted
	}
}
