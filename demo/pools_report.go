package demo

import (
	"fmt"
	"strings"
)

// poolSummary writes the use of the nodes.
func (r *report) poolSummary(s Summary) {
	if len(s.Pools) == 0 {
		return
	}
	r.print("\nAccelerators on nodes, which are the same for every policy. WVA:\n")
	for _, p := range s.Pools {
		r.paragraph(fmt.Sprintf("%s: at most %d of %d allocated and %d wanted; %s; replicas Pending for %.0f s in total%s.",
			p.Accelerator, p.Allocated, p.GPUs, p.Wanted, fullPeriods(p.Full, s.Seconds), p.PendingSeconds, shortages(p.Insufficient)))
	}
	r.paragraph(fmt.Sprintf("Baselines: replicas Pending for %.0f s in total in the static fleet, and for %.0f s under the HPA.",
		s.Baselines.StaticPeak.PendingSeconds, s.Baselines.HPAQueue.PendingSeconds))
}

// shownPeriods is the largest number of periods in a line of the summary.
const shownPeriods = 4

// fullPeriods returns a text on the periods in which all accelerators of a type were allocated.
func fullPeriods(full []Period, end int) string {
	if len(full) == 0 {
		return "never all allocated"
	}
	var parts []string
	for i, s := range full {
		if i == shownPeriods {
			parts = append(parts, fmt.Sprintf("%d times more", len(full)-i))
			break
		}
		until := "the end"
		if s.Until < end {
			until = clockText(s.Until)
		}
		parts = append(parts, clockText(s.From)+" to "+until)
	}
	return "all allocated from " + strings.Join(parts, ", ")
}

// shortages returns a text on the variants that had too few accelerators, and for how long.
func shortages(rows []Shortage) (text string) {
	for _, row := range rows {
		length := fmt.Sprintf("%d s", row.Seconds)
		if row.Seconds >= 120 {
			length = fmt.Sprintf("%d min", (row.Seconds+30)/60)
		}
		text += fmt.Sprintf("; %s: insufficient accelerators for %s", row.Variant, length)
	}
	return text
}

// clockText formats a virtual time as in the table.
func clockText(second int) string { return fmt.Sprintf("%d:%02d", second/60, second%60) }
