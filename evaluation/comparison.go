package evaluation

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"strconv"
)

// Comparison is the result of a sweep.
type Comparison struct {
	Outcomes []Outcome `json:"outcomes"`
	Points   []Point   `json:"points"`
	Equal    []Equal   `json:"equal_attainment"`
	Bounds   []Bound   `json:"bounds,omitzero"`
	// Interrupted is whether runs are missing.
	Interrupted bool `json:"interrupted,omitzero"`
	// Objectives are the percentiles by load.
	Objectives map[string]float64 `json:"objectives"`

	knobs map[string]string // the names of the policies' knobs
}

// Compare returns the comparison of a sweep's outcomes.
func Compare(o SweepOptions, outcomes []Outcome, interrupted bool) Comparison {
	c := Comparison{Outcomes: outcomes, Points: Points(outcomes), Interrupted: interrupted, Objectives: map[string]float64{}, knobs: map[string]string{}}
	for _, e := range o.Entries {
		c.Objectives[e.Load.Name] = e.Setup.Objective().Percentile
	}
	for _, p := range o.Policies {
		c.knobs[p.Name] = p.Knob.Name
	}
	c.Equal = EqualAttainment(c.Points, c.Objectives)
	return c
}

// WriteJSON writes the comparison as indented JSON.
func (c Comparison) WriteJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(c)
}

// csvColumns are the columns of WriteCSV.
var csvColumns = []struct {
	name  string
	value func(Outcome) string
}{
	{"load", func(o Outcome) string { return o.Load }},
	{"seed", func(o Outcome) string { return strconv.FormatUint(o.Seed, 10) }},
	{"policy", func(o Outcome) string { return o.Policy }},
	{"choice", func(o Outcome) string { return o.Choice }},
	{"knob", func(o Outcome) string { return number(o.Knob) }},
	{"default", func(o Outcome) string { return strconv.FormatBool(o.Default) }},
	{"requests", func(o Outcome) string { return strconv.Itoa(o.Requests) }},
	{"attainment", func(o Outcome) string { return number(o.Attainment) }},
	{"worst_minute", func(o Outcome) string { return number(o.WorstMinute) }},
	{"lost", func(o Outcome) string { return strconv.Itoa(o.Lost) }},
	{"unfinished", func(o Outcome) string { return strconv.Itoa(o.Unfinished) }},
	{"hours", func(o Outcome) string { return number(o.Hours) }},
	{"cost_per_hour", func(o Outcome) string { return number(o.CostPerHour) }},
	{"average_replicas", func(o Outcome) string { return number(o.AverageReplicas) }},
	{"peak_replicas", func(o Outcome) string { return strconv.Itoa(o.PeakReplicas) }},
	{"reversals_per_hour", func(o Outcome) string { return number(o.ReversalsPerHour) }},
}

// number writes a number with all its digits, so that it reads back the same.
func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// WriteCSV writes a header, and a line for each outcome.
func (c Comparison) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	var header []string
	for _, column := range csvColumns {
		header = append(header, column.name)
	}
	_ = out.Write(header) // Flush keeps the error
	for _, o := range c.Outcomes {
		var line []string
		for _, column := range csvColumns {
			line = append(line, column.value(o))
		}
		_ = out.Write(line)
	}
	out.Flush()
	return out.Error()
}
