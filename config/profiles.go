package config

import (
	_ "embed" // the shipped profiles
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/wva-project/wva/fleet"
)

// shippedProfiles has the form of the setting profiles.
//
//go:embed profiles.yaml
var shippedProfiles string

// Bounds of the fields of a profile, besides those of the costs.
const (
	mostSplit     = 4096
	mostSequences = 1_000_000
	mostBatched   = 100_000_000
	mostKVTokens  = 1e12
)

// EngineProfiles returns the profiles in the order in which they are searched: those of tenants for
// their namespaces, the administrator's, then the shipped ones if profileCatalogue is on.
func (c *Config) EngineProfiles() (rows []fleet.Profile) {
	for _, namespace := range slices.Sorted(maps.Keys(c.tenants)) {
		rows = append(rows, c.tenants[namespace].settings.Profiles...)
	}
	rows = append(rows, c.Profiles...)
	if c.ProfileCatalogue == On {
		rows = append(rows, c.catalogue...)
	}
	return rows
}

// ShippedProfiles returns the profiles that the product ships.
func ShippedProfiles() ([]fleet.Profile, error) {
	c := Config{ProfileCatalogue: On}
	errs := c.readCatalogue()
	return c.catalogue, errors.Join(errs...)
}

// readCatalogue reads the shipped profiles if they are turned on. An error here is a bug of the
// release.
func (c *Config) readCatalogue() []error {
	if c.ProfileCatalogue != On {
		return nil
	}
	var errs []error
	catalogue := profiles(func(c *Config) *[]fleet.Profile { return &c.catalogue })
	for _, p := range catalogue.set(c, textNode(shippedProfiles)) {
		errs = append(errs, &ValidationError{
			Key:     "profileCatalogue",
			Problem: fmt.Sprintf("line %d of the shipped profiles %s", p.node.Line, p.text),
			Remedy:  "set it to off, and report this",
		})
	}
	return errs
}

// profiles is the list of profiles.
func profiles(field func(*Config) *[]fleet.Profile) binding {
	return list[fleet.Profile]{
		name: "profiles",
		accepted: `a list such as [{model: "*Llama-3.1-8B*", accelerator: H100, precision: bf16, tensorParallel: 1, ` +
			`alpha: 6.07, beta: 0.034, gamma: 0.0424, prefill: 0.0134, prefillSquared: 0.829}]`,
		field:    field,
		identity: profileName,
		merging:  rowIdentity{fields: []string{"model", "accelerator", "precision", "tensorParallel"}, first: true},
		read:     readProfile,
		write:    writeProfile,
	}
}

// profileName returns the fields of a profile that select its variants, as one text.
func profileName(p fleet.Profile) string {
	precision := fleet.CanonicalPrecision(p.Precision)
	if precision == "" {
		precision = "any"
	}
	return fmt.Sprintf("%s on %s, precision %s, TP %d", strings.ToLower(p.Model), p.Accelerator, precision, p.TensorParallel)
}

func readProfile(item *yaml.Node) (fleet.Profile, []problem) {
	known := []string{"model", "accelerator", "precision", "tensorParallel"}
	for _, figure := range fleet.CostFigures() {
		known = append(known, figure.Name)
	}
	r := newRowReader(item, append(known, "kvTokens", "maxSequences", "batchedTokens", "origin")...)
	p := fleet.Profile{TensorParallel: 1}
	r.text("model", true, `the model's name as in modelID, with * for any text, such as "*Llama-3.1-8B*"`, &p.Model)
	r.text("accelerator", true, "the name that variants use, such as H100", (*string)(&p.Accelerator))
	r.text("precision", false, "that of the weights, such as bf16 or fp8", &p.Precision)
	r.whole("tensorParallel", false, integer(1, mostSplit), &p.TensorParallel)
	for i, figure := range fleet.CostFigures() {
		r.number(figure.Name, i == 0, number(figure.Lowest, figure.Highest), figure.Of(&p.Cost))
	}
	r.number("kvTokens", false, number(0, mostKVTokens), &p.KVTokens)
	r.whole("maxSequences", false, integer(0, mostSequences), &p.MaxSequences)
	r.whole("batchedTokens", false, integer(0, mostBatched), &p.BatchedTokens)
	r.text("origin", false, "the source of the figures, on one line", &p.Origin)
	return p, r.problems
}

// writeProfile writes the fields of a row that are set.
func writeProfile(p fleet.Profile) *yaml.Node {
	row := &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle}
	put := func(name string, value *yaml.Node, given bool) {
		if given {
			row.Content = append(row.Content, textNode(name), value)
		}
	}
	put("model", textNode(p.Model), true)
	put("accelerator", textNode(string(p.Accelerator)), true)
	put("precision", textNode(p.Precision), p.Precision != "")
	put("tensorParallel", wholeNode(p.TensorParallel), true)
	for i, figure := range fleet.CostFigures() {
		x := *figure.Of(&p.Cost)
		put(figure.Name, decimalNode(x), i == 0 || x != 0)
	}
	put("kvTokens", decimalNode(p.KVTokens), p.KVTokens != 0)
	put("maxSequences", wholeNode(p.MaxSequences), p.MaxSequences != 0)
	put("batchedTokens", wholeNode(p.BatchedTokens), p.BatchedTokens != 0)
	put("origin", textNode(p.Origin), p.Origin != "")
	return row
}

func wholeNode(n int) *yaml.Node { return plainNode("!!int", strconv.Itoa(n)) }

// profileWarnings names the administrator's profiles that are never used.
func (c *Config) profileWarnings() []string {
	var warnings []string
	for i, p := range c.Profiles {
		name := "profile of " + quoted(p.Model) + " on " + string(p.Accelerator)
		listed := func(a fleet.AcceleratorSpec) bool { return a.Name == p.Accelerator }
		if !slices.ContainsFunc(c.Accelerators, listed) {
			warnings = append(warnings, name+" has an accelerator that is not in accelerators; the names of variants must be equal to it, case included")
		}
		covers := func(before fleet.Profile) bool { return before.Covers(p) }
		if slices.ContainsFunc(c.Profiles[:i], covers) {
			warnings = append(warnings, name+" is never used: a row above it fits each variant that it fits")
		}
	}
	return warnings
}
