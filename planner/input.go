package planner

import (
	"fmt"
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

// policyForm is the JSON form of a policy. Its keys and values are those of the settings in the
// server's configuration. A field that is absent takes its default.
type policyForm struct {
	Saturation struct {
		KVThreshold        float64 `json:"kvThreshold,omitzero"`
		QueueThreshold     float64 `json:"queueThreshold,omitzero"`
		MaxThroughputShare float64 `json:"maxThroughputShare,omitzero"`
		MaxITLShare        float64 `json:"maxITLShare,omitzero"`
		MaxITLStretch      float64 `json:"maxITLStretch,omitzero"`
	} `json:"saturation,omitzero"`
	KVCache struct {
		Headroom float64 `json:"headroom,omitzero"`
	} `json:"kvCache,omitzero"`
	Backlog struct {
		DrainWithin fleet.Duration `json:"drainWithin,omitzero"`
	} `json:"backlog,omitzero"`
	ScaleUp struct {
		StartupTime fleet.Duration `json:"startupTime,omitzero"`
	} `json:"scaleUp,omitzero"`
	ScaleDown struct {
		Headroom           float64        `json:"headroom,omitzero"`
		MinReplicaLifetime fleet.Duration `json:"minReplicaLifetime,omitzero"`
	} `json:"scaleDown,omitzero"`
	ScaleToZero struct {
		Retention fleet.Duration `json:"retention,omitzero"`
	} `json:"scaleToZero,omitzero"`
	MissingData struct {
		KeepFor     fleet.Duration `json:"keepFor,omitzero"`
		GracePeriod fleet.Duration `json:"gracePeriod,omitzero"`
	} `json:"missingData,omitzero"`
	Sizing struct {
		Queueing       queueing `json:"queueing,omitzero"`
		MaxSimulations *int     `json:"maxSimulations,omitzero"` // 0: none
	} `json:"sizing,omitzero"`
	ErrorBudget struct {
		Enabled *bool          `json:"enabled,omitzero"` // absent: true
		Window  fleet.Duration `json:"window,omitzero"`
	} `json:"errorBudget,omitzero"`
	SwitchingCost struct {
		Horizon fleet.Duration `json:"horizon,omitzero"`
	} `json:"switchingCost,omitzero"`
}

// queueing is the setting sizing.queueing: on, the default, or off.
type queueing string

// queueingOff leaves the queueing model out of sizing.
const queueingOff queueing = "off"

// UnmarshalText reads the setting.
func (q *queueing) UnmarshalText(text []byte) error {
	if *q = queueing(text); *q != "on" && *q != queueingOff {
		return fmt.Errorf("sizing.queueing %q is not one of the choices; write on or off", text)
	}
	return nil
}

func formOf(p Policy) (f policyForm) {
	s := p.Saturation
	f.Saturation.KVThreshold, f.Saturation.QueueThreshold = s.KVThreshold, s.QueueThreshold
	f.Saturation.MaxThroughputShare, f.Saturation.MaxITLShare, f.Saturation.MaxITLStretch = s.MaxThroughputShare, s.MaxITLShare, s.MaxITLStretch
	f.KVCache.Headroom = s.KVHeadroom
	f.Backlog.DrainWithin = fleet.Duration(p.DrainWithin)
	f.ScaleUp.StartupTime = fleet.Duration(p.Startup)
	f.ScaleDown.Headroom, f.ScaleDown.MinReplicaLifetime = p.ScaleDownHeadroom, fleet.Duration(p.MinReplicaLifetime)
	f.ScaleToZero.Retention = fleet.Duration(p.Retention)
	f.MissingData.KeepFor, f.MissingData.GracePeriod = fleet.Duration(p.KeepFor), fleet.Duration(p.MetricsGrace)
	if p.SaturationAlone {
		f.Sizing.Queueing = queueingOff
	}
	if p.Simulations != 0 {
		f.Sizing.MaxSimulations = new(max(0, p.Simulations))
	}
	if p.BudgetOff {
		f.ErrorBudget.Enabled = new(false)
	}
	f.ErrorBudget.Window = fleet.Duration(p.BudgetWindow)
	f.SwitchingCost.Horizon = fleet.Duration(p.Horizon)
	return f
}

func (f policyForm) policy() Policy {
	p := Policy{
		Saturation: analyzer.Saturation{
			KVThreshold: f.Saturation.KVThreshold, QueueThreshold: f.Saturation.QueueThreshold, KVHeadroom: f.KVCache.Headroom,
			MaxThroughputShare: f.Saturation.MaxThroughputShare, MaxITLShare: f.Saturation.MaxITLShare, MaxITLStretch: f.Saturation.MaxITLStretch,
		},
		SaturationAlone: f.Sizing.Queueing == queueingOff,
		DrainWithin:     time.Duration(f.Backlog.DrainWithin), KeepFor: time.Duration(f.MissingData.KeepFor),
		Startup:   time.Duration(f.ScaleUp.StartupTime),
		Retention: time.Duration(f.ScaleToZero.Retention), MetricsGrace: time.Duration(f.MissingData.GracePeriod),
		ScaleDownHeadroom: f.ScaleDown.Headroom, MinReplicaLifetime: time.Duration(f.ScaleDown.MinReplicaLifetime),
		BudgetWindow: time.Duration(f.ErrorBudget.Window), BudgetOff: f.ErrorBudget.Enabled != nil && !*f.ErrorBudget.Enabled,
		Horizon: time.Duration(f.SwitchingCost.Horizon),
	}
	if n := f.Sizing.MaxSimulations; n != nil {
		if p.Simulations = *n; *n <= 0 {
			p.Simulations = -1 // the policy's zero is its default
		}
	}
	return p
}
