package fleet

import (
	"strings"
	"time"
)

// Decision is the number of replicas of one variant, with its reason.
type Decision struct {
	Variant VariantID `json:"variant"`
	// Replicas is the number of replicas. It means something only if Known.
	Replicas int `json:"replicas"`
	// Known is false of a held variant that has neither a previous decision nor an observed
	// workload.
	Known bool `json:"known"`
	// Held is true if the variant could not be decided: its number of replicas is kept.
	Held bool `json:"held,omitzero"`
	// Unsupported is true if KEDA would not apply the number as it is meant: its RPCs answer with
	// the reason as an error.
	Unsupported bool `json:"unsupported,omitzero"`
	// Decided is when the number was last derived from data; holding it does not renew it. Zero:
	// never.
	Decided time.Time `json:"decided,omitzero"`
	// Changed is when the number last became another one, by Delta replicas; zero if it has not
	// since it is known. The first number is compared with the replicas of the workload's spec
	// then.
	Changed time.Time `json:"changed,omitzero"`
	Delta   int       `json:"delta,omitzero"`
	Reason  Reason    `json:"reason"`
	// Findings are those of the variant's definition, sorted by code, then text.
	Findings []Finding `json:"findings,omitzero"`
	Facts    Facts     `json:"facts"`
}

// Facts are the observations of a variant when it was decided, for people and metrics.
type Facts struct {
	Model       ModelID     `json:"model"`
	Target      TargetID    `json:"target"`
	Accelerator Accelerator `json:"accelerator,omitzero"`
	// Current is the number of replicas in the workload's spec. It means something only if
	// CurrentKnown.
	Current      int  `json:"current"`
	CurrentKnown bool `json:"currentKnown"`
	Ready        int  `json:"ready"`
	// Inactive is true if the workload is scaled to zero or to its idle number: only then does KEDA
	// need a push.
	Inactive bool `json:"inactive,omitzero"`
	// Saturation is the load of the variant's ready replicas over their capacity, 1 at the limit;
	// absent if unknown.
	Saturation Reading `json:"saturation"`
	// Capacity is the share of the model's demand that one replica can serve; absent if unknown.
	Capacity Reading `json:"capacity"`
	// LimitedBy is the limit that sets the capacity, such as "KV cache".
	LimitedBy string `json:"limitedBy,omitzero"`
	// Infeasible says which latency objective cannot be met at any useful load, and the remedy;
	// empty if it can, or that is not known.
	Infeasible string `json:"infeasible,omitzero"`
	// Fallback is true while KEDA applies its fallback and not the number.
	Fallback bool `json:"fallback,omitzero"`
	// NoWakeSignal is true if the model is scaled to zero and no gateway reports requests for it.
	NoWakeSignal bool `json:"noWakeSignal,omitzero"`
	// Autoscaler is whether an HPA of KEDA follows the number.
	Autoscaler Autoscaler `json:"autoscaler,omitzero"`
	Cost       float64    `json:"cost"` // per replica-hour
}

// Reason is why a number was chosen: a stable code for machines and one line for people.
type Reason struct {
	Code Code `json:"code"`
	// Text is one line of at most MaxReasonText characters: fact, limit, action, with numbers and
	// units first.
	Text string `json:"text"`
	// Details add to the line, in a fixed order, each name at most once.
	Details []Detail `json:"details,omitzero"`
}

// MaxReasonText is the longest Text of a reason, in characters. Names of objects that it holds do
// not count: Kubernetes allows 253 characters for one.
const MaxReasonText = 120

// Detail is one further fact of a reason.
type Detail struct {
	Name DetailName `json:"name"`
	Text string     `json:"text"`
}

// DetailName is the stable name of a detail.
type DetailName string

// The details of reasons.
const (
	DetailRemedy   DetailName = "remedy"   // what to do
	DetailCause    DetailName = "cause"    // the error or the limit behind the reason
	DetailCapacity DetailName = "capacity" // how the capacity of a replica was found
	DetailLengths  DetailName = "lengths"  // the lengths of requests that are assumed, not measured
	// replicas that are not ready long after their creation
	DetailNotStarting DetailName = "notStarting"
	DetailAsleep      DetailName = "asleep"      // replicas whose engine is in sleep mode
	DetailStuck       DetailName = "stuck"       // replicas with a queue and without progress
	DetailSilent      DetailName = "silent"      // ready replicas without metrics
	DetailInfeasible  DetailName = "infeasible"  // the latency objective that no useful load meets
	DetailLimit       DetailName = "limit"       // what else bounds the number of replicas
	DetailAlternative DetailName = "alternative" // the next best mix of replicas, with its price
	DetailRange       DetailName = "range"       // other bounds of the number
	DetailBudget      DetailName = "errorBudget" // the requests within the SLO, and the headroom
	DetailQueue       DetailName = "queue"       // how the queue grows until new replicas are ready
	DetailFallback    DetailName = "fallback"    // KEDA applies its fallback instead of the number
)

// DetailNames returns the names of all details, in the order in which a reason has them.
func DetailNames() []DetailName {
	return []DetailName{
		DetailCapacity, DetailLengths, DetailBudget, DetailQueue, DetailCause, DetailNotStarting, DetailStuck, DetailAsleep, DetailSilent, DetailInfeasible, DetailLimit,
		DetailAlternative, DetailRange, DetailFallback, DetailRemedy,
	}
}

// With returns the reason with one more detail; an empty text adds none.
func (r Reason) With(name DetailName, text string) Reason {
	if text == "" {
		return r
	}
	details := make([]Detail, 0, len(r.Details)+1)
	rank := func(name DetailName) int {
		for i, n := range DetailNames() {
			if n == name {
				return i
			}
		}
		return len(DetailNames())
	}
	placed := false
	for _, d := range r.Details {
		if !placed && rank(name) < rank(d.Name) {
			details, placed = append(details, Detail{name, text}), true
		}
		details = append(details, d)
	}
	if !placed {
		details = append(details, Detail{name, text})
	}
	r.Details = details
	return r
}

// Detail returns the text of a detail; empty if the reason does not have it.
func (r Reason) Detail(name DetailName) string {
	for _, d := range r.Details {
		if d.Name == name {
			return d.Text
		}
	}
	return ""
}

// String returns the text and the details as one line, separated by semicolons.
func (r Reason) String() string {
	var line strings.Builder
	line.WriteString(r.Text)
	for _, d := range r.Details {
		line.WriteString("; ")
		line.WriteString(d.Text)
	}
	return line.String()
}

// Cost returns the price of the decided replicas for an hour; false if their number is not known.
func (d Decision) Cost() (float64, bool) { return float64(d.Replicas) * d.Facts.Cost, d.Known }

// CurrentCost returns the price of the current replicas for an hour; false if their number is not
// known.
func (d Decision) CurrentCost() (float64, bool) {
	return float64(d.Facts.Current) * d.Facts.Cost, d.Facts.CurrentKnown
}

// Saved returns by how much an hour would be cheaper if the decision were applied, negative if it
// would be more expensive; false if one of the two prices is not known.
func (d Decision) Saved() (float64, bool) {
	cost, known := d.Cost()
	current, currentKnown := d.CurrentCost()
	if !known || !currentKnown {
		return 0, false
	}
	return current - cost, true
}
