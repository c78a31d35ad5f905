package solver

import (
	"math"
	"testing"
)

// checkPlan fails the test if a solution violates a guarantee that applies at any budget, and
// returns its counts in the order of the options. The problem's rows are valid, and no row is
// repeated.
func checkPlan(t *testing.T, twin *poolsTwin, s Solution) []int {
	t.Helper()
	counts := checkCounts(t, twin, s)
	if !twin.fits(counts) {
		t.Fatalf("%v cannot be placed or exceeds a quota: %+v", counts, twin.Problem)
	}
	checkMisfits(t, twin, s, counts)
	checkShorts(t, twin, s, counts)
	if twin.priced() {
		cost, penalty := twin.judge(counts)
		if above(s.Cost, cost) || above(cost, s.Cost) || above(s.Penalty, penalty) || above(penalty, s.Penalty) {
			t.Fatalf("%v costs %v, %v of it for shortage, and not %v and %v: %+v", counts, cost, penalty, s.Cost, s.Penalty, twin.Problem)
		}
	}
	if !(s.Bound >= 0 && s.Bound <= s.Cost) || s.Proven && s.Bound != s.Cost {
		t.Fatalf("cost %v, bound %v, proven %v: %+v", s.Cost, s.Bound, s.Proven, twin.Problem)
	}
	return counts
}

// above reports whether a cost is above another one by more than rounding.
func above(a, b float64) bool { return a > b+1e-9*max(1, b) }

// priced reports whether the problem has a price for all shortage.
func (t *poolsTwin) priced() bool {
	for _, d := range t.Demands {
		if len(d.Penalty) == 0 {
			return false
		}
	}
	return true
}

// checkCounts checks that every option is in its range or else among the unsatisfied minimums.
func checkCounts(t *testing.T, twin *poolsTwin, s Solution) []int {
	t.Helper()
	if len(s.Counts) != len(twin.Options) {
		t.Fatalf("%d counts for %d options: %+v", len(s.Counts), len(twin.Options), s.Counts)
	}
	misfits := map[int]Misfit{}
	for i, m := range s.Misfits {
		misfits[m.Option] = m
		if i > 0 && s.Misfits[i-1].Option >= m.Option {
			t.Fatalf("misfits are not sorted: %+v", s.Misfits)
		}
	}
	for i, n := range s.Counts {
		o := twin.Options[i]
		m, misfit := misfits[i]
		switch {
		case !misfit && !inRange(o, n):
			t.Fatalf("%d replicas of %v are outside of %+v: %+v", n, o.Variant, o.Range, twin.Problem)
		case misfit && (m.Replicas != n || m.Least != leastOf(o) || n >= m.Least || n < 0):
			t.Fatalf("misfit %+v of %d replicas within %+v: %+v", m, n, o.Range, twin.Problem)
		}
		delete(misfits, i)
	}
	if len(misfits) > 0 {
		t.Fatalf("misfits that are not among the options: %+v", misfits)
	}
	return s.Counts
}

// checkMisfits checks that minimums are kept if they all fit. Otherwise no minimum is reduced that
// fits beside the others, and none that runs on its nodes, if these alone keep the quotas and
// limits.
func checkMisfits(t *testing.T, twin *poolsTwin, s Solution, counts []int) {
	t.Helper()
	leasts := twin.leasts()
	if twin.fits(leasts) != (len(s.Misfits) == 0) {
		t.Fatalf("minimums %v fit: %v, misfits: %+v: %+v", leasts, twin.fits(leasts), s.Misfits, twin.Problem)
	}
	if len(s.Misfits) == 0 {
		return
	}
	kept, standing := make([]int, len(counts)), make([]int, len(counts))
	for i := range counts {
		kept[i] = min(counts[i], leasts[i])
		standing[i] = min(len(twin.rows[i]), leasts[i])
	}
	for i := range counts {
		if kept[i] < leasts[i] {
			kept[i]++
			if twin.fits(kept) {
				t.Fatalf("more of the minimum of %v than %d fits beside those of the others: %+v\n%+v", twin.Options[i].Variant, counts[i], s, twin.Problem)
			}
			kept[i]--
		}
		if counts[i] < standing[i] && twin.fits(standing) {
			t.Fatalf("%v is to have %d replicas, of its minimum %d exist: %+v\n%+v", twin.Options[i].Variant, counts[i], standing[i], s, twin.Problem)
		}
	}
}

func checkShorts(t *testing.T, twin *poolsTwin, s Solution, counts []int) {
	t.Helper()
	shorts := map[served]float64{}
	for i, short := range s.Shorts {
		shorts[served{short.Model, short.Role}] = short.Amount
		if i > 0 {
			last := s.Shorts[i-1]
			if order := last.Model.Compare(short.Model); order > 0 || order == 0 && last.Role >= short.Role {
				t.Fatalf("shorts are not sorted: %+v", s.Shorts)
			}
		}
	}
	for i, d := range twin.Demands {
		if want := twin.short(i, counts); math.Abs(want-shorts[served{d.Model, d.Role}]) > 1e-9*d.Amount {
			t.Fatalf("%v leaves %v of %v unserved, and not %+v: %+v", counts, want, d.Model, s.Shorts, twin.Problem)
		}
	}
}
