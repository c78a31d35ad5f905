package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/simulation"
)

// report writes the run as a table or as JSON, and throttles it to the speed of the options.
type report struct {
	out      io.Writer
	json     bool
	speed    float64
	scenario *scenario
	began    time.Time
	rows     int
	arrived  int
	at       int
	err      error // the first of a write
	variants []fleet.VariantID
	pools    bool          // whether accelerators are on nodes
	latest   []VariantTick // of the previous cycle
	shown    []PoolTick    // the latest that the table has
	changes  []change
}

// Tick is one cycle in the JSON output.
type Tick struct {
	Type     string  `json:"type"` // "tick"
	Seconds  int     `json:"t"`    // virtual time
	Arrivals float64 `json:"arrivals_per_second"`
	Queued   int     `json:"queued_at_gateway"`
	// TTFT and ITL are those of the chat model over the last minute; absent if no request was
	// served.
	TTFT     float64       `json:"ttft_p95_seconds,omitzero"`
	ITL      float64       `json:"itl_p95_seconds,omitzero"`
	Cost     float64       `json:"cost"`
	Variants []VariantTick `json:"variants"`
	Pools    []PoolTick    `json:"pools,omitzero"` // by accelerator

	arrived int // requests since the beginning
}

// VariantTick is the state of one variant after a cycle.
type VariantTick struct {
	Name    string         `json:"name"`
	Wanted  int            `json:"wanted"` // the decision
	Known   bool           `json:"known"`
	Held    bool           `json:"held"`
	Spec    int            `json:"spec"` // spec.replicas of the target
	Ready   int            `json:"ready"`
	Loading int            `json:"loading"`
	Pending int            `json:"pending,omitzero"` // part of Loading
	Running int            `json:"running"`
	Waiting int            `json:"waiting"`
	KV      float64        `json:"kv"`
	Code    string         `json:"code"`
	Reason  string         `json:"reason"`
	Details []fleet.Detail `json:"details,omitzero"` // of the reason
}

func newReport(o Options, s *scenario) *report {
	r := &report{out: o.Output, json: o.JSON, speed: o.Speed, scenario: s, pools: len(o.Pools) > 0}
	for _, v := range s.variants {
		r.variants = append(r.variants, v.ID)
	}
	return r
}

// tick records a cycle, and writes it.
func (r *report) tick(second int, run *run) {
	tick := r.measure(second, run)
	changed := r.changed(tick)
	r.latest = tick.Variants
	r.changes = append(r.changes, changed...)
	switch {
	case r.json:
		r.encode(tick)
	case len(changed) > 0 || second%tableSeconds <= int(lag.Seconds()):
		r.row(tick, changed)
	default:
		return
	}
	r.arrived, r.at = tick.arrived, second
}

// change is a changed number of a variant, or one that is held from now on, or no longer.
type change struct {
	seconds int
	VariantTick
	from int
	held bool // before
}

// changed returns the changes since the previous cycle.
func (r *report) changed(tick Tick) []change {
	var changes []change
	for i, before := range r.latest {
		now := tick.Variants[i]
		if now.Known && (now.Wanted != before.Wanted || now.Held != before.Held) {
			changes = append(changes, change{seconds: tick.Seconds, VariantTick: now, from: before.Wanted, held: before.Held})
		}
	}
	return changes
}

// text returns the numbers of a change, such as "2 to 3".
func (c change) text() string {
	switch {
	case c.from != c.Wanted:
		return fmt.Sprintf("%d to %d", c.from, c.Wanted)
	case c.Held:
		return fmt.Sprintf("held at %d", c.Wanted)
	default:
		return fmt.Sprintf("%d, no longer held", c.Wanted)
	}
}

func (r *report) measure(second int, run *run) Tick {
	tick := Tick{Type: "tick", Seconds: second}
	arrived := 0
	for _, t := range run.fleet.Tallies() {
		arrived += t.Arrived
		tick.Queued += t.Queued
	}
	if second > r.at {
		tick.Arrivals = round(float64(arrived-r.arrived) / float64(second-r.at))
	}
	tick.arrived = arrived
	recent := run.fleet.Recent(chatModel, 60)
	tick.TTFT, tick.ITL = round(recent.TTFT), round(recent.ITL)
	for _, e := range run.fleet.Expenses() {
		tick.Cost += e.Cost
	}
	tick.Cost = round(tick.Cost)
	states := make(map[fleet.VariantID]simulation.State)
	for _, s := range run.fleet.States() {
		states[s.Variant] = s
	}
	for _, id := range r.variants {
		s := states[id]
		d, _ := run.product.board.Lookup(id)
		tick.Variants = append(tick.Variants, VariantTick{
			Name: id.Name, Wanted: d.Replicas, Known: d.Known, Held: d.Held, Spec: s.Replicas, Ready: s.Ready, Loading: s.Loading + s.Pending,
			Pending: s.Pending, Running: s.Running, Waiting: s.Waiting, KV: round(s.KV),
			Code: string(d.Reason.Code), Reason: d.Reason.Text, Details: d.Reason.Details,
		})
	}
	tick.Pools = r.scenario.poolTicks(run.fleet.Pools(), tick.Variants)
	run.pools.recordWanted(tick.Pools)
	return tick
}

// throttle waits until the end of a virtual second is due.
func (r *report) throttle(ctx context.Context, second int) error {
	if err := ctx.Err(); err != nil || r.err != nil {
		return firstError(err, r.err)
	}
	if r.speed <= 0 {
		return nil
	}
	due := r.began.Add(time.Duration(float64(second+1) / r.speed * float64(time.Second)))
	timer := time.NewTimer(time.Until(due))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

func (r *report) print(format string, args ...any) {
	if _, err := fmt.Fprintf(r.out, format, args...); err != nil {
		r.err = firstError(r.err, err)
	}
}

func (r *report) encode(value any) {
	if err := json.NewEncoder(r.out).Encode(value); err != nil {
		r.err = firstError(r.err, err)
	}
}

func firstError(a, b error) error {
	if a != nil {
		return a
	}
	return b
}
