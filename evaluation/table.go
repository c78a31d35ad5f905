package evaluation

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// WriteTable writes the points of each load, then the costs at equal attainment.
func (c Comparison) WriteTable(w io.Writer) error {
	var text strings.Builder
	load := ""
	for i := range c.Points {
		if c.Points[i].Load != load {
			load = c.Points[i].Load
			c.writeLoad(&text, load)
		}
	}
	if c.Interrupted {
		text.WriteString("Interrupted: the runs above are those that were done.\n")
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// writeLoad writes the tables of one load.
func (c Comparison) writeLoad(text *strings.Builder, load string) {
	objective := c.Objectives[load]
	fmt.Fprintf(text, "Load %s, objective: %s of requests within TTFT and ITL\n\n", load, percent(objective))
	table := tabwriter.NewWriter(text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "policy\ton\tknob\tattainment\tof seeds\tworst minute\tcost/h\treversals/h\treplicas\tlost")
	further := 0
	for _, p := range c.Points {
		if p.Load != load {
			continue
		}
		if !c.listed(p) {
			further++
			continue
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%.2f\t%.1f\t%.2f\t%.0f\n",
			p.Policy, cmp.Or(p.Choice, "all"), c.knobText(p), percent(p.Attainment), seedsText(p), percent(p.WorstMinute), p.CostPerHour,
			p.ReversalsPerHour, p.AverageReplicas, p.Lost+p.Unfinished)
	}
	_ = table.Flush() // into memory
	if further > 0 {
		fmt.Fprintf(text, "%d further settings lie above these curves; -o csv has them.\n", further)
	}
	fmt.Fprintf(text, "\nCost at equal attainment, best knob by hindsight (×: of WVA's)\n\n")
	table = tabwriter.NewWriter(text, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "policy\tat %s\t\ton, knob\tat WVA's\t\ton, knob\tdefault knob\t\n", percent(objective))
	for _, e := range c.Equal {
		if e.Load == load {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", e.Policy, c.costCells(e.Policy, e.AtObjective), c.costCells(e.Policy, e.AtWVA), defaultText(e.Default))
		}
	}
	if atObjective, atWVA := c.boundCells(load); atObjective+atWVA != "\t\t\t\t" {
		fmt.Fprintf(table, "%s\t%s\t%s\t\n", foresight, atObjective, atWVA)
	}
	_ = table.Flush()
	text.WriteString("\n")
}

// listed reports whether a point has a row: it has the default knob, or it is a corner of its
// policy's curve.
func (c Comparison) listed(p Point) bool {
	var own []Point
	for _, other := range c.Points {
		if other.Load == p.Load && other.Policy == p.Policy && other.Choice == p.Choice {
			own = append(own, other)
		}
	}
	return p.Default || slices.Contains(lowerHull(own), p)
}

// knobText is the value of a point's knob with its name, and a star if it is the default.
func (c Comparison) knobText(p Point) string {
	if c.knobs[p.Policy] == "" {
		return "-"
	}
	text := fmt.Sprintf("%g %s", p.Knob, c.knobs[p.Policy])
	if p.Default {
		text += " *"
	}
	return text
}

func seedsText(p Point) string {
	if p.Seeds == 1 {
		return "1"
	}
	return fmt.Sprintf("%d: %.1f-%.1f", p.Seeds, 100*p.LowestAttainment, 100*p.HighestAttainment)
}

// costCells are the cells of a cost: the cost, its ratio and its knob.
func (c Comparison) costCells(policy string, cost *Cost) string {
	if cost == nil {
		return "-\t\t"
	}
	ratio, on := "", cmp.Or(cost.Choice, "all")
	if cost.ToWVA > 0 {
		ratio = fmt.Sprintf("×%.2f", cost.ToWVA)
	}
	if c.knobs[policy] != "" {
		on += fmt.Sprintf(", %g", cost.Knob)
	}
	return fmt.Sprintf("%.2f\t%s\t%s", cost.CostPerHour, ratio, on)
}

// foresight is the name of the bounds in tables.
const foresight = "(foresight, estimate)"

// boundCells are the cells of the bounds of a load.
func (c Comparison) boundCells(load string) (atObjective, atWVA string) {
	cells := [2]string{"\t\t", "\t\t"}
	for _, b := range c.Bounds {
		if b.Load != load {
			continue
		}
		at := 0
		if b.AtWVA {
			at = 1
		}
		ratio := ""
		if b.ToWVA > 0 {
			ratio = fmt.Sprintf("×%.2f", b.ToWVA)
		}
		cells[at] = fmt.Sprintf("%.2f\t%s\t%s", b.CostPerHour, ratio, b.Variant)
	}
	return cells[0], cells[1]
}

func defaultText(p *Point) string {
	if p == nil {
		return "-"
	}
	return fmt.Sprintf("%s at %.2f", percent(p.Attainment), p.CostPerHour)
}

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }
