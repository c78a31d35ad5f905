package fleet

import "time"

// Variant is one way of serving a model: a workload on one kind of accelerator, at a price.
type Variant struct {
	ID VariantID `json:"id"`
	// Advisory is true of a variant that annotations of an existing object declare: it is decided, and nobody is told the number
	// but people.
	Advisory bool `json:"advisory,omitzero"`

	Model  ModelID  `json:"model"`
	Target TargetID `json:"target"`
	// ServedName is the model's name in the engine's metrics; empty where it equals Model.Name.
	ServedName     string      `json:"servedName,omitzero"`
	Accelerator    Accelerator `json:"accelerator,omitzero"` // empty: not known
	GPUsPerReplica int         `json:"gpusPerReplica"`       // > 0; of a group all its pods together
	// Precision is that of the weights, such as bf16 or fp8, to find a profile by; empty where it is not said.
	Precision string `json:"precision,omitzero"`
	// Profile is what one iteration of the engine costs, as the trigger says it; zero where it does not.
	Profile EngineCost `json:"profile,omitzero"`
	// Cost is the price of one replica for an hour.
	Cost         float64       `json:"cost"`
	ServiceClass string        `json:"serviceClass,omitzero"` // names a row of Snapshot.Classes
	Role         Role          `json:"role"`
	Engine       Engine        `json:"engine"`
	Objective    Objective     `json:"objective,omitzero"`
	Range        Range         `json:"range"`
	Cooldown     time.Duration `json:"-"` // how long KEDA waits with the last step to zero
	// Created is when the ScaledObject, or the object that declares it, was made: the older of two claims on one target wins.
	Created time.Time `json:"created,omitzero"`
	// Hidden is why the replicas of the workload, or its pods, cannot be seen now, with the remedy; empty where they can. What is
	// shown of them may be old, or a part. The whole model is then held: what these replicas carry is not known.
	Hidden string `json:"hidden,omitzero"`
	// Fault is what is wrong with the definition, with the remedy; empty where nothing is. Such a variant is held: defaults stand
	// where something could not be read.
	Fault string `json:"fault,omitzero"`
	// Refused is why KEDA would misapply our number, with the remedy; empty where it would not. Such a variant is held at what
	// runs, and its RPCs answer with this text as an error.
	Refused string `json:"refused,omitzero"`
	// Triggers is how many triggers of ours the object holds, where that is more than one. Fault says so too.
	Triggers int `json:"triggers,omitzero"`
	// Pause is what annotations of the ScaledObject keep KEDA from doing.
	Pause Pause `json:"pause,omitzero"`
	// Fallback is true while KEDA's fallback is in force: KEDA applies that, not our number.
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

// Engine is the inference engine of a variant; it says which names its metrics have.
type Engine string

// The engines.
const (
	EngineVLLM   Engine = "vllm"
	EngineSGLang Engine = "sglang"
)

// Objective is a latency promise. A zero limit is no limit.
type Objective struct {
	TTFT time.Duration `json:"-"` // time to first token
	ITL  time.Duration `json:"-"` // inter-token latency
	// Percentile is the share of requests, in (0, 1), that must meet both limits. It means something only where there is one.
	Percentile float64 `json:"percentile,omitzero"`
}

// Range is the domain of a variant's replicas: [Min, Max], and Idle below it where AllowsIdle.
type Range struct {
	Min int `json:"min"`
	Max int `json:"max"`
	// Idle is the number of replicas of an idle variant, below Min. It means something only where AllowsIdle.
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

// Pause is what annotations of a ScaledObject keep KEDA from doing. The zero value is nothing.
type Pause struct {
	// All is true where KEDA does not scale the target at all. Where Fixed it set the target to Replicas before.
	All      bool `json:"all,omitzero"`
	Fixed    bool `json:"fixed,omitzero"`
	Replicas int  `json:"replicas,omitzero"`
	// In is true where KEDA does not let the target shrink, Out where it does not let it grow.
	In  bool `json:"in,omitzero"`
	Out bool `json:"out,omitzero"`
	// Awake is true where KEDA keeps the target above zero and above its idle number, whatever we say.
	Awake bool `json:"awake,omitzero"`
}
