package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/wva-project/wva/analyzer"
	"github.com/wva-project/wva/analyzer/queueing"
	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/simulation"
)

// sizing is a question with the sources of its parts.
type sizing struct {
	queueing.Question
	flags   *sizeFlags
	profile foundProfile
	prompts queueing.Lengths
	lengths string
	limits  limitSources
	sizer   *queueing.Sizer
}

// limitSources are the sources of the limits of an engine.
type limitSources struct {
	MaxSequences  string `json:"maxSequences"`
	BatchedTokens string `json:"batchedTokens"`
	KVTokens      string `json:"kvTokens"`
}

// sizing returns the question of the flags. The error joins everything that is wrong with it.
func (f *sizeFlags) sizing() (sizing, error) {
	s := sizing{flags: f, sizer: &queueing.Sizer{}}
	wrong := usage(f.check())
	var unknown, unread error
	s.profile, unknown = f.found()
	if f.checkLengths() == nil {
		unread = s.measure()
	}
	if err := errors.Join(wrong, unknown, unread); err != nil {
		return sizing{}, err
	}
	s.Objective, s.Dispersion = f.objective(), f.dispersion
	s.Replica, s.limits = f.replica(s.profile.Profile)
	var err error
	if s.Replica.Profile, err = analyzer.LinearProfile(s.profile.Cost, s.Question, s.sizer.MaxRate); err != nil {
		return sizing{}, err
	}
	if prefill, decode := s.Mix.Work(s.Replica.Profile, 0); prefill+decode == 0 {
		return sizing{}, errors.New("by the profile a request takes no time, so the capacity has no limit; add beta and gamma for decoding, prefill for prompts")
	}
	return s, nil
}

// objective returns the limits that concern the role.
func (f *sizeFlags) objective() queueing.Objective {
	o := queueing.Objective{TTFT: f.ttft.Seconds(), ITL: f.itl.Seconds(), Percentile: f.percentile}
	switch fleet.Role(f.role) {
	case fleet.RolePrefill:
		o.ITL = 0
	case fleet.RoleDecode:
		o.TTFT = 0
	case fleet.RoleBoth:
	}
	return o
}

// replica returns the engine as the analyzer would take it.
func (f *sizeFlags) replica(p fleet.Profile) (queueing.Replica, limitSources) {
	r := queueing.Replica{
		Profile: analyzer.Seconds(p.Cost),
		// The default budget has a token for each sequence at least.
		MaxSequences: cmp.Or(f.maxSequences, p.MaxSequences, analyzer.DefaultMaxSequences),
		KVTokens:     cmp.Or(f.kvTokens, p.KVTokens),
		PrefixHits:   f.prefixHits,
	}
	r.BatchedTokens = cmp.Or(f.batchedTokens, p.BatchedTokens, max(analyzer.DefaultBatchedTokens, r.MaxSequences))
	if f.role == string(fleet.RoleDecode) {
		r.PrefixHits = 1 // the prompt's keys and values come from a prefill replica
	}
	return r, limitSources{
		MaxSequences:  sourceOf(f.maxSequences > 0, p.MaxSequences > 0, "vLLM's default"),
		BatchedTokens: sourceOf(f.batchedTokens > 0, p.BatchedTokens > 0, "vLLM's default"),
		KVTokens:      sourceOf(f.kvTokens > 0, p.KVTokens > 0, "not known, so no limit"),
	}
}

func sourceOf(given, profiled bool, otherwise string) string {
	switch {
	case given:
		return "as given"
	case profiled:
		return "the profile's"
	}
	return otherwise
}

// measure fills in the lengths of requests for the role.
func (s *sizing) measure() error {
	prompts, outputs, source, err := s.flags.distributions()
	if err != nil {
		return err
	}
	s.prompts, s.lengths = prompts, source
	s.Mix, err = queueing.NewMix(prompts, outputs)
	if err == nil && s.flags.role == string(fleet.RolePrefill) {
		s.Mix = s.Mix.PrefillOnly()
	}
	return err
}

func (f *sizeFlags) distributions() (prompts, outputs queueing.Lengths, source string, err error) {
	if f.trace != "" {
		return tracedLengths(f.trace)
	}
	prompts, errPrompts := queueing.AssumedLengths(f.promptTokens)
	if errPrompts != nil {
		errPrompts = fmt.Errorf("prompt-tokens: %w", errPrompts)
	}
	outputs, errOutputs := queueing.AssumedLengths(cmp.Or(f.outputTokens, 1))
	if errOutputs != nil {
		errOutputs = fmt.Errorf("output-tokens: %w", errOutputs)
	}
	return prompts, outputs, "assumed lognormal, with a deviation as large as the mean", errors.Join(errPrompts, errOutputs)
}

// tracedLengths reads the lengths of a trace.
func tracedLengths(path string) (prompts, outputs queueing.Lengths, source string, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return prompts, outputs, "", fmt.Errorf("reading the trace: %w", err)
	}
	requests, err := simulation.ReadTrace(bytes.NewReader(timed(data)), fleet.ModelID{})
	if err != nil {
		return prompts, outputs, "", fmt.Errorf("%s:\n%w", path, err)
	}
	prompt, output := make([]float64, len(requests)), make([]float64, len(requests))
	for i, r := range requests {
		prompt[i], output[i] = float64(r.Prompt), float64(r.Output)
	}
	prompts, errPrompts := queueing.SampledLengths(prompt)
	outputs, errOutputs := queueing.SampledLengths(output)
	return prompts, outputs, fmt.Sprintf("of %d requests in %s", len(requests), path), errors.Join(errPrompts, errOutputs)
}

// timed adds a column of times to a trace without one, since lengths do not need times.
func timed(trace []byte) []byte {
	header, _, _ := bytes.Cut(trace, []byte("\n"))
	if len(bytes.TrimSpace(header)) == 0 || bytes.Contains(bytes.ToLower(header), []byte("timestamp")) {
		return trace
	}
	var b strings.Builder
	b.WriteString("TIMESTAMP")
	for i, line := range strings.SplitAfter(strings.TrimPrefix(string(trace), "\ufeff"), "\n") {
		switch {
		case i == 0:
			b.WriteString("," + line)
		case strings.TrimSpace(line) == "":
			b.WriteString(line)
		default:
			b.WriteString("0," + line)
		}
	}
	return []byte(b.String())
}
