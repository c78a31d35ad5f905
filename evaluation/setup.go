package evaluation

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/scaledobject"
	"github.com/wva-project/wva/simulation"
)

// epoch is the time of day at which every run begins.
var epoch = time.Date(2026, time.January, 5, 9, 0, 0, 0, time.UTC)

// startupSpread is the standard deviation of the logarithm of start-up times.
const startupSpread = 0.1

//go:embed manifests/*.yaml
var manifests embed.FS

// Setup is the fleet of a comparison: definitions, hardware and objective.
type Setup struct {
	Name     string
	Objects  []scaledobject.Object // sorted by name
	Variants []fleet.Variant       // of the objects, in their order; all of one model
	Fleet    simulation.FleetSpec  // its variants have the same order
	WarmUp   time.Duration
}

// Model returns the model of all variants.
func (s Setup) Model() fleet.ModelID { return s.Variants[0].Model }

// Objective returns the latency objective of the model.
func (s Setup) Objective() fleet.Objective { return s.Variants[0].Objective }

// SetupOptions replace parts of a setup. A field that is zero replaces nothing.
type SetupOptions struct {
	Objective fleet.Objective
	// WarmUp is how long a run goes on before its load, with the first requests of the load in
	// reverse order: nothing of it is measured. Default: 0.
	WarmUp time.Duration
	// Startup is the mean time of a replica from scheduled to ready. Default: 60 s.
	Startup time.Duration
	// Nodes are the nodes with accelerators. Default: accelerators are unlimited.
	Nodes []simulation.NodeSpec
}

// Fleet is an embedded fleet.
type Fleet struct{ Name, Summary string }

// Fleets returns the embedded fleets.
func Fleets() []Fleet {
	return []Fleet{
		{"chat", "Llama-3.1-8B on H100 and L40S, up to 64 replicas of each"},
		{"chat-h100", "Llama-3.1-8B on H100 alone"},
		{"chat-l40s", "Llama-3.1-8B on L40S alone"},
		{"chat-three", "Llama-3.1-8B on A100, H100 and L40S, TTFT 2 s and ITL 60 ms"},
		{"qwen-three", "Qwen3-14B on A100, H100 and L40S, TTFT 2 s and ITL 60 ms"},
		{"episode", "Qwen3-14B on 3 to 8 H100, for the load llm-d-episode"},
	}
}

// EmbeddedFleet returns the ScaledObjects of an embedded fleet.
func EmbeddedFleet(name string) ([]scaledobject.Object, error) {
	data, err := manifests.ReadFile("manifests/" + name + ".yaml")
	if err != nil {
		return nil, err
	}
	return ReadFleet(data)
}

// ReadFleet reads ScaledObjects from the YAML documents of a file.
func ReadFleet(data []byte) ([]scaledobject.Object, error) {
	var objects []scaledobject.Object
	for document := range strings.SplitSeq("\n"+string(data), "\n---") {
		var object scaledobject.Object
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			return nil, err
		}
		if object.Metadata.Name != "" {
			objects = append(objects, object)
		}
	}
	if len(objects) == 0 {
		return nil, errors.New("no ScaledObject; give manifests such as those of wvactl render")
	}
	return objects, nil
}

// NewSetup returns the setup of ScaledObjects, or all their validation errors.
func NewSetup(name string, objects []scaledobject.Object, o SetupOptions) (Setup, error) {
	s := Setup{Name: name, WarmUp: o.WarmUp, Objects: withObjective(objects, o.Objective), Fleet: simulation.FleetSpec{Epoch: epoch, Routing: simulation.LeastKV, Nodes: o.Nodes}}
	slices.SortFunc(s.Objects, func(a, b scaledobject.Object) int { return cmp.Compare(a.Metadata.Name, b.Metadata.Name) })
	startup := cmp.Or(o.Startup, time.Minute)
	var errs []error
	for _, object := range s.Objects {
		v, err := scaledobject.Read(object)
		if err == nil {
			err = s.add(v, startup)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("ScaledObject %s: %w", object.Metadata.Name, err))
		}
	}
	for _, n := range o.Nodes {
		if !slices.ContainsFunc(s.Variants, func(v fleet.Variant) bool { return v.Accelerator == n.Accelerator }) {
			errs = append(errs, fmt.Errorf("node %s has accelerator %s, which no variant runs on", n.Name, n.Accelerator))
		}
	}
	return s, errors.Join(errs...)
}

// add adds a variant with the hardware of its accelerator.
func (s *Setup) add(v fleet.Variant, startup time.Duration) error {
	if len(s.Variants) > 0 && v.Model != s.Model() {
		return fmt.Errorf("it serves %s, another one %s; give variants of one model", v.Model, s.Model())
	}
	profile, err := profileOf(v)
	if err != nil {
		return err
	}
	s.Variants = append(s.Variants, v)
	s.Fleet.Variants = append(s.Fleet.Variants, simulation.VariantSpec{
		ID: v.ID, Model: v.Model, Target: v.Target, ServedName: v.EngineModel(), Profile: profile,
		GPUs: v.GPUsPerReplica, Accelerator: v.Accelerator, Cost: v.Cost,
		Startup: startup.Seconds(), StartupSpread: startupSpread, Initial: max(1, v.Range.Min),
	})
	return nil
}

// profileOf returns the simulated engine of a variant: one whose model's name is part of the
// variant's.
func profileOf(v fleet.Variant) (simulation.Profile, error) {
	var known []string
	for _, p := range simulation.Profiles() {
		if strings.Contains(strings.ToLower(v.Model.Name), strings.ToLower(p.Model)) && p.Accelerator == v.Accelerator {
			return p, nil
		}
		known = append(known, p.Model+" on "+string(p.Accelerator))
	}
	return simulation.Profile{}, fmt.Errorf("no simulated engine of model %q on accelerator %q; there are %s", v.Model.Name, v.Accelerator, strings.Join(known, ", "))
}

// variant returns the variant of an identity, which must be one of the setup.
func (s Setup) variant(id fleet.VariantID) fleet.Variant {
	return s.Variants[slices.IndexFunc(s.Variants, func(v fleet.Variant) bool { return v.ID == id })]
}
