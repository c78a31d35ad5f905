package fit

import (
	"fmt"
	"math"
)

// Row is one measurement in closed loop.
type Row struct {
	// Line is the line of the row in its file; 0 without a file.
	Line int `json:"line,omitzero"`
	// Concurrency is the number of clients; each has one request in flight at all times. >= 1.
	Concurrency float64 `json:"concurrency"`
	Prompt      float64 `json:"isl"` // tokens, mean; >= 1
	Output      float64 `json:"osl"` // tokens, mean; >= 2, since the time between tokens needs two
	TTFT        float64 `json:"ttftMs"`
	TPOT        float64 `json:"tpotMs"` // mean time per output token after the first
}

// String names the row in an error.
func (r Row) String() string {
	text := fmt.Sprintf("TPOT %.4g ms at concurrency %v, isl %v, osl %v", r.TPOT, r.Concurrency, r.Prompt, r.Output)
	if r.Line > 0 {
		text += fmt.Sprintf(" (line %d)", r.Line)
	}
	return text
}

// Bounds of a row. A time outside them is probably in another unit.
const (
	mostConcurrency = 1e6
	mostTokens      = 1e7
	leastTPOT       = 0.05   // ms
	mostTPOT        = 10_000 // ms
	leastTTFT       = 1e-3   // ms
	mostTTFT        = 1e8    // ms
)

// check returns the validation errors of a row.
func (r Row) check() []error {
	var errs []error
	within := func(name string, x, least, most float64, remedy string) {
		if math.IsNaN(x) || x < least || x > most {
			errs = append(errs, fmt.Errorf("%s %v is not from %v to %v; %s", name, x, least, most, remedy))
		}
	}
	within("concurrency", r.Concurrency, 1, mostConcurrency, "give the number of requests in flight")
	within("isl", r.Prompt, 1, mostTokens, "give the prompt's tokens")
	within("osl", r.Output, 2, mostTokens, "give the output's tokens; the time between tokens needs two")
	within("TTFT in milliseconds", r.TTFT, leastTTFT, mostTTFT, "the name of the column gives the unit: ttft_ms, ttft_s, ttft_us, and ttft for seconds")
	within("TPOT in milliseconds", r.TPOT, leastTPOT, mostTPOT, "the name of the column gives the unit: tpot_ms, tpot_s, tpot_us, and tpot for seconds")
	return errs
}

// decoding is the time in decode of a request, in ms.
func (r Row) decoding() float64 { return (r.Output - 1) * r.TPOT }

// batch is the mean number of requests in decode, by Little's law.
func (r Row) batch() float64 { return r.Concurrency * r.decoding() / (r.TTFT + r.decoding()) }

// cell is the point at which a row was measured.
type cell struct{ prompt, output, concurrency float64 }

func (r Row) cell() cell { return cell{r.Prompt, r.Output, r.Concurrency} }

// distinct returns the rows without copies: those that repeat all figures of an earlier one.
func distinct(rows []Row) []Row {
	seen := make(map[Row]bool, len(rows))
	var kept []Row
	for _, r := range rows {
		figures := r
		figures.Line = 0
		if !seen[figures] {
			seen[figures] = true
			kept = append(kept, r)
		}
	}
	return kept
}
