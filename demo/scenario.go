package demo

import (
	"cmp"
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/wva-project/wva/config"
	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/scaledobject"
	"github.com/wva-project/wva/simulation"
)

// epoch is the time of day at which every demo begins.
var epoch = time.Date(2026, time.January, 5, 9, 0, 0, 0, time.UTC)

// The models of the demo.
var (
	chatModel  = fleet.ModelID{Namespace: "demo", Name: "meta-llama/Llama-3.1-8B-Instruct"}
	notesModel = fleet.ModelID{Namespace: "demo", Name: "ibm-granite/granite-3.3-8b-instruct"}
)

//go:embed manifests/*.yaml
var manifests embed.FS

// scenario is the fleet at the beginning: its definitions, its configuration, and its hardware.
type scenario struct {
	objects  []scaledobject.Object // sorted by name
	variants []fleet.Variant       // of the objects, in their order
	models   []fleet.Model
	config   *config.Config // of the product
	fleet    simulation.FleetSpec
}

// hardware is the simulated part of a variant, which manifests do not have.
type hardware struct {
	profile simulation.Profile
	initial int
}

// newScenario reads the embedded manifests. A trace is for one model: the scenario then lacks the
// small model, and begins with one replica of each variant, since load is present at once.
func newScenario(o Options) (*scenario, error) {
	notes := o.Trace == nil
	s := &scenario{
		models: []fleet.Model{{ID: chatModel}},
		fleet:  simulation.FleetSpec{Seed: o.Seed, Epoch: epoch, Routing: simulation.LeastKV},
	}
	if notes {
		s.models = append(s.models, fleet.Model{ID: notesModel})
	}
	if err := s.configure(o); err != nil {
		return nil, err
	}
	if err := s.readManifests(); err != nil {
		return nil, err
	}
	for i, object := range s.objects {
		setObjective(object, o.Objective)
		v, err := scaledobject.Read(object)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(s.models, func(m fleet.Model) bool { return m.ID == v.Model }) {
			continue
		}
		h, err := hardwareOf(v, !notes)
		if err != nil {
			return nil, err
		}
		s.objects[len(s.variants)] = s.objects[i]
		s.variants = append(s.variants, v)
		s.fleet.Variants = append(s.fleet.Variants, simulation.VariantSpec{
			ID: v.ID, Model: v.Model, Target: v.Target, ServedName: v.EngineModel(), Profile: h.profile,
			GPUs: v.GPUsPerReplica, Accelerator: v.Accelerator, Cost: v.Cost,
			Startup: 60, StartupSpread: 0.1, Initial: h.initial,
		})
	}
	s.objects = s.objects[:len(s.variants)]
	return s, s.addNodes(o.Pools)
}

// configure makes the configuration of the product: the defaults, with the rows of the demo.
func (s *scenario) configure(o Options) error {
	c, err := config.Default()
	if err != nil {
		return err
	}
	c.Prometheus.URL = "http://prometheus.demo"
	c.Interval, c.Prometheus.QueryOffset = interval, lag
	if o.Trace == nil {
		// minReplicaCount 0 of its only variant allows the small model to scale to zero. The demo
		// is too short to wait ten minutes for that.
		c.Models = []config.ModelRow{{Namespace: notesModel.Namespace, Model: notesModel.Name, Retention: 4 * time.Minute}}
	}
	// Throughput of one GPU for models of this size, relative to an L40S.
	c.Accelerators = []fleet.AcceleratorSpec{{Name: "H100", Speed: 3.5}, {Name: "L40S", Speed: 1}}
	if o.SaturationAlone {
		c.Sizing.Queueing = config.Off
	}
	s.config = c
	return nil
}

// setObjective writes the limits that are not zero into the metadata of an object's triggers.
func setObjective(object scaledobject.Object, o fleet.Objective) {
	for _, trigger := range object.Spec.Triggers {
		if o.TTFT > 0 {
			trigger.Metadata["ttft"] = o.TTFT.String()
		}
		if o.ITL > 0 {
			trigger.Metadata["itl"] = o.ITL.String()
		}
		if o.Percentile > 0 {
			trigger.Metadata["percentile"] = strconv.FormatFloat(o.Percentile, 'g', -1, 64)
		}
	}
}

func (s *scenario) readManifests() error {
	names, err := fs.Glob(manifests, "manifests/*.yaml")
	if err != nil {
		return err
	}
	for _, name := range names {
		data, err := manifests.ReadFile(name)
		if err != nil {
			return err
		}
		var object scaledobject.Object
		if err := yaml.Unmarshal(data, &object); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		s.objects = append(s.objects, object)
	}
	slices.SortFunc(s.objects, func(a, b scaledobject.Object) int { return cmp.Compare(a.Metadata.Name, b.Metadata.Name) })
	return nil
}

// hardwareOf returns the hardware of a variant. All models of the demo have the size of the
// profiles' 8B model.
func hardwareOf(v fleet.Variant, started bool) (hardware, error) {
	profile, found := simulation.ProfileOf("Llama-3.1-8B", v.Accelerator)
	if !found {
		return hardware{}, fmt.Errorf("variant %s: there is no profile of accelerator %q", v.ID, v.Accelerator)
	}
	h := hardware{profile: profile, initial: v.Range.Min}
	if started {
		h.initial = max(1, h.initial)
	}
	return h, nil
}

// mayGoToZero reports whether all variants of a model allow it to have no replica.
func (s *scenario) mayGoToZero(model fleet.ModelID) bool {
	return !slices.ContainsFunc(s.variants, func(v fleet.Variant) bool { return v.Model == model && v.Range.Floor() > 0 })
}

// objective returns the latency objective of a model, which is that of its first variant.
func (s *scenario) objective(model fleet.ModelID) fleet.Objective {
	for _, v := range s.variants {
		if v.Model == model {
			return v.Objective
		}
	}
	return fleet.Objective{}
}

// generatedLoad returns the generated load of the demo: a rise and fall for the chat model, and two
// short periods of requests for the small one.
func generatedLoad(seed uint64) ([]simulation.Request, error) {
	minute := 60.0
	chat, err := simulation.Generate(simulation.Stream{
		Model: chatModel, Seed: seed, Until: generatedMinutes * minute, Burstiness: 1.5,
		Rate: simulation.Ramps(
			simulation.Point{At: 0, PerSecond: 3}, simulation.Point{At: 4 * minute, PerSecond: 4},
			simulation.Point{At: 18 * minute, PerSecond: 32}, simulation.Point{At: 21 * minute, PerSecond: 32},
			simulation.Point{At: 28 * minute, PerSecond: 4}, simulation.Point{At: generatedMinutes * minute, PerSecond: 3},
		),
		Prompt: simulation.Lengths{Mean: 1100, P99: 5000, Max: 14_000}, Output: simulation.Lengths{Mean: 210, P99: 700, Max: 1000},
	})
	if err != nil {
		return nil, err
	}
	notes, err := simulation.Generate(simulation.Stream{
		Model: notesModel, Seed: seed + 1, Until: generatedMinutes * minute,
		Rate: simulation.Bursts(
			simulation.Burst{At: 1 * minute, Duration: 4 * minute, PerSecond: 0.4},
			simulation.Burst{At: 23 * minute, Duration: 3 * minute, PerSecond: 0.4},
		),
		Prompt: simulation.Lengths{Mean: 600, P99: 2500, Max: 8000}, Output: simulation.Lengths{Mean: 150, P99: 500, Max: 1000},
	})
	if err != nil {
		return nil, err
	}
	return simulation.Merge(chat, notes), nil
}

// generatedMinutes is the length of the generated load.
const generatedMinutes = 38
