package demo

import (
	"fmt"
	"strings"
)

// policyRow is the result of one policy with its name.
type policyRow struct {
	name string
	Result
}

// policies returns the results of all policies, WVA first.
func (s Summary) policies() []policyRow {
	return []policyRow{{"WVA", s.Result}, {"static, for the peak", s.Baselines.StaticPeak}, {"HPA on queue length", s.Baselines.HPAQueue}}
}

// verdict says whether a policy met the SLO.
func (r Result) verdict() string {
	if r.SLOMet {
		return "met"
	}
	return "MISSED"
}

// summary writes the summary.
func (r *report) summary(s Summary) error {
	if r.json {
		r.encode(s)
		return r.err
	}
	r.print("\n%d requests in %s of virtual time; every policy got the same ones.\n\n", s.Requests, clockText(s.Seconds))
	r.print("%-20s %6s %4s %8s %8s %6s %9s %9s\n", "", "served", "lost", "attained", r.sloText(), "cost", "of static", "reversals")
	for _, row := range s.policies() {
		r.print("%-20s %6d %4d %7.1f%% %8s %6.2f %9s %9d\n", row.name, row.Served, row.Lost, 100*row.Attainment, row.verdict(), row.Cost,
			share(row.Cost, s.Baselines.StaticPeak.Cost), row.Reversals)
	}
	r.paragraph("")
	r.paragraph("Attained: share of requests served within the latency objective of their model (" + r.objectives() + ").")
	r.byModel(s)
	r.unfinished(s)
	r.paragraph(replicasText(s))
	r.paragraph("GPU-hours of WVA: " + r.gpuHours(s) + ".")
	r.poolSummary(s)
	return r.err
}

// sloText is the share of requests that must meet the objective.
func (r *report) sloText() string {
	return fmt.Sprintf("SLO %g %%", 100*r.scenario.percentile())
}

// share returns a cost in percent of another one.
func share(cost, of float64) string {
	if of <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f%%", 100*cost/of)
}

// byModel writes the attainment of each model, if there are several.
func (r *report) byModel(s Summary) {
	if len(s.Models) < 2 {
		return
	}
	missed := false
	r.print("\n%-47s %7s  %7s  %7s\n", "Attained by model", "WVA", "static", "HPA")
	for i, m := range s.Models {
		r.print("%-47s", m.Model)
		for _, row := range s.policies() {
			m := row.Models[i]
			mark := " "
			if !m.SLOMet {
				mark = "*"
				missed = true
			}
			r.print(" %6.1f%%%s", 100*m.Attainment, mark)
		}
		r.print("\n")
	}
	if missed {
		r.paragraph("* This model misses its SLO; the verdict above is that of all requests.")
	}
	for _, note := range r.coldStarts(s) {
		r.paragraph(note)
	}
	r.print("\n")
}

// coldStarts returns a note on each model that WVA scales to zero and that misses its objective.
func (r *report) coldStarts(s Summary) (notes []string) {
	for i, id := range r.scenario.modelIDs() {
		if i < len(s.Models) && r.scenario.mayGoToZero(id) && !s.Models[i].SLOMet {
			notes = append(notes, fmt.Sprintf("WVA scales %s to zero, and requests wait while a replica starts.", id.Name))
		}
	}
	return notes
}

// unfinished names the requests that had not ended at the end.
func (r *report) unfinished(s Summary) {
	for _, note := range s.unfinishedNotes() {
		r.paragraph(note)
	}
	for _, o := range s.Open {
		r.paragraph(fmt.Sprintf("Not finished under WVA: requests of %s, %d at the gateway and %d at engines.", o.Model, o.Queued, o.InFlight))
	}
}

// unfinishedNotes returns a note on each policy with requests that had not ended at the end.
func (s Summary) unfinishedNotes() (notes []string) {
	for _, row := range s.policies() {
		if row.Unfinished > 0 {
			notes = append(notes, row.name+": "+row.unfinishedText())
		}
	}
	return notes
}

// unfinishedText says how the requests count that had not ended at the end.
func (r Result) unfinishedText() string {
	switch r.Undecided {
	case 0:
		return fmt.Sprintf("%d unfinished, which count as not attained.", r.Unfinished)
	case r.Unfinished:
		return fmt.Sprintf("%d unfinished within the objective so far, which are not counted.", r.Unfinished)
	}
	return fmt.Sprintf("%d unfinished; %d of them are within the objective so far and not counted, the others count as not attained.",
		r.Unfinished, r.Undecided)
}

func replicasText(s Summary) string {
	var parts []string
	for _, row := range s.policies() {
		parts = append(parts, fmt.Sprintf("%s %d and %d", row.name, row.PeakReplicas, row.EndReplicas))
	}
	return "Replicas at the peak and at the end: " + strings.Join(parts, "; ") + "."
}

func (r *report) gpuHours(s Summary) string {
	var parts []string
	for _, id := range r.variants {
		parts = append(parts, fmt.Sprintf("%s %.2f", id.Name, s.GPUHours[id.Name]))
	}
	return strings.Join(parts, ", ")
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
func (r *report) announceBaselines(run *run) {
	if r.json {
		return
	}
	r.print("\n")
	if run.interrupted {
		r.paragraph("Interrupted at " + clockText(run.end) + "; the summary is of the part until then. A second interrupt ends at once.")
	}
	r.paragraph("Running the baselines on the same requests: a static fleet, and an HPA on queue length ...")
}

// paragraph writes a text in lines of the table's width.
func (r *report) paragraph(text string) {
	for _, line := range wrap(text, tableColumns) {
		r.print("%s\n", line)
	}
}
