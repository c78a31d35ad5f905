package config

import (
	_ "embed" // the catalogue
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/wva-project/wva/fleet"
)

// shippedProfiles is the catalogue of profiles, written as the setting is.
//
//go:embed profiles.yaml
var shippedProfiles string

// Bounds of what a profile says beside its cost.
const (
	longestName   = 256 // bytes
	mostSplit     = 4096
	mostSequences = 1_000_000
	mostBatched   = 100_000_000
	mostKVTokens  = 1e12
)

// EngineProfiles returns the profiles of engines in the order in which they count: those of the administrator, then the
// shipped catalogue where it is on.
func (c *Config) EngineProfiles() []fleet.Profile { return slices.Concat(c.Profiles, c.catalogue) }

// readCatalogue takes the shipped profiles, if they are wanted. What is wrong with them is a fault of the release.
func (c *Config) readCatalogue() []error {
	if c.ProfileCatalogue != On {
		return nil
	}
	var faults []error
	for _, wrong := range profiles(func(c *Config) *[]fleet.Profile { return &c.catalogue }).set(c, textNode(shippedProfiles)) {
		faults = append(faults, &FaultError{
			Key: "profileCatalogue", Problem: fmt.Sprintf("line %d of the shipped catalogue %s", wrong.node.Line, wrong.problem), Remedy: "set it to off, and report this",
		})
	}
	return faults
}

// profiles are what engines cost.
func profiles(field func(*Config) *[]fleet.Profile) binding {
	return list[fleet.Profile]{
		name:    "profiles",
		entries: `a list such as [{model: "*Llama-3.1-8B*", accelerator: H100, precision: bf16, tensorParallel: 1, alpha: 6.07, beta: 0.034, gamma: 0.0424, prefill: 0.0134, prefillSquared: 0.829}]`,
		field:   field,
		identity: func(p fleet.Profile) string {
			return strings.ToLower(p.Model) + " on " + string(p.Accelerator) + ", precision " + orAny(fleet.CanonicalPrecision(p.Precision)) + ", TP " + strconv.Itoa(p.TensorParallel)
		},
		read:  readProfile,
		write: writeProfile,
	}
}

func orAny(precision string) string {
	if precision == "" {
		return "any"
	}
	return precision
}

func readProfile(item *yaml.Node) (fleet.Profile, []complaint) {
	known := []string{"model", "accelerator", "precision", "tensorParallel"}
	for _, figure := range fleet.CostFigures() {
		known = append(known, figure.Name)
	}
	r := readEntry(item, append(known, "kvTokens", "maxSequences", "batchedTokens", "origin")...)
	p := fleet.Profile{TensorParallel: 1}
	r.text("model", true, `the model's name as variants give it in modelID, * for any text, such as "*Llama-3.1-8B*"`, &p.Model)
	r.text("accelerator", true, "the name that variants use, such as H100", (*string)(&p.Accelerator))
	r.text("precision", false, "that of the weights, such as bf16 or fp8", &p.Precision)
	r.whole("tensorParallel", false, integer(1, mostSplit), &p.TensorParallel)
	for i, figure := range fleet.CostFigures() {
		r.number(figure.Name, i == 0, number(figure.Lowest, figure.Highest), figure.Of(&p.Cost))
	}
	r.number("kvTokens", false, number(0, mostKVTokens), &p.KVTokens)
	r.whole("maxSequences", false, integer(0, mostSequences), &p.MaxSequences)
	r.whole("batchedTokens", false, integer(0, mostBatched), &p.BatchedTokens)
	r.text("origin", false, "where the figures come from, on one line", &p.Origin)
	return p, r.complaints
}

// text reads a text that is not empty.
func (r *entryReader) text(name string, required bool, allowed string, at *string) {
	r.field(name, required, fmt.Sprintf("%s; at most %d bytes", allowed, longestName), func(text string) string {
		*at = text
		switch {
		case strings.TrimSpace(text) != text || text == "":
			return "is empty, or has spaces around it"
		case len(text) > longestName:
			return "is too long"
		}
		return ""
	})
}

// number reads a number of a shape.
func (r *entryReader) number(name string, required bool, s shape[float64], at *float64) {
	r.field(name, required, s.allowed, func(text string) string {
		value, wrong := s.parse(text)
		*at = value + 0 // adding zero turns -0 into 0
		return wrong
	})
}

// whole reads a whole number of a shape.
func (r *entryReader) whole(name string, required bool, s shape[int], at *int) {
	r.field(name, required, s.allowed, func(text string) (wrong string) {
		*at, wrong = s.parse(text)
		return wrong
	})
}

// writeProfile writes what an entry says, without what it leaves open.
func writeProfile(p fleet.Profile) *yaml.Node {
	entry := &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle}
	put := func(name string, value *yaml.Node, said bool) {
		if said {
			entry.Content = append(entry.Content, textNode(name), value)
		}
	}
	decimal := func(x float64) *yaml.Node {
		return &yaml.Node{Kind: yaml.ScalarNode, Value: strconv.FormatFloat(x, 'g', -1, 64)}
	}
	put("model", textNode(p.Model), true)
	put("accelerator", textNode(string(p.Accelerator)), true)
	put("precision", textNode(p.Precision), p.Precision != "")
	put("tensorParallel", decimal(float64(p.TensorParallel)), true)
	for i, figure := range fleet.CostFigures() {
		x := *figure.Of(&p.Cost)
		put(figure.Name, decimal(x), i == 0 || x != 0)
	}
	put("kvTokens", decimal(p.KVTokens), p.KVTokens != 0)
	put("maxSequences", decimal(float64(p.MaxSequences)), p.MaxSequences != 0)
	put("batchedTokens", decimal(float64(p.BatchedTokens)), p.BatchedTokens != 0)
	put("origin", textNode(p.Origin), p.Origin != "")
	return entry
}

// profileWarnings names the administrator's profiles that cannot count.
func (c *Config) profileWarnings() []string {
	var warnings []string
	for i, p := range c.Profiles {
		name := "profile of " + quoted(p.Model) + " on " + string(p.Accelerator)
		if !slices.ContainsFunc(c.Accelerators, func(a fleet.AcceleratorSpec) bool { return a.Name == p.Accelerator }) {
			warnings = append(warnings, name+" names an accelerator that the list of accelerators does not have; variants are compared with it byte for byte")
		}
		if slices.ContainsFunc(c.Profiles[:i], func(before fleet.Profile) bool { return before.Covers(p) }) {
			warnings = append(warnings, name+" never counts: an entry above it fits every variant that it fits")
		}
	}
	return warnings
}
