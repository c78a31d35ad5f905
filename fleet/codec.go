package fleet

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// SnapshotVersion is the version of the JSON form of a snapshot. It changes when a reader of an older
// form would misunderstand a newer one; new fields leave it as it is.
const SnapshotVersion = "wva.snapshot/v1alpha1"

// EncodeSnapshot returns the JSON form of a snapshot: indented, with the version first, durations as
// Go writes them ("1m30s") and every float in the shortest form that reads back exactly.
func EncodeSnapshot(s Snapshot) ([]byte, error) {
	data, err := json.MarshalIndent(versioned{Version: SnapshotVersion, Snapshot: s}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding snapshot: %w", err)
	}
	return append(data, '\n'), nil
}

// DecodeSnapshot reads the JSON form. A field that this version does not know is an error, since a
// decision made without it could differ from the original one.
func DecodeSnapshot(data []byte) (Snapshot, error) {
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
	var v versioned
	if err := decoder.Decode(&v); err != nil {
		return Snapshot{}, fmt.Errorf("decoding snapshot: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return Snapshot{}, errors.New("decoding snapshot: something follows the snapshot; write one per file")
	}
	return v.Snapshot, nil
}

type versioned struct {
	Version string `json:"version"`
	Snapshot
}

// duration is a time.Duration in its JSON form.
type duration time.Duration

func (d duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

func (d *duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%w; write it as 90s or 1m30s", err)
	}
	*d = duration(parsed)
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
	Retention duration `json:"retention,omitzero"`
}

type shadowVariant struct {
	*plainVariant
	Cooldown duration `json:"cooldown,omitzero"`
}

type shadowObjective struct {
	*plainObjective
	TTFT duration `json:"ttft,omitzero"`
	ITL  duration `json:"itl,omitzero"`
}

type shadowWorkload struct {
	*plainWorkload
	Startup duration `json:"startup,omitzero"`
}

type shadowLoad struct {
	*plainLoad
	IdleCovered duration `json:"idleCovered,omitzero"`
}

// MarshalJSON encodes the model with its durations as text.
func (m Model) MarshalJSON() ([]byte, error) {
	return json.Marshal(shadowModel{(*plainModel)(&m), duration(m.Retention)})
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
	return json.Marshal(shadowVariant{(*plainVariant)(&v), duration(v.Cooldown)})
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (v *Variant) UnmarshalJSON(data []byte) error {
	s := shadowVariant{plainVariant: (*plainVariant)(v)}
	err := decodeStrict(data, &s)
	v.Cooldown = time.Duration(s.Cooldown)
	return err
}

// MarshalJSON encodes the objective with its durations as text.
func (o Objective) MarshalJSON() ([]byte, error) {
	return json.Marshal(shadowObjective{(*plainObjective)(&o), duration(o.TTFT), duration(o.ITL)})
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
	return json.Marshal(shadowWorkload{(*plainWorkload)(&w), duration(w.Startup)})
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
	return json.Marshal(shadowLoad{(*plainLoad)(&l), duration(l.IdleCovered)})
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
