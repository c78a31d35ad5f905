package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/wva-project/wva/config"
	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/scaledobject"
)

// knownProfiles are profiles in the order in which they count, with their source.
type knownProfiles struct {
	rows   []fleet.Profile
	own    int // number of the first rows that are the configuration's
	source string
}

// foundProfile is a profile with its source.
type foundProfile struct {
	fleet.Profile
	source string
}

// found returns the profile that the flags choose.
func (f *sizeFlags) found() (foundProfile, error) {
	if f.profile != "" {
		cost, err := parsedCost(f.profile)
		return foundProfile{fleet.Profile{
			Model: f.model, Accelerator: fleet.Accelerator(f.accelerator), Precision: f.precision, TensorParallel: f.tensorParallel, Cost: cost,
		}, "given by --profile"}, err
	}
	known, err := f.known()
	if err != nil || f.model == "" || f.accelerator == "" {
		return foundProfile{}, err
	}
	return known.find(f)
}

// parsedCost reads a cost by the rules of triggers.
func parsedCost(text string) (fleet.EngineCost, error) {
	variant, err := scaledobject.ReadMetadata(fleet.VariantID{}, map[string]string{"profile": text})
	var invalid []error
	for _, each := range scaledobject.ValidationErrors(err) {
		if each.Key == "profile" { // the other keys of a trigger are not needed
			invalid = append(invalid, each)
		}
	}
	return variant.Profile, errors.Join(invalid...)
}

func (f *sizeFlags) known() (knownProfiles, error) {
	if f.config == "" {
		rows, err := config.ShippedProfiles()
		return knownProfiles{rows: rows}, err
	}
	own, err := configured(f.config, "profiles", "profileCatalogue")
	if err != nil {
		return knownProfiles{}, fmt.Errorf("the configuration is invalid:\n%w", err)
	}
	return knownProfiles{rows: own.EngineProfiles(), own: len(own.Profiles), source: f.config}, nil
}

// configured reads some settings of a configuration file. The others, such as files on the server's
// machine, are replaced by their defaults.
func configured(path string, keys ...string) (*config.Config, error) {
	var server cobra.Command
	flags := server.Flags()
	config.AddFlags(flags)
	err := flags.Set("config", path)
	for _, s := range config.Settings() {
		value := s.Default
		if s.Key == "prometheus.url" {
			value = "http://localhost" // required, and not used
		}
		if s.Flag() != "" && !slices.Contains(keys, s.Key) {
			err = errors.Join(err, flags.Set(s.Flag(), value))
		}
	}
	if err != nil {
		return nil, err
	}
	return config.Load(flags)
}

func (k knownProfiles) find(f *sizeFlags) (foundProfile, error) {
	for i, row := range k.rows {
		if row.Fits(f.model, fleet.Accelerator(f.accelerator), f.precision, f.tensorParallel) {
			if i < k.own {
				return foundProfile{row, "profiles of " + k.source}, nil
			}
			return foundProfile{row, "shipped catalogue"}, nil
		}
	}
	asked := f.model + " on " + f.accelerator
	if f.precision != "" {
		asked += ", " + f.precision
	}
	return foundProfile{}, fmt.Errorf("no profile fits %s, TP %d; %s; or fit one with wvactl fit, and pass it as --profile", asked, f.tensorParallel, k.nearest(f.model))
}

// mostOffered is the number of profiles that a message names.
const mostOffered = 20

// nearest lists the profiles of a model; if it has none, the models that have some, those with
// similar names first.
func (k knownProfiles) nearest(model string) string {
	var places, models []string
	for _, row := range k.rows {
		if row.Fits(model, row.Accelerator, row.Precision, row.TensorParallel) {
			places = append(places, placeOf(row))
		}
		if !slices.Contains(models, row.Model) {
			models = append(models, row.Model)
		}
	}
	switch {
	case len(places) > 0:
		return "this model has profiles on " + offered(places)
	case len(models) == 0:
		return "there are no profiles at all"
	}
	slices.SortStableFunc(models, func(a, b string) int { return cmp.Compare(alike(model, b), alike(model, a)) })
	return "there are profiles of the models " + offered(models)
}

func placeOf(row fleet.Profile) string {
	place := string(row.Accelerator)
	if row.Precision != "" {
		place += " " + row.Precision
	}
	return fmt.Sprintf("%s TP %d", place, row.TensorParallel)
}

func offered(names []string) string {
	if more := len(names) - mostOffered; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostOffered], ", "), more)
	}
	return strings.Join(names, ", ")
}

// alike counts the sequences of three letters that two names share, without case and punctuation.
func alike(a, b string) int {
	a, b = letters(a), letters(b)
	shared := 0
	for i := range max(0, len(a)-2) {
		if strings.Contains(b, a[i:i+3]) {
			shared++
		}
	}
	return shared
}

func letters(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, name)
}
