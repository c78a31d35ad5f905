package fleet

import "time"

// Plan is one decision. Every variant of the snapshot is in exactly one of Targets, Held and Advice. All tables are sorted by
// identity, so that equal decisions are equal values.
type Plan struct {
	Time    time.Time `json:"time"` // of the snapshot
	Targets []Target  `json:"targets,omitzero"`
	Held    []Held    `json:"held,omitzero"`
	// Advice is what would be decided of the advisory variants. Nobody is to act on it: KEDA is never told, and Cost does not
	// hold it.
	Advice []Advice    `json:"advice,omitzero"`
	Models []ModelPlan `json:"models,omitzero"`
	// Conflicts are what contradicts itself in the fleet, sorted by kind, then variants.
	Conflicts []Conflict `json:"conflicts,omitzero"`
	// Cost is the price of all targets and known held numbers for an hour.
	Cost float64 `json:"cost"`
}

// Target is a variant's decided number of replicas.
type Target struct {
	Variant  VariantID `json:"variant"`
	Replicas int       `json:"replicas"`
	// Changed is when the number last became another one, by Delta replicas; zero where it has not since it is known. The
	// first number is compared with the replicas that were asked for then.
	Changed time.Time `json:"changed,omitzero"`
	Delta   int       `json:"delta,omitzero"`
	Reason  Reason    `json:"reason"`
	Facts   Facts     `json:"facts"`
}

// Held is a variant whose number stays because deciding was not possible.
type Held struct {
	Variant VariantID `json:"variant"`
	// Replicas is the number at which the variant is held. It means something only where Known: nothing standing and no
	// workload seen leaves it unknown.
	Replicas int  `json:"replicas"`
	Known    bool `json:"known"`
	// Decided is when the number was last derived from data; zero where it never was.
	Decided time.Time `json:"decided,omitzero"`
	// Changed and Delta are those of the last decision: a hold changes nothing.
	Changed time.Time `json:"changed,omitzero"`
	Delta   int       `json:"delta,omitzero"`
	// Refused is true where KEDA would misapply the number, so that it must be told none: the reason is the error.
	Refused bool   `json:"refused,omitzero"`
	Reason  Reason `json:"reason"`
	Facts   Facts  `json:"facts"`
}

// Facts is what the decision about a variant rested on, for people and metrics.
type Facts struct {
	Model       ModelID     `json:"model"`
	Target      TargetID    `json:"target"`
	Accelerator Accelerator `json:"accelerator,omitzero"`
	// Current is the number of replicas asked for now (the workload's spec); it means something only where CurrentKnown.
	Current      int  `json:"current"`
	CurrentKnown bool `json:"currentKnown"`
	Ready        int  `json:"ready"`
	// Asleep is true where the workload stands at zero or at its idle number: only then does KEDA need a push.
	Asleep bool `json:"asleep,omitzero"`
	// Saturation is the load of the variant's ready replicas over their capacity, 1 at the limit; absent where unknown.
	Saturation Reading `json:"saturation"`
	// Capacity is the share of the model's demand that one replica carries; absent where unknown.
	Capacity Reading `json:"capacity"`
	// Binding is the limit that sets the capacity, such as "KV cache".
	Binding string `json:"binding,omitzero"`
	// Infeasible says which objective no useful load meets here, and what would help; empty where one does, or that is not known.
	Infeasible string `json:"infeasible,omitzero"`
	// Fallback is true while KEDA applies its fallback and not the number.
	Fallback bool    `json:"fallback,omitzero"`
	Cost     float64 `json:"cost"` // per replica-hour
}

// ModelPlan is what was found about a model.
type ModelPlan struct {
	ID ModelID `json:"id"`
	// Arrivals is the rate of requests, per second; Backlog is how many wait at engines and gateway.
	Arrivals Reading `json:"arrivals"`
	Backlog  Reading `json:"backlog"`
	InFlight Reading `json:"inFlight"`
	TTFT     Reading `json:"ttft"` // seconds
	ITL      Reading `json:"itl"`  // seconds
	// Short is the share of the demand, 0 to 1, that the plan leaves unserved.
	Short float64 `json:"short"`
}

// Reason is why a number was chosen: a stable code for machines and a sentence for people.
type Reason struct {
	Code Code   `json:"code"`
	Text string `json:"text"`
}

// Code is the stable name of a reason.
type Code string

// The reasons of a target.
const (
	CodeSteady           Code = "Steady"              // the number that stands carries the demand
	CodeScaleUp          Code = "ScaleUp"             // the latest demand needs more
	CodeScaleDown        Code = "ScaleDown"           // the highest demand of the window needs less
	CodeRebalance        Code = "Rebalance"           // a cheaper mix carries the same demand
	CodeToZero           Code = "ToZero"              // nobody asked for the whole retention period
	CodeFromZero         Code = "FromZero"            // requests wait for a model that stands at zero
	CodeKeepOne          Code = "KeepOne"             // idle, but the model may not go to zero
	CodeMakeBeforeBreak  Code = "MakeBeforeBreak"     // shrinks once the replicas that take over are ready
	CodeSaturated        Code = "Saturated"           // a replica is saturated: nothing shrinks
	CodeObjectiveMissed  Code = "ObjectiveMissed"     // latency is above the objective: nothing shrinks
	CodeInfeasible       Code = "ObjectiveInfeasible" // of a condition or a warning: no useful load meets the objective
	CodeWindowNotCovered Code = "WindowNotCovered"    // too little history to shrink
	CodeAtMaximum        Code = "AtMaximum"           // the demand needs more than maxReplicaCount allows
	CodeNoRoom           Code = "NoRoom"              // the demand needs more accelerators than there are
	CodeProbe            Code = "Probe"               // one replica, to learn what it carries
	CodeTargetClaimed    Code = "TargetClaimed"       // an older ScaledObject owns the workload: its number is repeated
	CodePaused           Code = "Paused"              // an annotation of the ScaledObject fixes the number
)

// The reasons of a hold.
const (
	CodeMetricsMissing    Code = "MetricsMissing"    // ready replicas report nothing
	CodeMetricsStale      Code = "MetricsStale"      // the last samples are too old
	CodeMetricsInvalid    Code = "MetricsInvalid"    // an engine reports something that is not a number
	CodeWindowTooShort    Code = "WindowTooShort"    // the rate window holds fewer than four scrapes
	CodeWorkloadUnknown   Code = "WorkloadUnknown"   // the scale target was not seen
	CodeWorkloadHidden    Code = "WorkloadHidden"    // the scale target of a variant of the model cannot be seen now
	CodeInvalidDefinition Code = "InvalidDefinition" // the ScaledObject's own numbers contradict each other
	CodeModelScaled       Code = "ModelScaled"       // advice only: other variants of the model are scaled already
	CodeMisapplied        Code = "Misapplied"        // KEDA would make another number of ours
	CodeForeignAutoscaler Code = "ForeignAutoscaler" // a HorizontalPodAutoscaler of somebody else scales the workload
)
