package demo

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	tableColumns = 80 // of the widest line
	tableSeconds = 30 // of virtual time between two rows
	headerRows   = 20 // between two headers
	variantCell  = "  %-11s"
)

// begin writes the queries to try meanwhile, and the legend of the table.
func (r *report) begin(address, operators string) {
	r.began = time.Now()
	if r.json {
		return
	}
	r.print(`WVA decides for a simulated fleet, all in this process. The gRPC server can be
queried meanwhile, from a second terminal (make bin/grpcurl builds the client):

bin/grpcurl -plaintext %[1]s list
bin/grpcurl -plaintext %[2]s wva.v1alpha1.OperatorService/ListVariants

The README has the calls of KEDA. Ctrl-C ends the run with a summary.

Columns of a variant: wanted>current replicas (ready); h: held. TTFT and ITL of
the chat model: 95th percentile of the last minute.
`, address, operators)
	r.paragraph("SLO: " + r.objectives())
}

// row writes a cycle, with the reasons of its changes. The table has a row for one cycle in half a
// minute, and for every cycle with changes.
func (r *report) row(tick Tick, changed []change) {
	if r.rows%headerRows == 0 {
		r.print("\n%6s %6s", "time", "req/s")
		for _, id := range r.variants {
			r.print(variantCell, id.Name)
		}
		r.print("%6s %6s %6s %7s\n", "queue", "TTFT", "ITL", "cost")
	}
	r.rows++
	r.print("%6s %6.1f", clockText(tick.Seconds), tick.Arrivals)
	for _, v := range tick.Variants {
		r.print(variantCell, v.cell())
	}
	ttft, itl := "-", "-" // no request was served in the last minute
	if tick.TTFT > 0 {
		ttft, itl = fmt.Sprintf("%.2fs", tick.TTFT), fmt.Sprintf("%.0fms", 1000*tick.ITL)
	}
	r.print("%6d %6s %6s %7.2f\n", tick.Queued, ttft, itl, tick.Cost)
	if !slices.Equal(tick.Pools, r.shown) {
		r.shown = tick.Pools
		for _, p := range tick.Pools {
			r.print("        %s: %d of %d GPUs allocated, %d wanted\n", p.Accelerator, p.Allocated, p.GPUs, p.Wanted)
		}
	}
	for _, c := range changed {
		const indent = "        "
		for i, line := range wrap(fmt.Sprintf("%s %s: %s", c.Name, c.text(), c.Reason), tableColumns-len(indent)-2) {
			if i > 0 {
				line = "  " + line
			}
			r.print("%s%s\n", indent, line)
		}
	}
}

// cell returns the replicas of a variant for the table.
func (v VariantTick) cell() string {
	wanted, held := "?", " "
	if v.Known {
		wanted = fmt.Sprint(v.Wanted)
	}
	if v.Held {
		held = "h"
	}
	return fmt.Sprintf("%2s%s>%d (%d)", wanted, held, v.Spec, v.Ready)
}

// wrap splits a text into lines of at most so many columns, at spaces. A longer word is a line.
func wrap(text string, columns int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len([]rune(line))+1+len([]rune(word)) > columns {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	return append(lines, line)
}
