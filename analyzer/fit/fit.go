package fit

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/wva-project/wva/fleet"
)

// Result is the fit of an engine's cost to rows.
type Result struct {
	Cost fleet.EngineCost `json:"cost"`
	// Lead is the number of iterations that a request of the benchmark waited before its prompt,
	// and Wave the part of its prompt's work by which each client delayed the others, on average.
	// They describe the benchmark, not the engine.
	Lead float64 `json:"lead"`
	Wave float64 `json:"wave"`
	// Rows is the number of rows that were used; Repeated is the number of copies of them.
	Rows     int `json:"rows"`
	Repeated int `json:"repeated"`

	TPOT Deviation `json:"tpot"`
	TTFT Deviation `json:"ttft"`
	// LeftOut is the error of predicting each half of the rows from the other; nil with too few
	// rows.
	LeftOut  *LeftOut  `json:"leftOut,omitempty"`
	Warnings []Warning `json:"warnings,omitempty"`
}

// Deviation is the error of a fit on rows. A prediction knows only the lengths and the concurrency
// of a row.
type Deviation struct {
	Mean   float64 `json:"mean"`   // mean absolute relative error
	Worst  Row     `json:"worst"`  // the row with the largest error
	Fitted float64 `json:"fitted"` // prediction for that row, ms

	most float64 // relative error of that row
}

// LeftOut holds mean absolute relative errors on rows that the fit has not seen.
type LeftOut struct {
	TPOT float64 `json:"tpot"`
	TTFT float64 `json:"ttft"`
}

// cellsForHalves is the least number of different points in rows that are split in two halves.
const cellsForHalves = 8

// Fit returns the cost that fits rows of one engine best. The order of the rows does not matter.
// The sparsity is that of the model: the experts of a layer over those that each token uses, 1 for
// a model without experts, 0 if it is not known.
//
// Rows that contradict each other are an error that names them: a fit whose median error of TPOT is
// above mostError, or TPOT that falls with concurrency.
func Fit(rows []Row, sparsity float64) (Result, error) {
	if len(rows) == 0 {
		return Result{}, errors.New("there are no rows; measure some, at several concurrencies and lengths")
	}
	for i, r := range rows {
		if err := errors.Join(r.check()...); err != nil {
			return Result{}, fmt.Errorf("row %d: %w", i+1, err)
		}
	}
	used := distinct(rows)
	slices.SortFunc(used, compareRows)
	if err := checkRising(used); err != nil {
		return Result{}, err
	}
	sparsity = chosen(used, sparsity)
	f := estimate(used, sparsity)
	if err := checkError(used, f); err != nil {
		return Result{}, err
	}
	result := Result{
		Cost: f.cost(), Lead: f.x[lead], Wave: f.wave,
		Rows: len(used), Repeated: len(rows) - len(used),
		LeftOut:  leftOut(used, sparsity),
		Warnings: warnings(used, f),
	}
	result.TTFT, result.TPOT = deviations(used, f)
	if err := result.Cost.Check(); err != nil {
		return Result{}, fmt.Errorf("the rows give a cost that no engine has: %w", err)
	}
	return result, nil
}

// deviations returns the errors of a form on rows.
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

// add adds the error of one row.
func (d *Deviation) add(r Row, fitted, observed float64) {
	wrong := math.Abs(fitted/observed - 1)
	d.Mean += wrong
	if wrong > d.most || d.Fitted == 0 {
		d.most, d.Worst, d.Fitted = wrong, r, fitted
	}
}
