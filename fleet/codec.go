package fleet

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// SnapshotVersion is the version of the JSON form of a snapshot. It changes when a reader of an
// older form would misunderstand a newer one; new fields leave it as it is.
const SnapshotVersion = "wva.snapshot/v1alpha1"

// PlanVersion is the version of the JSON form of a plan.
const PlanVersion = "wva.plan/v1alpha1"

// EncodeSnapshot returns the JSON form of a snapshot: indented, with the version first, durations
// as Go writes them ("1m30s") and every float in the shortest form that reads back exactly. The
// policy of the decision goes with it under the key "policy", in the form that package planner
// gives it; nil is none.
func EncodeSnapshot(s Snapshot, policy any) ([]byte, error) {
	data, err := json.MarshalIndent(versioned{SnapshotVersion, policy, s}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding snapshot: %w", err)
	}
	return append(data, '\n'), nil
}

// DecodeSnapshot reads the JSON form, and the policy into the value that the pointer points to,
// which stays as it is if the file has none. With nil, a file that has a policy is an error. So is
// a field that this version does not know, since a decision made without it could differ from the
// original one.
func DecodeSnapshot(data []byte, policy any) (Snapshot, error) {
	var head struct {
		Version string `json:"version"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return Snapshot{}, fmt.Errorf("decoding snapshot: %w", err)
	}
	if head.Version != SnapshotVersion {
		return Snapshot{}, fmt.Errorf("decoding snapshot: version %q is not %q; read it with the release that wrote it", head.Version, SnapshotVersion)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	v := versioned{Policy: policy}
	if err := decoder.Decode(&v); err != nil {
		return Snapshot{}, fmt.Errorf("decoding snapshot: %w", err)
	}
	if policy == nil && v.Policy != nil {
		return Snapshot{}, errors.New("decoding snapshot: the file has a policy; read it as the input of a plan")
	}
	return v.Snapshot, nil
}

type versioned struct {
	Version string `json:"version"`
	Policy  any    `json:"policy,omitempty"`
	Snapshot
}

// EncodePlan returns the JSON form of a plan: indented, with the version first. Equal plans have
// equal forms, byte for byte.
func EncodePlan(p Plan) ([]byte, error) {
	data, err := json.MarshalIndent(struct {
		Version string `json:"version"`
		Plan
	}{PlanVersion, p}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding plan: %w", err)
	}
	return append(data, '\n'), nil
}

// Duration is a time.Duration whose JSON form is text, such as "1m30s".
type Duration time.Duration

// MarshalText encodes the duration as Go writes it.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%w; write it as 90s or 1m30s", err)
	}
	*d = Duration(parsed)
	return nil
}

// Each struct with durations has a shadow: the struct itself with its durations in their JSON form.

type (
	plainModel     Model
	plainVariant   Variant
	plainObjective Objective
	plainWorkload  Workload
	plainLoad      Load
)

type shadowModel struct {
	*plainModel
	Retention Duration `json:"retention,omitzero"`
}

type shadowVariant struct {
	*plainVariant
	Cooldown         Duration `json:"cooldown,omitzero"`
	ScaleToZeroAfter Duration `json:"scaleToZeroAfter,omitzero"`
}

type shadowObjective struct {
	*plainObjective
	TTFT Duration `json:"ttft,omitzero"`
	ITL  Duration `json:"itl,omitzero"`
}

type shadowWorkload struct {
	*plainWorkload
	Startup Duration `json:"startup,omitzero"`
}

type shadowLoad struct {
	*plainLoad
	IdleCovered Duration `json:"idleCovered,omitzero"`
}

// MarshalJSON encodes the model with its durations as text.
func (m Model) MarshalJSON() ([]byte, error) {
	return json.Marshal(shadowModel{(*plainModel)(&m), Duration(m.Retention)})
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (m *Model) UnmarshalJSON(data []byte) error {
	s := shadowModel{plainModel: (*plainModel)(m)}
	err := decodeStrict(data, &s)
	m.Retention = time.Duration(s.Retention)
	return err
}

// MarshalJSON encodes the variant with its durations as text.
func (v Variant) MarshalJSON() ([]byte, error) {
	return json.Marshal(shadowVariant{(*plainVariant)(&v), Duration(v.Cooldown), Duration(v.ScaleToZeroAfter)})
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (v *Variant) UnmarshalJSON(data []byte) error {
	s := shadowVariant{plainVariant: (*plainVariant)(v)}
	err := decodeStrict(data, &s)
	v.Cooldown, v.ScaleToZeroAfter = time.Duration(s.Cooldown), time.Duration(s.ScaleToZeroAfter)
	return err
}

// MarshalJSON encodes the objective with its durations as text.
func (o Objective) MarshalJSON() ([]byte, error) {
	return json.Marshal(shadowObjective{(*plainObjective)(&o), Duration(o.TTFT), Duration(o.ITL)})
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (o *Objective) UnmarshalJSON(data []byte) error {
	s := shadowObjective{plainObjective: (*plainObjective)(o)}
	err := decodeStrict(data, &s)
	o.TTFT, o.ITL = time.Duration(s.TTFT), time.Duration(s.ITL)
	return err
}

// MarshalJSON encodes the workload with its durations as text.
func (w Workload) MarshalJSON() ([]byte, error) {
	return json.Marshal(shadowWorkload{(*plainWorkload)(&w), Duration(w.Startup)})
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (w *Workload) UnmarshalJSON(data []byte) error {
	s := shadowWorkload{plainWorkload: (*plainWorkload)(w)}
	err := decodeStrict(data, &s)
	w.Startup = time.Duration(s.Startup)
	return err
}

// MarshalJSON encodes the load with its durations as text.
func (l Load) MarshalJSON() ([]byte, error) {
	return json.Marshal(shadowLoad{(*plainLoad)(&l), Duration(l.IdleCovered)})
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (l *Load) UnmarshalJSON(data []byte) error {
	s := shadowLoad{plainLoad: (*plainLoad)(l)}
	err := decodeStrict(data, &s)
	l.IdleCovered = time.Duration(s.IdleCovered)
	return err
}

func decodeStrict(data []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}
