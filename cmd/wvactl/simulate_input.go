package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wva-project/wva/evaluation"
	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/scaledobject"
	"github.com/wva-project/wva/simulation"
)

// entries returns the traces and loads, each with its fleet.
func (f *simulateFlags) entries() ([]evaluation.Entry, error) {
	var entries []evaluation.Entry
	for _, path := range f.traces {
		load, err := f.trace(path)
		if err != nil {
			return nil, err
		}
		entries = append(entries, evaluation.Entry{Load: load})
	}
	for _, text := range f.loads {
		load, err := evaluation.ParseLoad(text)
		if err != nil {
			return nil, usage(err)
		}
		entries = append(entries, evaluation.Entry{Load: load})
	}
	for i := range entries {
		if slices.ContainsFunc(entries[:i], func(e evaluation.Entry) bool { return e.Load.Name == entries[i].Load.Name }) {
			return nil, usage(fmt.Errorf("load %s is given twice", entries[i].Load.Name))
		}
		var err error
		if entries[i].Setup, err = f.setupOf(entries[i].Load); err != nil {
			return nil, err
		}
	}
	return entries, nil
}

func (f *simulateFlags) trace(path string) (evaluation.Load, error) {
	file, err := os.Open(path)
	if err != nil {
		return evaluation.Load{}, fmt.Errorf("reading the trace: %w", err)
	}
	defer file.Close()
	requests, err := simulation.ReadTrace(file, fleet.ModelID{})
	if err != nil {
		return evaluation.Load{}, fmt.Errorf("%s: %w", path, err)
	}
	name := filepath.Base(path)
	if f.rateScale != 1 {
		name += fmt.Sprintf(" ×%g", f.rateScale)
	}
	return evaluation.Trace(name, requests, f.rateScale), nil
}

// setupOf returns the fleet for a load: the flags come first, then the load.
func (f *simulateFlags) setupOf(load evaluation.Load) (evaluation.Setup, error) {
	o := evaluation.SetupOptions{
		Objective: fleet.Objective{
			TTFT:       cmp.Or(f.setup.Objective.TTFT, load.Setup.Objective.TTFT),
			ITL:        cmp.Or(f.setup.Objective.ITL, load.Setup.Objective.ITL),
			Percentile: cmp.Or(f.setup.Objective.Percentile, load.Setup.Objective.Percentile),
		},
		Startup: cmp.Or(f.setup.Startup, load.Setup.Startup),
		Nodes:   f.setup.Nodes,
		WarmUp:  f.setup.WarmUp,
	}
	name := cmp.Or(f.fleet, load.Fleet, "chat")
	objects, err := fleetObjects(name)
	if err != nil {
		return evaluation.Setup{}, err
	}
	setup, err := evaluation.NewSetup(name, objects, o)
	if err != nil {
		return evaluation.Setup{}, fmt.Errorf("fleet %s: %w", name, err)
	}
	return setup, nil
}

// fleetObjects returns the ScaledObjects of an embedded fleet, or of a file.
func fleetObjects(name string) ([]scaledobject.Object, error) {
	var names []string
	for _, embedded := range evaluation.Fleets() {
		if embedded.Name == name {
			return evaluation.EmbeddedFleet(name)
		}
		names = append(names, embedded.Name)
	}
	data, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("fleet %s is no file, and none of %s", name, strings.Join(names, ", "))
	}
	if err != nil {
		return nil, fmt.Errorf("reading the fleet: %w", err)
	}
	objects, err := evaluation.ReadFleet(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return objects, nil
}
