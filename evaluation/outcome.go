package evaluation

import (
	"math"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/simulation"
)

// Outcome is the result of one run.
type Outcome struct {
	Load   string  `json:"load"`
	Seed   uint64  `json:"seed"`
	Policy string  `json:"policy"`
	Knob   float64 `json:"knob"` // 0 without a knob
	Choice string  `json:"choice,omitzero"`
	// Default is whether the knob has its default, or there is none.
	Default bool `json:"default"`

	Requests int `json:"requests"`
	// Attainment is the share of requests that were served within both latency objectives. Lost
	// and unfinished ones miss them.
	Attainment float64 `json:"attainment"`
	// WorstMinute is the lowest attainment of requests that arrived in one minute, of minutes with
	// at least ten; 1 if there is none.
	WorstMinute float64 `json:"worst_minute"`
	Lost        int     `json:"lost"`
	Unfinished  int     `json:"unfinished"`
	Hours       float64 `json:"hours"` // of load
	// CostPerHour is the price of all replicas while Pending, during start-up, service and drain,
	// by hour of load.
	CostPerHour float64 `json:"cost_per_hour"`
	// AverageReplicas is the mean number of replicas that have accelerators or are Pending.
	AverageReplicas  float64 `json:"average_replicas"`
	PeakReplicas     int     `json:"peak_replicas"`
	ReversalsPerHour float64 `json:"reversals_per_hour"`

	Minutes  []Minute `json:"-"` // of arrivals
	Replicas []Change `json:"-"` // by time, the initial numbers first
}

// Minute is one minute of arrivals.
type Minute struct {
	Requests int // that arrived
	Within   int // the objective, of these
}

// Change is a new number of replicas in the spec of a variant's workload.
type Change struct {
	Seconds  float64
	Variant  string
	Replicas int
}

// worstMinuteRequests is the least number of requests of a minute whose attainment counts.
const worstMinuteRequests = 10

// recorder records a run until the end of the load.
type recorder struct {
	c         Case
	reversals simulation.Recorder
	latest    map[fleet.VariantID]int
	changes   []Change
	cost      float64
	seconds   float64 // of replicas
	result    simulation.Result
}

// begin records the numbers at the beginning of the load.
func (r *recorder) begin(f *simulation.Fleet) {
	r.observe(f)
	r.seconds, r.cost = r.spent(f)
}

func newRecorder(c Case) *recorder { return &recorder{c: c, latest: map[fleet.VariantID]int{}} }

// observe records the replicas. Call it after each step.
func (r *recorder) observe(f *simulation.Fleet) {
	r.reversals.Observe(f)
	for _, s := range f.States() {
		if before, known := r.latest[s.Variant]; known && before == s.Replicas {
			continue
		}
		r.latest[s.Variant] = s.Replicas
		r.changes = append(r.changes, Change{Seconds: f.Now() - r.c.WarmUp, Variant: s.Variant.Name, Replicas: s.Replicas})
	}
}

// end records the numbers at the end of the load.
func (r *recorder) end(f *simulation.Fleet) {
	r.result = r.reversals.Result(f, nil)
	seconds, cost := r.spent(f)
	r.seconds, r.cost = seconds-r.seconds, cost-r.cost
}

// spent returns the time of all replicas since the beginning of the run, and its price.
func (r *recorder) spent(f *simulation.Fleet) (seconds, cost float64) {
	price := map[fleet.VariantID]float64{}
	for _, v := range r.c.Setup.Fleet.Variants {
		price[v.ID] = v.Cost
	}
	for _, e := range f.Expenses() {
		seconds += e.ReplicaSeconds + e.PendingSeconds
		cost += (e.ReplicaSeconds + e.PendingSeconds) / 3600 * price[e.Variant]
	}
	return seconds, cost
}

// outcome returns the outcome of a run whose requests have ended.
func (r *recorder) outcome(f *simulation.Fleet, p Policy, s Setting) Outcome {
	hours := r.c.Until / 3600
	o := Outcome{
		Load: r.c.Load, Seed: r.c.Seed, Policy: p.Name, Choice: s.Choice.Name,
		Default: s.Default, Knob: s.Knob,
		Requests: len(r.c.Requests), Attainment: 1, WorstMinute: 1, Hours: hours,
		CostPerHour: r.cost / hours, AverageReplicas: r.seconds / r.c.Until,
		PeakReplicas: r.result.PeakReplicas, ReversalsPerHour: float64(r.result.Reversals) / hours, Replicas: r.changes,
	}
	within, served := 0, 0
	o.Minutes = make([]Minute, int(math.Ceil(r.c.Until/60)))
	minuteOf := func(arrival float64) *Minute { return &o.Minutes[min(int(arrival/60), len(o.Minutes)-1)] }
	for _, q := range r.c.Requests {
		minuteOf(q.Arrival).Requests++
	}
	for _, end := range f.Outcomes() {
		arrival := end.Arrival - r.c.WarmUp
		if arrival < 0 {
			continue
		}
		if end.Loss == simulation.Served {
			served++
		} else {
			o.Lost++
		}
		if end.Meets(r.c.Setup.Objective()) {
			within++
			minuteOf(arrival).Within++
		}
	}
	o.Unfinished = o.Requests - served - o.Lost
	if o.Requests > 0 {
		o.Attainment = float64(within) / float64(o.Requests)
	}
	for _, m := range o.Minutes {
		if m.Requests >= worstMinuteRequests {
			o.WorstMinute = min(o.WorstMinute, float64(m.Within)/float64(m.Requests))
		}
	}
	return o
}
