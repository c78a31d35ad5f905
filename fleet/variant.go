package fleet

import "time"

// Variant is one way of serving a model: a workload on one accelerator type, at a price.
type Variant struct {
	ID VariantID `json:"id"`
	// DryRun is true of a variant that annotations of an existing object declare: its number is a
	// recommendation to people, and KEDA is never told.
	DryRun bool `json:"dryRun,omitzero"`

	Model  ModelID  `json:"model"`
	Target TargetID `json:"target"`
	// ServedName is the model's name in the engine's metrics; empty if it equals Model.Name.
	ServedName string `json:"servedName,omitzero"`
	// Adapters are the names of LoRA adapters on the model, sorted. A gateway counts their requests
	// under these names, the engine under the model's.
	Adapters       []string    `json:"adapters,omitzero"`
	Accelerator    Accelerator `json:"accelerator,omitzero"` // empty: not known
	GPUsPerReplica int         `json:"gpusPerReplica"`       // > 0; of a group, over all its pods
	// Precision is that of the weights, such as bf16 or fp8, to find a profile by; empty if not
	// given.
	Precision string `json:"precision,omitzero"`
	// Profile is the time of one engine iteration as the trigger gives it; zero if it does not.
	Profile EngineCost `json:"profile,omitzero"`
	// Cost is the price of one replica for an hour.
	Cost         float64       `json:"cost"`
	ServiceClass string        `json:"serviceClass,omitzero"` // names a row of Snapshot.Classes
	Role         Role          `json:"role"`
	Engine       Engine        `json:"engine"`
	Objective    Objective     `json:"objective,omitzero"`
	Range        Range         `json:"range"`
	Cooldown     time.Duration `json:"-"` // KEDA's delay before the last step to zero
	// ScaleToZeroAfter is how long the model has to be idle before it may scale to zero; of a
	// model's variants the longest counts. Zero: not given.
	ScaleToZeroAfter time.Duration `json:"-"`
	// Created is when the ScaledObject, or the object that declares the variant, was created: the
	// older of two claims on one target wins.
	Created time.Time `json:"created,omitzero"`
	// Hidden is why the replicas of the workload, or its pods, cannot be read now, with the remedy;
	// empty if they can. The rows about them may be old or partial. The whole model is then held,
	// because the load that these replicas serve is not known.
	Hidden string `json:"hidden,omitzero"`
	// Invalid is the validation errors of the definition; empty if there is none. Such a variant is
	// held; fields that could not be read have their defaults.
	Invalid []Problem `json:"invalid,omitzero"`
	// Unsupported is why KEDA would not apply the number as it is meant; zero if it would. Such a
	// variant is held at its current replicas, and its RPCs answer with this text as an error.
	Unsupported Problem `json:"unsupported,omitzero"`
	// Findings are what reads well in the definition and does not scale as it should, sorted.
	Findings []Finding `json:"findings,omitzero"`
	// Autoscaler is whether an HPA of KEDA applies the number.
	Autoscaler Autoscaler `json:"autoscaler,omitzero"`
	// Triggers is the number of WVA triggers of the object if there is more than one; Invalid then
	// says so too.
	Triggers int `json:"triggers,omitzero"`
	// Pause is the effect of KEDA's annotations on the ScaledObject.
	Pause Pause `json:"pause,omitzero"`
	// Fallback is true while KEDA's fallback is in force: KEDA applies that and not the number.
	Fallback bool `json:"fallback,omitzero"`
}

// EngineModel returns the model's name in the engine's metrics.
func (v Variant) EngineModel() string {
	if v.ServedName != "" {
		return v.ServedName
	}
	return v.Model.Name
}

// Role is the part of the work that a variant does.
type Role string

// The roles.
const (
	RoleBoth    Role = "both"    // prefill and decode
	RolePrefill Role = "prefill" // prefill only
	RoleDecode  Role = "decode"  // decode only
)

// Engine is the inference engine of a variant. Package engine describes each.
type Engine string

// The engines.
const (
	EngineVLLM   Engine = "vllm"
	EngineSGLang Engine = "sglang"
)

// Objective is a latency objective, the SLO of a variant. A zero limit is no limit.
type Objective struct {
	TTFT time.Duration `json:"-"` // time to first token
	ITL  time.Duration `json:"-"` // inter-token latency
	// Percentile is the share of requests, in (0, 1), that must meet both limits. It means
	// something only if there is a limit.
	Percentile float64 `json:"percentile,omitzero"`
}

// Range is the domain of a variant's replicas: [Min, Max], and Idle below it if AllowsIdle.
type Range struct {
	Min int `json:"min"`
	Max int `json:"max"`
	// Idle is the number of replicas of an idle variant, below Min. It means something only
	// if AllowsIdle.
	Idle       int  `json:"idle,omitzero"`
	AllowsIdle bool `json:"allowsIdle,omitzero"`
}

// Floor returns the least number of replicas of the range.
func (r Range) Floor() int {
	if r.AllowsIdle {
		return min(r.Idle, r.Min)
	}
	return r.Min
}

// Clamp returns the number of the range that is nearest to n from above, or Max.
func (r Range) Clamp(n int) int {
	if r.AllowsIdle && n <= r.Idle {
		return r.Idle
	}
	return max(r.Min, min(n, r.Max))
}

// Pause is the effect of KEDA's annotations on a ScaledObject. The zero value is none.
type Pause struct {
	// All is true if KEDA does not scale the target at all. If Fixed, it set the target to Replicas
	// before.
	All      bool `json:"all,omitzero"`
	Fixed    bool `json:"fixed,omitzero"`
	Replicas int  `json:"replicas,omitzero"`
	// In is true if KEDA blocks scale-down of the target, Out if it blocks scale-up.
	In  bool `json:"in,omitzero"`
	Out bool `json:"out,omitzero"`
	// Awake is true if KEDA keeps the target above zero and above its idle number, whatever the
	// plan.
	Awake bool `json:"awake,omitzero"`
}
