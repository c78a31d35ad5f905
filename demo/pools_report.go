package demo

import (
	"fmt"
	"strings"
)

// poolColumn is the column of one kind of accelerator in the table.
const poolColumn = "  %-13s"

func (r *report) poolLegend() {
	if len(r.pools) > 0 {
		r.print("Of each kind of accelerator on nodes: held/there are, and what all wanted replicas take.\n")
	}
}

func (r *report) poolHeader() {
	for _, kind := range r.pools {
		r.print(poolColumn, kind)
	}
}

func (r *report) poolCells(pools []PoolTick) {
	for _, p := range pools {
		r.print(poolColumn, fmt.Sprintf("%d/%d wanted %d", p.Held, p.GPUs, p.Wanted))
	}
}

// poolSummary writes what became of the nodes.
func (r *report) poolSummary(s Summary) {
	if len(s.Pools) == 0 {
		return
	}
	r.print("\nAccelerators on nodes, for every policy alike. Of WVA:\n")
	for _, p := range s.Pools {
		r.print("  %s: at most %d of %d held and %d wanted; %s; replicas waited %.0f s for room%s.\n",
			p.Accelerator, p.Held, p.GPUs, p.Wanted, fullness(p.Full, s.Seconds), p.PendingSeconds, refusals(p.NoRoom))
	}
	r.print("Replicas of the static fleet waited %.0f s for room, those of the HPA %.0f s.\n",
		s.Rivals.StaticPeak.PendingSeconds, s.Rivals.HPAQueue.PendingSeconds)
}

// shownStretches is how many stretches a line of the summary names.
const shownStretches = 4

// fullness says when all accelerators of a kind were held.
func fullness(full []Stretch, end int) string {
	if len(full) == 0 {
		return "never all"
	}
	var parts []string
	for i, s := range full {
		if i == shownStretches {
			parts = append(parts, fmt.Sprintf("%d times more", len(full)-i))
			break
		}
		until := "the end"
		if s.Until < end {
			until = clockText(s.Until)
		}
		parts = append(parts, clockText(s.From)+" to "+until)
	}
	return "all from " + strings.Join(parts, ", ")
}

// refusals says which variants needed more than there was, and for how long.
func refusals(rows []Refusal) (text string) {
	for _, row := range rows {
		length := fmt.Sprintf("%d s", row.Seconds)
		if row.Seconds >= 120 {
			length = fmt.Sprintf("%d min", (row.Seconds+30)/60)
		}
		text += fmt.Sprintf("; %s: no room for %s", row.Variant, length)
	}
	return text
}

// clockText writes a virtual time as the table does.
func clockText(second int) string { return fmt.Sprintf("%d:%02d", second/60, second%60) }
