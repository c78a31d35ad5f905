package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
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
	pools    []fleet.Accelerator // that are on nodes, sorted
}

// Tick is one cycle in the JSON output.
type Tick struct {
	Type     string        `json:"type"` // "tick"
	Seconds  int           `json:"t"`    // virtual time
	Arrivals float64       `json:"arrivals_per_second"`
	Queued   int           `json:"queued_at_gateway"`
	TTFT     float64       `json:"ttft_p95_seconds"` // of the chat model, over the last minute
	ITL      float64       `json:"itl_p95_seconds"`
	Cost     float64       `json:"cost"`
	Variants []VariantTick `json:"variants"`
	Pools    []PoolTick    `json:"pools,omitzero"` // by accelerator
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
	r := &report{out: o.Output, json: o.JSON, speed: o.Speed, scenario: s}
	for _, v := range s.variants {
		r.variants = append(r.variants, v.ID)
	}
	for _, p := range o.Pools {
		r.pools = append(r.pools, p.Accelerator)
	}
	slices.Sort(r.pools)
	return r
}

// begin writes the queries to try meanwhile, and the legend of the table.
func (r *report) begin(address string) {
	r.began = time.Now()
	if r.json {
		return
	}
	object := fmt.Sprintf(`{"name": %q, "namespace": %q}`, r.variants[0].Name, r.variants[0].Namespace)
	r.print(`WVA decides for a simulated fleet, in this process alone. Query it from a second terminal (make bin/grpcurl builds the client):

  bin/grpcurl -plaintext %[1]s list
  bin/grpcurl -plaintext %[1]s wva.v1alpha1.OperatorService/ListVariants
  bin/grpcurl -plaintext -d '%[2]s' %[1]s externalscaler.ExternalScaler/GetMetricSpec
  bin/grpcurl -plaintext -d '%[2]s' %[1]s externalscaler.ExternalScaler/IsActive
  bin/grpcurl -plaintext -d '{"scaledObjectRef": %[2]s}' %[1]s externalscaler.ExternalScaler/GetMetrics

Columns of a variant: wanted>current replicas (ready), KV cache usage, waiting requests; h: held.
`, address, object)
	r.poolLegend()
}

// tick writes the state after a cycle. The table has a row for one cycle in half a minute.
func (r *report) tick(second int, run *run) {
	tick := r.measure(second, run)
	if r.json {
		r.encode(tick)
		return
	}
	if second%tableSeconds > int(lag.Seconds()) {
		return
	}
	if r.rows%20 == 0 {
		r.print("\n%6s %6s", "time", "req/s")
		for _, id := range r.variants {
			r.print("  %-26s", id.Name)
		}
		r.poolHeader()
		r.print(" %6s %8s %8s %8s\n", "queue", "p95 TTFT", "p95 ITL", "cost")
	}
	r.rows++
	r.print("%3d:%02d %7.1f", second/60, second%60, tick.Arrivals)
	for _, v := range tick.Variants {
		wanted, held := "?", " "
		if v.Known {
			wanted = fmt.Sprint(v.Wanted)
		}
		if v.Held {
			held = "h"
		}
		r.print("  %-26s", fmt.Sprintf("%2s%s>%d (%d) KV %3.0f%% wait %d", wanted, held, v.Spec, v.Ready, 100*v.KV, v.Waiting))
	}
	r.poolCells(tick.Pools)
	r.print(" %6d %7.2fs %6.0fms %8.2f\n", tick.Queued, tick.TTFT, 1000*tick.ITL, tick.Cost)
}

// tableSeconds is the virtual time between two rows of the table.
const tableSeconds = 30

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
	if r.json || second%tableSeconds <= int(lag.Seconds()) {
		r.arrived, r.at = arrived, second
	}
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

// summary writes the summary.
func (r *report) summary(s Summary) error {
	if r.json {
		r.encode(s)
		return r.err
	}
	r.print("\n%d requests in %d minutes; every policy got the same ones.\n\n", s.Requests, (s.Seconds+59)/60)
	r.print("%-28s %9s %6s %11s %9s %9s %10s %6s %6s\n", "", "served", "lost", "attainment", "cost", "of static", "reversals", "peak", "end")
	for _, row := range []struct {
		name string
		Result
	}{{"WVA", s.Result}, {"static, sized for the peak", s.Baselines.StaticPeak}, {"HPA on queue length", s.Baselines.HPAQueue}} {
		r.print("%-28s %9d %6d %10.1f%% %9.2f %8.0f%% %10d %6d %6d", row.name, row.Served, row.Lost, 100*row.Attainment, row.Cost,
			100*row.Cost/s.Baselines.StaticPeak.Cost, row.Reversals, row.PeakReplicas, row.EndReplicas)
		if row.Unfinished > 0 {
			r.print("  %d unfinished", row.Unfinished)
		}
		r.print("\n")
	}
	for _, o := range s.Open {
		r.print("\nNever finished under WVA: requests of %s, %d at the gateway and %d at engines.\n", o.Model, o.Queued, o.InFlight)
	}
	r.print("\nAttainment: share of requests served within the latency objective of their model (%s).\n", r.objectives())
	r.print("GPU-hours of WVA:")
	for _, id := range r.variants {
		r.print(" %s %.2f", id.Name, s.GPUHours[id.Name])
	}
	r.print("\n")
	r.poolSummary(s)
	return r.err
}

func (r *report) objectives() string {
	var parts []string
	for _, id := range r.scenario.modelIDs() {
		o := r.scenario.objective(id)
		parts = append(parts, fmt.Sprintf("%s: TTFT %v, ITL %v", id.Name, o.TTFT, o.ITL))
	}
	return strings.Join(parts, "; ")
}

// announceBaselines writes that the baselines run, which takes a moment.
func (r *report) announceBaselines() {
	if !r.json {
		r.print("\nRunning the baselines on the same requests: a static fleet, and an HPA on queue length ...\n")
	}
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
