package scaledobject

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/wva-project/wva/engine"
	"github.com/wva-project/wva/fleet"
)

// Key describes one metadata key of a WVA trigger.
type Key struct {
	Name string
	Type Type
	// Unit is the unit of a number; empty if there is none.
	Unit string
	// Required is true of a key without which a definition is invalid.
	Required bool
	// Default is the value of an absent key, as it would be written; empty if Absent says it alone.
	Default string
	// Allowed lists the valid values.
	Allowed string
	// Example is a valid value.
	Example string
	// Meaning is the use of the key, and Absent the behaviour without it; a sentence or two each.
	Meaning, Absent string
}

// Type is the form of a key's values.
type Type string

// The types of values. In YAML, metadata values are strings whatever their type: numbers are
// quoted.
const (
	TypeText     Type = "text"
	TypeChoice   Type = "choice"
	TypeCount    Type = "count"         // a whole number, in digits
	TypeNumber   Type = "number"        // a decimal number: "10", "0.5" or "1e3"
	TypeDuration Type = "duration"      // a number with a unit: "500ms" or "1.5s"
	TypeFigures  Type = "named numbers" // "alpha=6,beta=0.03"
	TypeNames    Type = "names"         // "sql,law"
)

// DefaultPercentile is the share of requests that must meet the latency objective by default.
const DefaultPercentile = 0.95

const (
	maxText     = 256 // bytes
	maxNames    = 64
	maxGPUs     = 4096
	maxCost     = 1e9 // keeps every sum over a fleet finite
	maxDuration = time.Hour
	// those of retentions in the configuration
	minRetention = 10 * time.Second
	maxRetention = 30 * 24 * time.Hour
	maxReplicas  = 1<<31 - 1 // KEDA's own type
)

// Keys returns the metadata keys of a WVA trigger, in the order in which they are documented.
func Keys() []Key {
	rows := table()
	keys := make([]Key, len(rows))
	for i, row := range rows {
		keys[i] = row.Key
	}
	return keys
}

// kedaKeys returns the keys of an external trigger that are KEDA's own. Their values are never read
// or shown.
func kedaKeys() []string {
	return []string{"scalerAddress", "enableTLS", "unsafeSsl", "caCert", "tlsCertFile", "tlsClientCert", "tlsClientKey"}
}

// row is a key with its field of the variant.
type row struct {
	Key
	// identifies is true of a key that makes an external trigger one of WVA: no other scaler has a
	// key of this name.
	identifies bool
	// explicit is true of a key that is rendered even if it has its default.
	explicit bool
	// read sets the field from a value. If it returns a problem, the field is unchanged.
	read func(*fleet.Variant, string) *problem
	// write returns the field as a value; empty for the zero value.
	write func(fleet.Variant) string
}

// keyTable and knownKeys are compiled once, since they are read for every object of a cluster. They
// do not change.
var (
	keyTable  = slices.Concat(servingKeys(), sizingKeys(), engineKeys(), objectiveKeys(), zeroKeys())
	knownKeys = knownNames()
)

// table is the one description of the keys. A key that depends on another comes after it.
func table() []row { return keyTable }

func servingKeys() []row {
	model := textKey("modelID", func(v *fleet.Variant) *string { return &v.Model.Name })
	model.Required, model.identifies = true, true
	model.Example = "meta-llama/Llama-3.1-8B-Instruct"
	model.Meaning = "The model that the variant serves, as users request it. Variants of one namespace with the same modelID share its load."
	model.Absent = "A validation error if another key shows that the trigger is one of WVA (servedModelName, gpusPerReplica or variantCost). Else the trigger is ignored."

	served := textKey("servedModelName", func(v *fleet.Variant) *string { return &v.ServedName })
	served.identifies = true
	served.Example = "llama-8b"
	served.Meaning = "The model's name in the metrics of the engine, as its argument --served-model-name sets it."
	served.Absent = "It is the first name of the engine's argument --served-model-name; without that, modelID is the name in the metrics. If the engine uses another one, the variant is held with the code " + string(fleet.CodeMetricsMissing) + "."

	adapters := namesKey("adapters", func(v *fleet.Variant) *[]string { return &v.Adapters })
	adapters.Example = "sql,law"
	adapters.Meaning = "The names of LoRA adapters on the model, as users request them. Their requests at the gateway are demand of the model, and wake it from zero. A name of another model is not used: finding " + string(fleet.CodeSharedAdapter) + "."
	adapters.Absent = "They are read from the engine's argument --lora-modules (SGLang: --lora-paths), and so are further names of --served-model-name. Requests of others count once an engine serves them, under the model's name."

	inference := choiceKey("engine", func(v *fleet.Variant) *fleet.Engine { return &v.Engine }, engineNames()...)
	inference.Meaning = "The inference engine. It determines the names of metrics and of command-line flags."
	inference.Absent = "It is the engine that the command line of the pod template starts, else that of its label " + engine.EngineTypeLabel + ", else vLLM. A label that is not known, or contradicts the others, is not used: finding " + string(fleet.CodeLabelIgnored) + "."

	role := choiceKey("role", func(v *fleet.Variant) *fleet.Role { return &v.Role }, fleet.RoleBoth, fleet.RolePrefill, fleet.RoleDecode)
	role.Meaning = "The part of the work that the variant does. Variants of one model either all have a role of prefill or decode, or none has."
	role.Absent = "It is that of the label llm-d.ai/role of the pod template, if the variants of the model have both prefill and decode or one of them has this key. Else each replica does both. A label that is not known, or contradicts this key, is not used: finding " + string(fleet.CodeLabelIgnored) + "."

	return []row{model, served, adapters, inference, role}
}

// engineNames returns the names of the engines in order of precedence.
func engineNames() []fleet.Engine {
	var names []fleet.Engine
	for _, e := range engine.Engines() {
		names = append(names, e.Name)
	}
	return names
}

func sizingKeys() []row {
	accelerator := textKey("accelerator", func(v *fleet.Variant) *fleet.Accelerator { return &v.Accelerator })
	accelerator.Example = "H100"
	accelerator.Meaning = "The accelerator type of the replicas, by its name in the catalogue or on the nodes."
	accelerator.Absent = "It is read from the node selector or the required node affinity of the pod template, else from the nodes on which the pods run. " +
		"If none of them tells, no profile fits and no limit of accelerators applies."

	gpus := countKey("gpusPerReplica", maxGPUs, func(v *fleet.Variant) *int { return &v.GPUsPerReplica })
	gpus.identifies = true
	gpus.Unit, gpus.Default, gpus.Example = "accelerators", "1", "8"
	gpus.Meaning = "The number of accelerators of one replica, over all pods of a group."
	gpus.Absent = "The accelerators that the pod template requests count, over all pods of a group; the default applies if it requests none."

	cost := numberKey("variantCost", interval{highest: maxCost}, nil, func(v *fleet.Variant) *float64 { return &v.Cost })
	cost.identifies, cost.explicit = true, true
	cost.Unit, cost.Default, cost.Example = "price per hour", "10", "2.5"
	cost.Meaning = "The price of one replica for an hour, in any currency. Only the ratio between variants matters."
	cost.Absent = "The default applies. Variants on different accelerator types then seem to cost the same."

	return []row{accelerator, gpus, cost}
}

func engineKeys() []row {
	precision := textKey("precision", func(v *fleet.Variant) *string { return &v.Precision })
	precision.Example = "fp8"
	precision.Meaning = "The precision of the weights, which selects the profile."
	precision.Absent = "It is read from the engine's argument --quantization, else from the model's name (FP8, AWQ, w8a8 and others), else it is 16 bits."

	profile := profileKey("profile", func(v *fleet.Variant) *fleet.EngineCost { return &v.Profile })
	profile.Unit = "milliseconds"
	profile.Example = "alpha=6.07,beta=0.034,gamma=0.0424,prefill=0.0134,prefillSquared=0.829"
	profile.Meaning = "The time of one iteration of the engine; wvactl fit computes it from a benchmark. Sparsity is no time but the number of experts of a layer for each one that a token uses. It has precedence over the profiles of the configuration."
	profile.Absent = "The first profile that fits is used, of the configuration and then of the shipped catalogue. Without one, it is learned from the metrics of the replicas."

	return []row{precision, profile}
}

func objectiveKeys() []row {
	class := textKey("serviceClass", func(v *fleet.Variant) *string { return &v.ServiceClass })
	class.Example = "premium"
	class.Meaning = "The service class of the model's requests, a row of serviceClasses in the configuration. It sets the priority of the model if accelerators are contended; the highest of its variants counts. A priority above 0 counts only in the namespaces to which the configuration grants the class: finding " + string(fleet.CodeServiceClassNotGranted) + "."
	class.Absent = "Priority 0."

	ttft := durationKey("ttft", ofRequests(), func(v *fleet.Variant) *time.Duration { return &v.Objective.TTFT })
	ttft.Unit, ttft.Example = "ms, s, m or h", "500ms"
	ttft.Meaning = "The SLO on the time to first token, from the arrival of a request, the wait in the queue included."
	ttft.Absent = "TTFT has no limit. Without itl too, only saturation limits the capacity of a replica."

	itl := durationKey("itl", ofRequests(), func(v *fleet.Variant) *time.Duration { return &v.Objective.ITL })
	itl.Unit, itl.Example = "ms, s, m or h", "40ms"
	itl.Meaning = "The SLO on the inter-token latency, the mean time between the output tokens of a request."
	itl.Absent = "ITL has no limit. Without ttft too, only saturation limits the capacity of a replica."

	percentile := numberKey("percentile", interval{highest: 1, open: true}, shareHint, func(v *fleet.Variant) *float64 {
		return &v.Objective.Percentile
	})
	percentile.Unit, percentile.Default, percentile.Example = "share of requests", strconv.FormatFloat(DefaultPercentile, 'g', -1, 64), "0.99"
	percentile.Meaning = "The share of requests that must meet ttft and itl. It has no effect without either."
	percentile.Absent = "The default applies to ttft and itl."

	return []row{class, ttft, itl, percentile}
}

func zeroKeys() []row {
	after := durationKey("scaleToZeroAfter", span{
		shortest: minRetention, longest: maxRetention, remove: "for the retention of the configuration", example: `"10m" or "1h"`,
		allowed: fmt.Sprintf("a duration from %s to %s, with its unit", formatDuration(minRetention), formatDuration(maxRetention)),
	}, func(v *fleet.Variant) *time.Duration { return &v.ScaleToZeroAfter })
	after.Unit, after.Example = "s, m or h", "30m"
	after.Meaning = "How long the model must get no request before it is scaled to zero. Of its variants the longest counts. It has no effect unless minReplicaCount or idleReplicaCount is 0; KEDA's cooldownPeriod comes on top."
	after.Absent = "The retention that the configuration has for the model, 10m by default."
	return []row{after}
}

// ofRequests is the range of latency objectives.
func ofRequests() span {
	return span{
		shortest: 1, longest: maxDuration, example: `"500ms" or "1.5s"`, remove: "for no limit",
		allowed: fmt.Sprintf("a duration above 0 and at most %.0fh, with its unit", maxDuration.Hours()),
	}
}

// defaults sets the field to the key's default. The percentile stays zero without a latency
// objective.
func (r row) defaults(v *fleet.Variant) {
	if r.Default == "" || (r.Name == "percentile" && v.Objective.TTFT == 0 && v.Objective.ITL == 0) {
		return
	}
	r.read(v, r.Default)
}
