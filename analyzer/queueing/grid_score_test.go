package queueing_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// score holds the errors of the rates of one method, over usable cells.
type score struct {
	cells                       int
	bias, off, low, high, worst float64 // relative: mean, mean of absolutes, 5 %, 95 %, highest
	// Shares of cells: at most 15 % off either way, more than 10 % optimistic, and more than 15 %.
	within, optimistic, far float64
}

// scoreOf scores a method; the evaluations are of usable cells.
func scoreOf(evaluations []*evaluation, rate func(*evaluation) float64) score {
	s := score{cells: len(evaluations)}
	if s.cells == 0 {
		return s
	}
	n := float64(s.cells)
	var errors []float64
	for _, v := range evaluations {
		e := v.off(rate(v))
		errors = append(errors, e)
		s.bias += e / n
		s.off += math.Abs(e) / n
		if math.Abs(e) <= 0.15 {
			s.within += 1 / n
		}
		if e > 0.10 {
			s.optimistic += 1 / n
		}
		if e > 0.15 {
			s.far += 1 / n
		}
	}
	slices.Sort(errors)
	s.low, s.high = errors[int(0.05*n)], errors[min(int(0.95*n), s.cells-1)]
	s.worst = errors[s.cells-1]
	return s
}

const scoreHead = "n | bias | mean abs | p05 | p95 | max | within 15 % | >10 % optimistic |\n"

func (s score) String() string {
	percents := func(x float64) string { return fmt.Sprintf("%+.1f", 100*x) }
	return fmt.Sprintf("%d | %s | %.1f | %s | %s | %s | %.0f %% | %.0f %% |", s.cells, percents(s.bias), 100*s.off,
		percents(s.low), percents(s.high), percents(s.worst), 100*s.within, 100*s.optimistic)
}

func rateOfHybrid(v *evaluation) float64 { return v.hybrid.Rate }

// methods are the rows of the method tables.
var methods = []struct {
	name string
	rate func(*evaluation) float64
}{
	{"by means: λ_mean", func(v *evaluation) float64 { return v.meanRate }},
	{"0.6·λ_mean", func(v *evaluation) float64 { return 0.6 * v.meanRate }},
	{"formula", func(v *evaluation) float64 { return v.formula.Rate }},
	{"**hybrid: simulation if the formula is doubtful**", rateOfHybrid},
	{"simulation of every cell", func(v *evaluation) float64 { return v.simulation.Rate }},
	{"formula, from histograms", func(v *evaluation) float64 { return v.buckets.Rate }},
	{"hybrid, from histograms", func(v *evaluation) float64 { return v.bucketed.Rate }},
}

func usable(evaluations []*evaluation) []*evaluation {
	return slices.DeleteFunc(slices.Clone(evaluations), func(v *evaluation) bool { return !v.usable() })
}

// methodTable compares the methods on usable cells.
func methodTable(evaluations []*evaluation) string {
	var b strings.Builder
	b.WriteString("| method | " + scoreHead + "|---|---|---|---|---|---|---|---|---|\n")
	for _, m := range methods {
		fmt.Fprintf(&b, "| %s | %v\n", m.name, scoreOf(evaluations, m.rate))
	}
	return b.String()
}

// groupings sort cells into groups.
var groupings = []func(*evaluation) string{
	func(v *evaluation) string { return v.use },
	func(v *evaluation) string { return v.accelerator },
	func(v *evaluation) string { return fmt.Sprintf("budget %5d", v.budget) },
	func(v *evaluation) string { return fmt.Sprintf("CV² %g", v.variation) },
	func(v *evaluation) string { return fmt.Sprintf("%g %%", 100*v.level) },
	func(v *evaluation) string { return fmt.Sprintf("limits %d", v.limits) },
	func(v *evaluation) string { return fmt.Sprintf("%d sequences, KV %3gk", v.sequences, v.kv/1e3) },
	func(v *evaluation) string { return fmt.Sprintf("hits %g", v.hits) },
}

// groupTable scores the formula and the hybrid by group of usable cells. A grouping that does not
// divide the cells is left out.
func groupTable(evaluations []*evaluation) string {
	var b strings.Builder
	b.WriteString("| group | formula: within 15 % | max | hybrid: " + scoreHead + "|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, group := range groupings {
		members := map[string][]*evaluation{}
		for _, v := range evaluations {
			members[group(v)] = append(members[group(v)], v)
		}
		if len(members) < 2 {
			continue
		}
		for _, name := range sortedKeys(members) {
			formula := scoreOf(members[name], func(v *evaluation) float64 { return v.formula.Rate })
			fmt.Fprintf(&b, "| %s | %.0f %% | %+.1f | %v\n", name, 100*formula.within, 100*formula.worst, scoreOf(members[name], rateOfHybrid))
		}
	}
	return b.String()
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// attainmentTable has the shares of requests that meet the limits at the predicted rates, for
// usable cells, by level and use.
func attainmentTable(evaluations []*evaluation) string {
	var b strings.Builder
	b.WriteString("| objective | usable cells | hybrid: mean | lowest | cells below the requirement | at λ_mean: mean | lowest |\n" +
		"|---|---|---|---|---|---|---|\n")
	for _, level := range []float64{0.95, 0.99} {
		name := fmt.Sprintf("%.0f %%", 100*level)
		members := map[string][]*evaluation{}
		for _, v := range evaluations {
			if v.level == level {
				members[name] = append(members[name], v)
				members[name+", "+v.use] = append(members[name+", "+v.use], v)
			}
		}
		for _, name := range sortedKeys(members) {
			b.WriteString(attainmentLine(name, members[name]))
		}
	}
	return b.String()
}

func attainmentLine(name string, of []*evaluation) string {
	var mean, meanRate float64
	below, lowest, lowestMean := 0, 1.0, 1.0
	for _, v := range of {
		mean += v.attained / float64(len(of))
		meanRate += v.meanAttained / float64(len(of))
		lowest, lowestMean = min(lowest, v.attained), min(lowestMean, v.meanAttained)
		if v.attained < v.attainable() {
			below++
		}
	}
	return fmt.Sprintf("| %s | %d | %.1f %% | %.1f %% | %d | %.0f %% | %.0f %% |\n",
		name, len(of), 100*mean, 100*lowest, below, 100*meanRate, 100*lowestMean)
}

// infeasibleLine summarises the answers for cells that are not usable.
func infeasibleLine(evaluations []*evaluation) string {
	var n, named, marginal int
	highest := 0.0
	for _, v := range evaluations {
		if v.usable() {
			continue
		}
		n++
		if v.hybrid.Infeasible {
			named++
		} else if v.marginal() {
			marginal++
		}
		highest = max(highest, v.hybrid.Rate/v.meanRate)
	}
	return fmt.Sprintf("%d cells can serve less than a tenth of λ_mean: %d are reported as infeasible, %d more are\n"+
		"within three standard errors of a tenth; the highest answer among them is %.2f·λ_mean.\n", n, named, marginal, highest)
}
