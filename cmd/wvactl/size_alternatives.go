package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/wva-project/wva/analyzer/queueing"
)

// alternative is a change of one flag, and the capacity of a replica with it.
type alternative struct {
	Flag     string  `json:"flag"`
	Rate     float64 `json:"ratePerSecond"`
	Doubtful bool    `json:"formulaDoubtful,omitzero"`
}

// alternatives tries other limits, each alone, and returns those with which the objective is
// feasible by the formula.
func (s sizing) alternatives() []alternative {
	var found []alternative
	try := func(flag string, change func(*queueing.Question)) {
		changed := s.Question
		change(&changed)
		if changed == s.Question {
			return
		}
		if a, err := s.sizer.MaxRate(changed); err == nil && !a.Infeasible {
			found = append(found, alternative{flag, a.Rate, a.Doubtful})
		}
	}
	for _, budget := range []int{512, 1024, 2048, 4096, 8192, 16384} {
		try("--batched-tokens "+strconv.Itoa(budget), func(q *queueing.Question) { q.Replica.BatchedTokens = budget })
	}
	try(fmt.Sprintf("--max-sequences %d", 4*s.Replica.MaxSequences), func(q *queueing.Question) { q.Replica.MaxSequences *= 4 })
	try("--kv-tokens "+short(2*s.Replica.KVTokens), func(q *queueing.Question) { q.Replica.KVTokens *= 2 })
	for _, factor := range []float64{1.5, 2, 4} {
		try("--ttft "+limitFlag(factor*s.Objective.TTFT), func(q *queueing.Question) { q.Objective.TTFT *= factor })
		try("--itl "+limitFlag(factor*s.Objective.ITL), func(q *queueing.Question) { q.Objective.ITL *= factor })
	}
	// If no share is left, the question is invalid and skipped.
	twice := 1 - 2*(1-s.Objective.Percentile)
	try("--percentile "+decimal(fiveDigits(twice)), func(q *queueing.Question) { q.Objective.Percentile = twice })
	if s.Dispersion > 1 {
		try("--dispersion 1", func(q *queueing.Question) { q.Dispersion = 1 })
	}
	return found
}

// limitFlag returns a limit as a value of its flag.
func limitFlag(seconds float64) string { return strings.ReplaceAll(inWords(seconds), " ", "") }

func alternativesText(infeasible bool, all []alternative) string {
	switch {
	case !infeasible:
		return ""
	case len(all) == 0:
		return "No other limit alone, of engine or objective, would make it feasible: try another accelerator or precision.\n"
	}
	var b strings.Builder
	b.WriteString("It is feasible with one of:\n")
	for _, a := range all {
		note := ""
		if a.Doubtful {
			note = ", roughly"
		}
		fmt.Fprintf(&b, "  %-24s %s requests/s%s\n", a.Flag, short(a.Rate), note)
	}
	return b.String()
}
