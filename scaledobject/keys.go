package scaledobject

import (
	"slices"
	"strconv"
	"time"

	"github.com/wva-project/wva/fleet"
)

// Key describes one metadata key of our trigger.
type Key struct {
	Name string
	Type Type
	// Required is true of a key that has to be there.
	Required bool
	// Default is what an absent key means, written as a value of it; empty where absent means "not said".
	Default string
	// Allowed says which values are read.
	Allowed string
	// Example is a value that is read.
	Example string
	// Meaning is what the key is for, in one sentence.
	Meaning string
}

// Type is the form of a key's values.
type Type string

// The types of values. Metadata values are strings in YAML, whatever their type: numbers are quoted there.
const (
	TypeText     Type = "text"
	TypeChoice   Type = "choice"
	TypeCount    Type = "count"    // a whole number, in digits
	TypeNumber   Type = "number"   // a decimal number, "10", "0.5" or "1e3"
	TypeDuration Type = "duration" // a number with a unit, "500ms" or "1.5s"
	TypeFigures  Type = "figures"  // named numbers, "alpha=6,beta=0.03"
)

// DefaultPercentile is the share of requests that must meet an objective whose percentile is not said.
const DefaultPercentile = 0.95

const (
	maxText     = 256 // bytes
	maxGPUs     = 4096
	maxCost     = 1e9 // keeps every sum over a fleet finite
	maxDuration = time.Hour
	maxReplicas = 1<<31 - 1 // KEDA's own type
)

// Keys returns the metadata keys of our trigger, in the order in which they are documented.
func Keys() []Key {
	rows := table()
	keys := make([]Key, len(rows))
	for i, row := range rows {
		keys[i] = row.Key
	}
	return keys
}

// kedaKeys returns the keys of an external trigger that are KEDA's own. Their values are never read or shown.
func kedaKeys() []string {
	return []string{"scalerAddress", "enableTLS", "unsafeSsl", "caCert", "tlsCertFile", "tlsClientCert", "tlsClientKey"}
}

// row is a key with the field of the variant that it stands for.
type row struct {
	Key
	// claims is true of a key that marks an external trigger as ours: no other scaler has a reason to carry it.
	claims bool
	// explicit is true of a key that is rendered even where it has its default.
	explicit bool
	// read sets the field from a value, or says what is wrong and leaves the field as it is.
	read func(*fleet.Variant, string) *complaint
	// write returns the field as a value; empty where it says nothing.
	write func(fleet.Variant) string
}

// keyTable and knownKeys are compiled once: they are asked for at every object of a cluster. Nobody changes them.
var (
	keyTable  = slices.Concat(servingKeys(), sizingKeys(), engineKeys(), objectiveKeys())
	knownKeys = knownNames()
)

// table is the one description of the keys. A key that depends on another stands below it.
func table() []row { return keyTable }

func servingKeys() []row {
	model := textKey("modelID", func(v *fleet.Variant) *string { return &v.Model.Name })
	model.Required, model.claims = true, true
	model.Example = "meta-llama/Llama-3.1-8B-Instruct"
	model.Meaning = "The model that this variant serves, as users ask for it."

	served := textKey("servedModelName", func(v *fleet.Variant) *string { return &v.ServedName })
	served.claims = true
	served.Example = "llama-8b"
	served.Meaning = "The model's name in the engine's metrics, where it is not modelID."

	engine := choiceKey("engine", func(v *fleet.Variant) *fleet.Engine { return &v.Engine }, fleet.EngineVLLM, fleet.EngineSGLang)
	engine.Meaning = "The inference engine; it says which names the metrics have."

	role := choiceKey("role", func(v *fleet.Variant) *fleet.Role { return &v.Role }, fleet.RoleBoth, fleet.RolePrefill, fleet.RoleDecode)
	role.Meaning = "The part of the work that this variant does."

	return []row{model, served, engine, role}
}

func sizingKeys() []row {
	accelerator := textKey("accelerator", func(v *fleet.Variant) *fleet.Accelerator { return &v.Accelerator })
	accelerator.Example = "H100"
	accelerator.Meaning = "The kind of accelerator that the replicas run on, as the catalogue names it."

	gpus := countKey("gpusPerReplica", maxGPUs, func(v *fleet.Variant) *int { return &v.GPUsPerReplica })
	gpus.claims = true
	gpus.Default, gpus.Example = "1", "8"
	gpus.Meaning = "How many accelerators one replica takes, over all its pods."

	cost := numberKey("variantCost", interval{highest: maxCost}, nil, func(v *fleet.Variant) *float64 { return &v.Cost })
	cost.claims, cost.explicit = true, true
	cost.Default, cost.Example = "10", "2.5"
	cost.Meaning = "The price of one replica for an hour, in any currency; what counts is the ratio between variants."

	return []row{accelerator, gpus, cost}
}

func engineKeys() []row {
	precision := textKey("precision", func(v *fleet.Variant) *string { return &v.Precision })
	precision.Example = "fp8"
	precision.Meaning = "The precision of the weights, to find the engine's profile by; absent means what the engine's arguments or the model's name say, else 16 bits."

	profile := costKey("profile", func(v *fleet.Variant) *fleet.EngineCost { return &v.Profile })
	profile.Example = "alpha=6.07,beta=0.034,gamma=0.0424,prefill=0.0134,prefillSquared=0.829"
	profile.Meaning = "What one iteration of the engine costs, in milliseconds; it goes before the configuration's profiles."

	return []row{precision, profile}
}

func objectiveKeys() []row {
	class := textKey("serviceClass", func(v *fleet.Variant) *string { return &v.ServiceClass })
	class.Example = "premium"
	class.Meaning = "The service class of the model's requests; it carries objective and priority where it is configured."

	ttft := durationKey("ttft", func(v *fleet.Variant) *time.Duration { return &v.Objective.TTFT })
	ttft.Example = "500ms"
	ttft.Meaning = "The longest time to first token; absent means no limit of its own."

	itl := durationKey("itl", func(v *fleet.Variant) *time.Duration { return &v.Objective.ITL })
	itl.Example = "40ms"
	itl.Meaning = "The longest time between two output tokens; absent means no limit of its own."

	percentile := numberKey("percentile", interval{highest: 1, open: true}, shareHint, func(v *fleet.Variant) *float64 {
		return &v.Objective.Percentile
	})
	percentile.Default, percentile.Example = strconv.FormatFloat(DefaultPercentile, 'g', -1, 64), "0.99"
	percentile.Meaning = "The share of requests that must meet ttft and itl; the default holds where one of them is given."

	return []row{class, ttft, itl, percentile}
}

// defaults sets the field to the key's default. The percentile of no objective stays unsaid.
func (r row) defaults(v *fleet.Variant) {
	if r.Default == "" || (r.Name == "percentile" && v.Objective.TTFT == 0 && v.Objective.ITL == 0) {
		return
	}
	r.read(v, r.Default)
}
