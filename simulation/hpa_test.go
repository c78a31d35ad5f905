package simulation

import (
	"math"
	"slices"
	"strings"
	"testing"
)

func newHPA(t *testing.T, spec HPASpec) *HPA {
	t.Helper()
	h, err := NewHPA(spec)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// atOnce is a behavior without tolerance and windows, and without effective limits.
func atOnce() *Behavior {
	return &Behavior{
		Up:   ScalingRules{Policies: []ScalingPolicy{{PodsPolicy, 1000, 15}}},
		Down: ScalingRules{Policies: []ScalingPolicy{{PercentPolicy, 100, 15}}},
	}
}

// decide passes an HPA one metric per sync, and applies its decisions.
func decide(h *HPA, current int, metrics ...float64) []int {
	var decided []int
	for i, metric := range metrics {
		current = h.Decide(float64(i)*HPASync, current, metric)
		decided = append(decided, current)
	}
	return decided
}

func TestHPADesiresTheCeilingOfValueOverTarget(t *testing.T) {
	for _, c := range []struct {
		target, metric float64
		current, want  int
	}{
		{1, 3, 1, 3},
		{1, 2.001, 1, 3},
		{1, 2.0004, 1, 2}, // metrics are in thousandths
		{10, 41, 1, 5},
		{5, 0, 7, 1}, // the minimum
		{0.5, 2, 1, 4},
		{1, math.NaN(), 4, 1},
		{1, -3, 4, 1},
		{1, math.Inf(1), 4, 1},
		{1, 1e300, 4, 500}, // the maximum
		{2.2, 8.6, 4, 4},
	} {
		h := newHPA(t, HPASpec{Min: 1, Max: 500, Target: c.target, Behavior: atOnce()})
		if got := h.Decide(0, c.current, c.metric); got != c.want {
			t.Errorf("target %v, metric %v, current %d: got %d, want %d", c.target, c.metric, c.current, got, c.want)
		}
	}
}

func TestHPAIgnoresStepsOfOneFromTenReplicasUp(t *testing.T) {
	for current := 2; current <= 40; current++ {
		for _, step := range []int{-1, +1} {
			want := current + step
			if current >= 10 {
				want = current
			}
			spec := HPASpec{Min: 1, Max: 100, Target: 1, Behavior: atOnce()}
			spec.Behavior.Up.Tolerance, spec.Behavior.Down.Tolerance = 0.1, 0.1
			if got := newHPA(t, spec).Decide(0, current, float64(current+step)); got != want {
				t.Errorf("with the default tolerance, from %d by %+d: got %d, want %d", current, step, got, want)
			}
			if got := newHPA(t, HPASpec{Min: 1, Max: 100, Target: 1, Behavior: atOnce()}).Decide(0, current, float64(current+step)); got != current+step {
				t.Errorf("without tolerance, from %d by %+d: got %d", current, step, got)
			}
		}
	}
}

func TestHPATolerancesOfBothDirectionsAreSeparate(t *testing.T) {
	spec := HPASpec{Min: 1, Max: 100, Target: 10, Behavior: atOnce()}
	spec.Behavior.Up.Tolerance, spec.Behavior.Down.Tolerance = 0.05, 0.5
	for metric, want := range map[float64]int{1000: 100, 845: 85, 840: 80, 500: 80, 400: 80, 390: 39} {
		if got := newHPA(t, spec).Decide(0, 80, metric); got != want {
			t.Errorf("metric %v: got %d, want %d", metric, got, want)
		}
	}
}

func TestHPADoesNotScaleATargetAtZero(t *testing.T) {
	h := newHPA(t, HPASpec{Min: 1, Max: 10, Target: 1})
	if got := decide(h, 0, 5, 8, 0); !slices.Equal(got, []int{0, 0, 0}) {
		t.Errorf("got %v", got)
	}
	if got := h.DecideUnmeasured(60, 0); got != 0 {
		t.Errorf("unmeasured: got %d", got)
	}
}

func TestHPABringsReplicasBackIntoItsRange(t *testing.T) {
	for current, want := range map[int]int{1: 3, 3: 3, 4: 4, 5: 5, 9: 5} {
		spec := HPASpec{Min: 3, Max: 5, Target: 1}
		if got := newHPA(t, spec).DecideUnmeasured(0, current); got != want {
			t.Errorf("unmeasured, from %d: got %d, want %d", current, got, want)
		}
		if got := newHPA(t, spec).Decide(0, current, float64(current)); got != want {
			t.Errorf("measured, from %d: got %d, want %d", current, got, want)
		}
	}
}

func TestHPAWithoutBehaviorAtMostDoublesOrScalesToFour(t *testing.T) {
	h := newHPA(t, HPASpec{Min: 1, Max: 100, Target: 1})
	if got := decide(h, 1, 60, 60, 60, 60, 60); !slices.Equal(got, []int{4, 8, 16, 32, 60}) {
		t.Errorf("got %v", got)
	}
}

func TestHPADefaultBehaviorAddsFourOrDoubles(t *testing.T) {
	behavior := DefaultBehavior()
	h := newHPA(t, HPASpec{Min: 1, Max: 100, Target: 1, Behavior: &behavior})
	if got := decide(h, 1, 60, 60, 60, 60, 60); !slices.Equal(got, []int{5, 10, 20, 40, 60}) {
		t.Errorf("got %v", got)
	}
}

func TestHPAScalesDownToTheHighestRecommendationOf300Seconds(t *testing.T) {
	behavior := DefaultBehavior()
	for name, spec := range map[string]HPASpec{
		"without behavior":      {Min: 1, Max: 100, Target: 1},
		"with default behavior": {Min: 1, Max: 100, Target: 1, Behavior: &behavior},
	} {
		h := newHPA(t, spec)
		// 20 at first, one peak of 14 at 60 s, else 2. The 20 leaves the window at 300 s, the 14 at
		// 360 s.
		for now := 0.0; now < 420; now += HPASync {
			metric, want := 2.0, 20
			if now == 60 {
				metric = 14
			}
			if now >= 300 {
				want = 14
			}
			if now >= 360 {
				want = 2
			}
			current := 20
			if now > 300 {
				current = 14
			}
			if now > 360 {
				current = 2
			}
			if got := h.Decide(now, current, metric); got != want {
				t.Errorf("%s, at %v s: got %d, want %d", name, now, got, want)
			}
		}
	}
}

func TestHPARemembersItsInitialReplicas(t *testing.T) {
	h := newHPA(t, HPASpec{Min: 1, Max: 100, Target: 1})
	if got := h.Decide(0, 9, 1); got != 9 {
		t.Errorf("a new HPA went from 9 to %d", got)
	}
}

func TestHPAStabilizesUpToTheLowestRecommendation(t *testing.T) {
	behavior := atOnce()
	behavior.Up.Stabilization = 45
	h := newHPA(t, HPASpec{Min: 1, Max: 100, Target: 1, Behavior: behavior})
	// The initial 2 leaves the window at 45 s. Then 5 is the lowest until 60 s.
	if got := decide(h, 2, 8, 5, 9, 9, 9); !slices.Equal(got, []int{2, 2, 2, 5, 9}) {
		t.Errorf("got %v", got)
	}
}

// policies returns rules in the order of the tables of the controller's tests: pods in a period,
// percent in a period.
func policies(pods int, podsPeriod float64, percent int, percentPeriod float64) ScalingRules {
	var rules ScalingRules
	if pods > 0 {
		rules.Policies = append(rules.Policies, ScalingPolicy{PodsPolicy, pods, podsPeriod})
	}
	if percent > 0 {
		rules.Policies = append(rules.Policies, ScalingPolicy{PercentPolicy, percent, percentPeriod})
	}
	return rules
}

func changesOver(seconds float64, added ...int) []scaleChange {
	var changes []scaleChange
	for i, a := range added {
		changes = append(changes, scaleChange{1000 - seconds + seconds*(float64(i)+0.5)/float64(len(added)), a})
	}
	return changes
}

// The cases are those of TestScalingWithRules of the controller
// (pkg/controller/podautoscaler/horizontal_test.go).
func TestHPAKeepsStepsWithinItsPolicies(t *testing.T) {
	all := policies(0, 0, 100, 15)
	many := policies(1000, 15, 0, 0)
	for _, c := range []struct {
		name             string
		up, down         ScalingRules
		min, max         int
		changes          []scaleChange
		current, desired int
		want             int
	}{
		{"pods larger than percent", policies(100, 60, 100, 60), all, 1, 1000, nil, 10, 500, 110},
		{"percent larger than pods", policies(2, 60, 100, 60), all, 1, 1000, nil, 10, 500, 20},
		{"large pods policy", policies(100, 60, 0, 0), all, 1, 1000, nil, 10, 50, 50},
		{"pods policy", policies(30, 60, 0, 0), all, 1, 1000, nil, 10, 50, 40},
		{"percent policy", policies(0, 0, 200, 60), all, 1, 1000, nil, 10, 50, 30},
		{"700 percent", policies(0, 0, 700, 60), all, 1, 100, nil, 3, 60, 24},
		{"700 percent above the maximum", policies(0, 0, 700, 60), all, 1, 20, nil, 3, 60, 20},
		{"a small number rises", policies(0, 0, 10, 60), all, 1, 20, nil, 1, 9, 2},
		{"down: pods larger than percent", many, policies(20, 60, 1, 60), 1, 1000, nil, 100, 2, 80},
		{"down: two pods, one percent", many, policies(2, 60, 1, 60), 1, 1000, nil, 100, 2, 98},
		{"down: large pods policy", many, policies(100, 60, 0, 0), 1, 1000, nil, 10, 0, 1},
		{"down: the minimum", many, policies(0, 0, 100, 60), 5, 1000, nil, 10, 2, 5},
		{"down: pods policy", many, policies(5, 60, 0, 0), 1, 1000, nil, 10, 2, 5},
		{"down: percent policy", many, policies(0, 0, 50, 60), 1, 1000, nil, 10, 5, 5},
		{"down: 10 percent of 72 is rounded up", many, policies(0, 0, 10, 60), 1, 1000, nil, 72, 10, 64},
		{"before: the maximum", policies(300, 60, 0, 0), all, 1, 200, changesOver(120, 1, 5, 9), 100, 500, 200},
		{"before: more than the policy", policies(5, 120, 0, 0), all, 1, 1000, changesOver(120, 1, 5, 9), 100, 500, 100},
		{"before: pods", policies(150, 120, 0, 0), all, 1, 1000, changesOver(120, 1, 5, 9), 100, 500, 235},
		{"before: percent", policies(0, 0, 200, 120), all, 1, 1000, changesOver(120, 1, 5, 9), 100, 500, 255},
		{"before: up and down", policies(0, 0, 300, 300), all, 1, 1000, changesOver(120, 4, -2), 6, 24, 16},
		{"before: down, pods", many, policies(115, 120, 0, 0), 1, 1000, changesOver(120, -1, -5, -9), 100, 0, 1},
		{"before: down, more than the policy", many, policies(5, 120, 0, 0), 1, 1000, changesOver(120, -1, -5, -9), 100, 2, 100},
		{"before: down, percent", many, policies(0, 0, 50, 120), 1, 1000, changesOver(120, -2, -4, -6), 100, 0, 56},
		{"before: down and up", many, policies(0, 0, 50, 180), 1, 1000, changesOver(120, 2, -4), 10, 1, 6},
		{"before: no further down", many, policies(0, 0, 10, 120), 1, 1000, changesOver(120, -10, -10, -10), 100, 0, 100},
		{"before: below zero", many, policies(0, 0, 1000, 120), 1, 1000, changesOver(120, -10, -10, -10), 10, 5, 5},
		{"before: exactly a period ago", policies(1, 120, 100, 60), all, 1, 1000, []scaleChange{{940, 50}}, 100, 500, 200},
		{"two periods", policies(1000, 120, 100, 60), all, 1, 1000, changesOver(120, 8, 12, 9, 11), 100, 200, 200},
	} {
		h := newHPA(t, HPASpec{Min: c.min, Max: c.max, Target: 1, Behavior: &Behavior{Up: c.up, Down: c.down}})
		h.changes = slices.Clone(c.changes)
		if got := h.Decide(1000, c.current, float64(c.desired)); got != c.want {
			t.Errorf("%s: from %d to %d: got %d, want %d", c.name, c.current, c.desired, got, c.want)
		}
	}
}

func TestHPASelectsAmongPolicies(t *testing.T) {
	both := policies(4, 60, 10, 60)
	for _, c := range []struct {
		selects                SelectPolicy
		current, desired, want int
	}{
		// The example of the documentation, 4 pods and 10 percent a minute: above 40 replicas
		// percent counts.
		{SelectMax, 80, 1, 72},
		{"", 80, 1, 72},
		{SelectMax, 40, 1, 36},
		{SelectMax, 30, 1, 26},
		{SelectMin, 80, 1, 76},
		{SelectMin, 30, 1, 27},
		{SelectDisabled, 80, 1, 80},
		{SelectMax, 80, 200, 88},
		{SelectMin, 80, 200, 84},
		{SelectMin, 20, 200, 22},
		{SelectDisabled, 20, 200, 20},
	} {
		rules := both
		rules.Select = c.selects
		h := newHPA(t, HPASpec{Min: 1, Max: 1000, Target: 1, Behavior: &Behavior{Up: rules, Down: rules}})
		if got := h.Decide(0, c.current, float64(c.desired)); got != c.want {
			t.Errorf("%s, from %d to %d: got %d, want %d", c.selects, c.current, c.desired, got, c.want)
		}
	}
}

func TestHPACountsItsOwnStepsWithinAPeriod(t *testing.T) {
	behavior := atOnce()
	behavior.Up = policies(4, 60, 0, 0)
	h := newHPA(t, HPASpec{Min: 1, Max: 100, Target: 1, Behavior: behavior})
	// 4 at once, none for the rest of the minute, then 4 again.
	if got := decide(h, 2, 50, 50, 50, 50, 50, 50); !slices.Equal(got, []int{6, 6, 6, 6, 10, 10}) {
		t.Errorf("got %v", got)
	}
}

func TestHPADropsEntriesOlderThanEveryWindow(t *testing.T) {
	behavior := DefaultBehavior()
	h := newHPA(t, HPASpec{Min: 1, Max: 100, Target: 1, Behavior: &behavior})
	current := 1
	for i := range 10_000 {
		current = h.Decide(float64(i)*HPASync, current, float64(1+i%50))
	}
	if len(h.recommendations) > 21 || len(h.changes) > 1 {
		t.Errorf("kept %d recommendations and %d changes", len(h.recommendations), len(h.changes))
	}
}

func TestNewHPAReportsAllValidationErrors(t *testing.T) {
	bad := ScalingRules{Stabilization: -1, Tolerance: math.NaN(), Select: "Most", Policies: []ScalingPolicy{{"Nodes", 0, 0}}}
	_, err := NewHPA(HPASpec{Min: 0, Max: 0, Target: math.NaN(), Behavior: &Behavior{Up: bad}})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"replicas 0 to 0", "target NaN", "scaleUp: stabilization -1", "tolerance NaN", `"Most"`, "Nodes", "scaleDown: no policy"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
}
