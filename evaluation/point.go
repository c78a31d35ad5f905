package evaluation

// Point is one setting of a policy on one load: the mean of its outcomes over the seeds.
type Point struct {
	Load    string  `json:"load"`
	Policy  string  `json:"policy"`
	Choice  string  `json:"choice,omitzero"`
	Knob    float64 `json:"knob"`
	Default bool    `json:"default"`
	Seeds   int     `json:"seeds"`

	Attainment float64 `json:"attainment"`
	// LowestAttainment and HighestAttainment are those of one seed.
	LowestAttainment  float64 `json:"lowest_attainment"`
	HighestAttainment float64 `json:"highest_attainment"`
	WorstMinute       float64 `json:"worst_minute"` // of any seed
	CostPerHour       float64 `json:"cost_per_hour"`
	AverageReplicas   float64 `json:"average_replicas"`
	ReversalsPerHour  float64 `json:"reversals_per_hour"`
	Lost              float64 `json:"lost"`       // requests
	Unfinished        float64 `json:"unfinished"` // requests
}

// Points returns the points of outcomes, in the order of their first outcomes.
func Points(outcomes []Outcome) []Point {
	type key struct {
		load, policy, choice string
		knob                 float64
	}
	var points []Point
	places := map[key]int{}
	for _, o := range outcomes {
		k := key{o.Load, o.Policy, o.Choice, o.Knob}
		at, known := places[k]
		if !known {
			at = len(points)
			places[k] = at
			points = append(points, Point{
				Load: o.Load, Policy: o.Policy, Choice: o.Choice, Knob: o.Knob, Default: o.Default,
				LowestAttainment: 1, WorstMinute: 1,
			})
		}
		points[at].add(o)
	}
	return points
}

// add adds an outcome to the means.
func (p *Point) add(o Outcome) {
	p.Seeds++
	for _, mean := range []struct {
		of    *float64
		value float64
	}{
		{&p.Attainment, o.Attainment}, {&p.CostPerHour, o.CostPerHour}, {&p.AverageReplicas, o.AverageReplicas},
		{&p.ReversalsPerHour, o.ReversalsPerHour}, {&p.Lost, float64(o.Lost)}, {&p.Unfinished, float64(o.Unfinished)},
	} {
		*mean.of += (mean.value - *mean.of) / float64(p.Seeds)
	}
	p.LowestAttainment = min(p.LowestAttainment, o.Attainment)
	p.HighestAttainment = max(p.HighestAttainment, o.Attainment)
	p.WorstMinute = min(p.WorstMinute, o.WorstMinute)
}
