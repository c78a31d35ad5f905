package planner

import (
	"time"

	"github.com/wva-project/wva/analyzer"
	"github.com/wva-project/wva/fleet"
)

// Input is everything that a plan depends on: Plan(in.Snapshot, in.Policy) is the same plan on
// every machine.
type Input struct {
	Snapshot fleet.Snapshot
	Policy   Policy
}

// EncodeInput returns the JSON form of an input: that of its snapshot, with the policy under the
// key "policy". The policy's Memo is left out, since it changes no plan.
func EncodeInput(in Input) ([]byte, error) {
	return fleet.EncodeSnapshot(in.Snapshot, formOf(in.Policy))
}

// DecodeInput reads the JSON form. A snapshot without a policy has the default one. A field that
// this version does not know is an error, and so is another version.
func DecodeInput(data []byte) (Input, error) {
	var form policyForm
	snapshot, err := fleet.DecodeSnapshot(data, &form)
	if err != nil {
		return Input{}, err
	}
	return Input{Snapshot: snapshot, Policy: form.policy()}, nil
}

// policyForm is the JSON form of a policy. A field that is absent takes its default.
type policyForm struct {
	Saturation         saturationForm `json:"saturation,omitzero"`
	SaturationAlone    bool           `json:"saturationAlone,omitzero"`
	DrainWithin        fleet.Duration `json:"drainWithin,omitzero"`
	KeepFor            fleet.Duration `json:"keepFor,omitzero"`
	Startup            fleet.Duration `json:"startup,omitzero"`
	Retention          fleet.Duration `json:"retention,omitzero"`
	MetricsGrace       fleet.Duration `json:"metricsGrace,omitzero"`
	ScaleDownHeadroom  float64        `json:"scaleDownHeadroom,omitzero"`
	Reaction           fleet.Duration `json:"reaction,omitzero"`
	MinReplicaLifetime fleet.Duration `json:"minReplicaLifetime,omitzero"`
	Simulations        int            `json:"simulations,omitzero"`
	Horizon            fleet.Duration `json:"horizon,omitzero"`
}

// saturationForm is the JSON form of the thresholds.
type saturationForm struct {
	KVThreshold        float64 `json:"kvThreshold,omitzero"`
	QueueThreshold     float64 `json:"queueThreshold,omitzero"`
	KVHeadroom         float64 `json:"kvHeadroom,omitzero"`
	MaxThroughputShare float64 `json:"maxThroughputShare,omitzero"`
	MaxITLShare        float64 `json:"maxITLShare,omitzero"`
	MaxITLStretch      float64 `json:"maxITLStretch,omitzero"`
}

func formOf(p Policy) policyForm {
	return policyForm{
		Saturation: saturationForm(p.Saturation), SaturationAlone: p.SaturationAlone,
		DrainWithin: fleet.Duration(p.DrainWithin), KeepFor: fleet.Duration(p.KeepFor),
		Startup: fleet.Duration(p.Startup), Retention: fleet.Duration(p.Retention),
		MetricsGrace: fleet.Duration(p.MetricsGrace), ScaleDownHeadroom: p.ScaleDownHeadroom,
		Reaction: fleet.Duration(p.Reaction), MinReplicaLifetime: fleet.Duration(p.MinReplicaLifetime),
		Simulations: p.Simulations, Horizon: fleet.Duration(p.Horizon),
	}
}

func (f policyForm) policy() Policy {
	return Policy{
		Saturation: analyzer.Saturation(f.Saturation), SaturationAlone: f.SaturationAlone,
		DrainWithin: time.Duration(f.DrainWithin), KeepFor: time.Duration(f.KeepFor),
		Startup: time.Duration(f.Startup), Retention: time.Duration(f.Retention),
		MetricsGrace: time.Duration(f.MetricsGrace), ScaleDownHeadroom: f.ScaleDownHeadroom,
		Reaction: time.Duration(f.Reaction), MinReplicaLifetime: time.Duration(f.MinReplicaLifetime),
		Simulations: f.Simulations, Horizon: time.Duration(f.Horizon),
	}
}
