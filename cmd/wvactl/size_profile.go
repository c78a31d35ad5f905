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

// knownProfiles are rows in the order in which they count, with where they stand.
type knownProfiles struct {
	rows  []fleet.Profile
	own   int // how many of the first rows are the configuration's
	where string
}

// foundProfile is a profile with where it stands.
type foundProfile struct {
	fleet.Profile
	where string
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
		if each.Key == "profile" { // a flag needs nothing else of a trigger
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
	own, err := configured(f.config)
	if err != nil {
		return knownProfiles{}, fmt.Errorf("the configuration is faulty:\n%w", err)
	}
	return knownProfiles{rows: own.EngineProfiles(), own: len(own.Profiles), where: f.config}, nil
}

// configured reads a configuration for its profiles. Flags of the server take the place of all that only a server needs, such
// as files that are on its machine.
func configured(path string) (*config.Config, error) {
	var server cobra.Command
	flags := server.Flags()
	config.AddFlags(flags)
	err := flags.Set("config", path)
	for _, s := range config.Settings() {
		value := s.Default
		switch s.Key {
		case "profiles", "profileCatalogue":
			continue
		case "prometheus.url":
			value = "http://localhost" // is required, and not asked
		}
		if s.Flag() != "" {
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
				return foundProfile{row, "profiles of " + k.where}, nil
			}
			return foundProfile{row, "shipped catalogue"}, nil
		}
	}
	asked := f.model + " on " + f.accelerator
	if f.precision != "" {
		asked += ", " + f.precision
	}
	return foundProfile{}, fmt.Errorf("no profile fits %s, TP %d; %s; or fit one by wvactl fit and give it as --profile", asked, f.tensorParallel, k.nearest(f.model))
}

// mostOffered is how many profiles a message names.
const mostOffered = 20

// nearest names the profiles of a model, or where it has none the models of which there are some, those of similar names first.
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

// alike counts the three letters in a row that two names share. Case and signs do not count.
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
