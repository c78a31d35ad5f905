package solver

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"
)

// comparison collects the text of docs/math/solver-comparison.md.
type comparison struct {
	sections strings.Builder
	remarks  []string
}

const comparisonIntroduction = `# Comparison with cbc and glpsol

` + "`make compare ARGS=-update`" + ` writes this file.

The same problems were given to this project's solver and to two general ones: cbc 2.10 and glpsol
5.0, as Debian packages them. The test writes each problem as a mixed integer program by the
definition in solver/problem.go: the whole objective (running replicas, starts, convex penalties of
unserved demand) and all constraints (demands, ranges, and the placement on nodes). It shares no
code with the solver. Up to 100 models, placement is whole numbers of each size on the nodes of each
number of free accelerators. For larger fleets cbc finds no plan that way, so placement is one row
for each size and accelerator type, as in the solver itself. A test on small problems checks that
this means the same if sizes divide each other.

- **Fleets**: models with four variants each on four of eight accelerator types; replicas of 1, 2, 4
  and 8; two nodes of 8 for each model, half of which are allocated in part to other tenants.
  Penalties have five pieces of a fifth of the demand, the first about ten times the cost of
  serving, each twice the one before. *Contended*: about a fifth of the demand cannot be served.
  *Ample*: the same models with ten times the nodes; demand that stays unserved there costs less
  than another replica.
- **Machine**: a virtual machine with two cores that others use as well, so no figure is exact to a
  few percent. Every solver used one core.
- **Ours**: the default budget and tolerance (0.1 %), and a tolerance of 0.5 %; the shortest of five
  runs.
- **cbc, glpsol**: default settings, a gap of 0.1 % and a limit of 60 or 75 seconds. Their times are
  processor times and include reading the program. The first seeds only.
- **Gap**: the cost above the solver's own bound, as a share of it. **Proven**: for ours, that no
  plan is cheaper; for the others, the gap of 0.1 %.
- cbc, or glpsol without it, also got every plan of ours as fixed numbers, with variables for the
  placement on nodes: the plans fit, at the same cost. It got ample fleets ten models at a time as
  well, since it can prove the parts and not the whole.
`

func (d *comparison) add(f comparedFleet, results []comparedSeed) {
	fmt.Fprintf(&d.sections, "\n## %s\n\n%s", strings.Replace(f.String(), "000 models", ",000 models", 1), tableOf(results))
	slowest, gap := time.Duration(0), 0.0
	for _, r := range results {
		ours := r.contestants[0]
		slowest, gap = max(slowest, ours.took), max(gap, ours.gap())
		for _, c := range r.contestants[1:] {
			d.compareWith(f, r.seed, ours, c)
		}
	}
	if len(results) > 1 {
		fmt.Fprintf(&d.sections, "\nWorst of ours: %s, a gap of %s.\n", timeText(slowest), shareText(gap))
	}
}

// compareWith adds a remark if another solver did better than ours.
func (d *comparison) compareWith(f comparedFleet, seed uint64, ours, other contestant) {
	if !other.found || strings.HasPrefix(other.name, "ours") {
		return
	}
	if less := 1 - other.cost/ours.cost; less > 1e-6 {
		d.remarks = append(d.remarks, fmt.Sprintf("%s, seed %d: the plan of %s costs %s less than ours.", f, seed, other.name, shareText(less)))
	}
	if other.bound > ours.bound*(1+1e-6) && !ours.proven {
		d.remarks = append(d.remarks, fmt.Sprintf("%s, seed %d: the bound of %s is %s higher than ours.", f, seed, other.name, shareText(other.bound/ours.bound-1)))
	}
	if other.proven && !ours.proven && ours.gap() > 0.001 {
		d.remarks = append(d.remarks, fmt.Sprintf("%s, seed %d: %s proves 0.1 %%, ours only %s.", f, seed, other.name, shareText(ours.gap())))
	}
}

func (d *comparison) text() string {
	var b strings.Builder
	b.WriteString(comparisonIntroduction)
	b.WriteString(d.sections.String())
	b.WriteString("\n## Results of the others that are better\n\n")
	for _, remark := range d.remarks {
		b.WriteString("- " + remark + "\n")
	}
	if len(d.remarks) == 0 {
		b.WriteString("None in these tables.\n")
	}
	b.WriteString("\nThey also support constraints that this solver does not have. On nodes with existing replicas or\n" +
		"odd sizes, a gap can stay that a general solver closes if the fleet is small.\n")
	return b.String()
}

func tableOf(results []comparedSeed) string {
	var b strings.Builder
	b.WriteString("| seed | solver | time | cost | bound | gap | proven | unserved |\n|---|---|---|---|---|---|---|---|\n")
	for _, r := range results {
		for _, c := range r.contestants {
			fmt.Fprintf(&b, "| %d | %s | %s | %s |\n", r.seed, c.name, timeText(c.took), c.cells())
		}
	}
	return b.String()
}

func (c contestant) cells() string {
	cost, gap, proven, unserved, bound := "no plan found", "", "no", "", ""
	if c.found {
		cost = moneyText(c.cost)
	}
	if !math.IsInf(c.bound, 0) {
		bound = moneyText(c.bound)
	}
	if c.found && bound != "" {
		gap = shareText(c.gap())
	}
	if c.proven {
		proven = "yes"
	}
	if strings.HasPrefix(c.name, "ours") {
		unserved = fmt.Sprintf("%.1f %%", 100*c.unserved)
	}
	return strings.Join([]string{cost, bound, gap, proven, unserved}, " | ")
}

func timeText(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < 100*time.Millisecond:
		return fmt.Sprintf("%.1f ms", 1e3*d.Seconds())
	case d < time.Second:
		return fmt.Sprintf("%.0f ms", 1e3*d.Seconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

func shareText(x float64) string {
	if x > 0 && x < 5e-6 {
		return "below 0.001 %"
	}
	return fmt.Sprintf("%.3f %%", 100*x)
}

// moneyText is a number with a comma between thousands, and with cents if it is small.
func moneyText(x float64) string {
	if x < 1000 {
		return fmt.Sprintf("%.2f", x)
	}
	digits := strconv.FormatFloat(math.Round(x), 'f', 0, 64)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

func TestNumbersOfTheComparisonRead(t *testing.T) {
	for _, c := range [][2]string{
		{moneyText(1234567.4), "1,234,567"}, {moneyText(12.345), "12.35"}, {moneyText(1000), "1,000"},
		{timeText(85 * time.Microsecond), "85 µs"}, {timeText(12340 * time.Microsecond), "12.3 ms"}, {timeText(75 * time.Second), "75.0 s"},
		{shareText(0.0051), "0.510 %"}, {shareText(1e-7), "below 0.001 %"}, {shareText(0), "0.000 %"},
	} {
		if c[0] != c[1] {
			t.Errorf("%q, want %q", c[0], c[1])
		}
	}
}
