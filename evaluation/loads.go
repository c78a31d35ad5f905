package evaluation

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/simulation"
)

// Load is a source of requests.
type Load struct {
	Name string
	// Fleet and Setup are those that the load brings along; empty ones do not count.
	Fleet string
	Setup SetupOptions

	// requests returns the requests of a seed, sorted, and the end of the load in seconds.
	requests func(model fleet.ModelID, seed uint64) ([]simulation.Request, float64, error)
}

// NewCase returns the case of a load, a setup and a seed.
func NewCase(l Load, s Setup, seed uint64) (Case, error) {
	requests, until, err := l.requests(s.Model(), seed)
	if err != nil {
		return Case{}, fmt.Errorf("load %s: %w", l.Name, err)
	}
	return Case{Load: l.Name, Setup: s, Seed: seed, Requests: requests, Until: until, WarmUp: min(s.WarmUp.Seconds(), until)}, nil
}

// Trace returns the load of a trace (see simulation.ReadTrace), whose rate is multiplied by a
// factor. A seed draws the copies.
func Trace(name string, trace []simulation.Request, factor float64) Load {
	return Load{Name: name, requests: func(model fleet.ModelID, seed uint64) ([]simulation.Request, float64, error) {
		scaled, err := simulation.Scale(trace, factor, seed)
		if err != nil {
			return nil, 0, err
		}
		if len(scaled) == 0 {
			return nil, 0, fmt.Errorf("a rate scale of %v leaves none of %d requests; set a larger one", factor, len(trace))
		}
		for i := range scaled {
			scaled[i].Model = model
		}
		return scaled, math.Floor(scaled[len(scaled)-1].Arrival) + 1, nil
	}}
}

// ParseLoad returns a named load. Its parameters follow a colon, such as
// "constant:rate=5,minutes=10". A load that is regenerated from a file reads it.
func ParseLoad(text string) (Load, error) {
	name, arguments, _ := strings.Cut(text, ":")
	var names []string
	for _, named := range NamedLoads() {
		if named.Name != name {
			names = append(names, named.Name)
			continue
		}
		load, err := named.load(arguments)
		if err != nil {
			return Load{}, fmt.Errorf("load %s: %w", text, err)
		}
		load.Name = text
		return load, nil
	}
	return Load{}, fmt.Errorf("load %q is unknown; it is one of %s", name, strings.Join(names, ", "))
}

// parse returns the parameters with those of a text such as "rate=5,minutes=10".
func (n NamedLoad) parse(text string) (map[string]float64, string, error) {
	parameters, file := maps.Clone(n.Parameters), ""
	if text == "" {
		return parameters, file, nil
	}
	var errs []error
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		if name == "file" && n.FromFile {
			file = value
			continue
		}
		number, err := strconv.ParseFloat(value, 64)
		_, known := parameters[name]
		switch {
		case !known:
			errs = append(errs, fmt.Errorf("parameter %q is unknown; it is one of %s", name, strings.Join(slices.Sorted(maps.Keys(n.Parameters)), ", ")))
		case err != nil || !(number > 0) || math.IsInf(number, 0):
			errs = append(errs, fmt.Errorf("parameter %s is %q; set a number above 0", name, value))
		default:
			parameters[name] = number
		}
	}
	return parameters, file, errors.Join(errs...)
}

// load returns the load with the parameters of a text.
func (n NamedLoad) load(text string) (Load, error) {
	parameters, file, err := n.parse(text)
	if err != nil {
		return Load{}, err
	}
	load := Load{Fleet: n.Fleet, Setup: n.Setup}
	if n.FromFile {
		windows, err := readServeGen(file)
		if err != nil {
			return Load{}, err
		}
		load.requests, err = servegenDay(windows, parameters)
		return load, err
	}
	shape := n.build(parameters)
	load.requests = func(model fleet.ModelID, seed uint64) ([]simulation.Request, float64, error) {
		requests, err := simulation.Generate(simulation.Stream{
			Model: model, Seed: seed, Rate: shape.rate, Until: shape.seconds, Prompt: shape.prompt, Output: shape.output,
			Burstiness: shape.burstiness,
		})
		shape.lengthen(requests)
		return requests, shape.seconds, err
	}
	return load, nil
}
