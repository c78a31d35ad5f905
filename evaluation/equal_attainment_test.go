package evaluation_test

import (
	"math"
	"testing"

	"github.com/wva-project/wva/evaluation"
)

// points returns points of a policy and choice from pairs of attainment and cost. Their knobs are
// 1, 2 and so on, the first is the default.
func points(policy, choice string, pairs ...[2]float64) []evaluation.Point {
	var points []evaluation.Point
	for i, p := range pairs {
		points = append(points, evaluation.Point{
			Load: "load", Policy: policy, Choice: choice, Knob: float64(i + 1), Default: i == 0, Attainment: p[0], CostPerHour: p[1],
		})
	}
	return points
}

// compare returns the row of the policy "other" beside WVA at 96 % for 10 an hour, for an objective
// of 95 %.
func compare(t *testing.T, others ...[]evaluation.Point) evaluation.Equal {
	t.Helper()
	all := points("wva", "", [2]float64{0.96, 10})
	for _, other := range others {
		all = append(all, other...)
	}
	for _, row := range evaluation.EqualAttainment(all, map[string]float64{"load": 0.95}) {
		if row.Policy == "other" {
			return row
		}
	}
	t.Fatal("no row of the policy")
	return evaluation.Equal{}
}

func TestCostsAreInterpolatedOnTheLowerHull(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name         string
		give         [][]evaluation.Point
		at95, at96   float64 // 0: not reached
		knob         float64 // at 95 %
		choice       string
		defaultShare float64
	}{
		{
			"on the line between two points",
			[][]evaluation.Point{points("other", "", [2]float64{0.9, 8}, [2]float64{1, 12})}, 10, 10.4, 2, "", 0.9,
		},
		{
			"without points above the line",
			[][]evaluation.Point{points("other", "", [2]float64{0.9, 8}, [2]float64{0.94, 11.9}, [2]float64{0.95, 20}, [2]float64{1, 12})}, 10, 10.4, 4, "", 0.9,
		},
		{
			"of the cheapest point, if all reach the attainment",
			[][]evaluation.Point{points("other", "", [2]float64{1, 7}, [2]float64{0.99, 9})}, 7, 7, 1, "", 1,
		},
		{
			"not beyond the last point",
			[][]evaluation.Point{points("other", "", [2]float64{0.9, 8}, [2]float64{0.955, 9.1})}, 9, 0, 2, "", 0.9,
		},
		{
			"on one choice, never between two",
			[][]evaluation.Point{
				points("other", "a", [2]float64{0.9, 1}, [2]float64{0.94, 2}),
				points("other", "b", [2]float64{0.97, 30}), points("other", "c", [2]float64{0.99, 29}),
			}, 29, 29, 1, "c", 0.99,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			row := compare(t, test.give...)
			if row.AtObjective == nil || math.Abs(row.AtObjective.CostPerHour-test.at95) > 1e-9 || row.AtObjective.Knob != test.knob || row.AtObjective.Choice != test.choice {
				t.Errorf("at 95 %%: %+v, want %v with knob %v on %q", row.AtObjective, test.at95, test.knob, test.choice)
			}
			switch {
			case test.at96 == 0 && row.AtWVA != nil:
				t.Errorf("at 96 %%: %+v, want none", row.AtWVA)
			case test.at96 > 0 && (row.AtWVA == nil || math.Abs(row.AtWVA.CostPerHour-test.at96) > 1e-9 || math.Abs(row.AtWVA.ToWVA-test.at96/10) > 1e-9):
				t.Errorf("at 96 %%: %+v, want %v and a tenth of it as ratio", row.AtWVA, test.at96)
			}
			if row.Default == nil || row.Default.Attainment != test.defaultShare {
				t.Errorf("default %+v, want attainment %v", row.Default, test.defaultShare)
			}
		})
	}
}

// At the objective WVA's own cost is that of its curve. Without a curve it has none, unless it
// reaches the objective by itself.
func TestTheRatioAtTheObjectiveIsToTheCurveOfWVA(t *testing.T) {
	t.Parallel()
	other := points("other", "", [2]float64{0.95, 8})
	if row := compare(t, other); row.AtObjective.ToWVA != 0.8 {
		t.Errorf("ratio %v to WVA's one point of 10, want 0.8", row.AtObjective.ToWVA)
	}
	curve := points("wva-percentile", "", [2]float64{0.94, 6}, [2]float64{0.96, 10})
	if row := compare(t, other, curve); row.AtObjective.ToWVA != 1 {
		t.Errorf("ratio %v to 8 on the curve of WVA, want 1", row.AtObjective.ToWVA)
	}
}

func TestPointsAreMeansOverTheSeeds(t *testing.T) {
	t.Parallel()
	outcomes := []evaluation.Outcome{
		{Load: "load", Policy: "static", Knob: 2, Attainment: 0.9, WorstMinute: 0.5, CostPerHour: 10, Lost: 4, ReversalsPerHour: 1, AverageReplicas: 2},
		{Load: "load", Policy: "static", Knob: 2, Attainment: 1, WorstMinute: 0.8, CostPerHour: 20, Unfinished: 2, ReversalsPerHour: 2, AverageReplicas: 4},
		{Load: "load", Policy: "static", Knob: 3, Attainment: 1, WorstMinute: 1, CostPerHour: 30},
	}
	got := evaluation.Points(outcomes)
	want := evaluation.Point{
		Load: "load", Policy: "static", Knob: 2, Seeds: 2, Attainment: 0.95, LowestAttainment: 0.9, HighestAttainment: 1,
		WorstMinute: 0.5, CostPerHour: 15, AverageReplicas: 3, ReversalsPerHour: 1.5, Lost: 2, Unfinished: 1,
	}
	if len(got) != 2 || got[0] != want || got[1].Seeds != 1 || got[1].CostPerHour != 30 {
		t.Errorf("points %+v, want %+v first of two", got, want)
	}
}
