package demo

import (
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/simulation"
)

// Options say what is shown.
type Options struct {
	// Trace holds the requests of the chat model as a CSV (see simulation.ReadTrace). Nil: the generated load of both models.
	Trace io.Reader
	// Scale multiplies the rate of a trace. Default 1.
	Scale float64
	// Objective replaces that of every model of the demo, limit by limit: what is zero stays as the manifests have it.
	Objective fleet.Objective
	// SaturationAlone has the product decide without profiles and percentiles, for comparison.
	SaturationAlone bool
	// Seed is all randomness of the run. Default 1.
	Seed uint64
	// Speed is how many virtual seconds pass in a second. Zero: as many as go.
	Speed float64
	// Faults are broken on purpose.
	Faults []Fault
	// Pools are the nodes of kinds of accelerators, one row per kind. Of a kind without a row there are any number.
	Pools []Pool
	// Address is where the gRPC server listens. Default a free port of 127.0.0.1.
	Address string
	// JSON writes a line per decision and a summary object instead of a table.
	JSON bool
	// Output takes the table and the summary. Default: nothing is written.
	Output io.Writer
	// Logger takes the product's log. Default: nothing is logged.
	Logger *slog.Logger
}

func (o *Options) setDefaults() error {
	if o.Scale == 0 {
		o.Scale = 1
	}
	if o.Seed == 0 {
		o.Seed = 1
	}
	if o.Address == "" {
		o.Address = "127.0.0.1:0"
	}
	if o.Output == nil {
		o.Output = io.Discard
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	var faults []error
	if !(o.Scale > 0) {
		faults = append(faults, fmt.Errorf("scale %v: give a number above 0", o.Scale))
	}
	if o.Scale != 1 && o.Trace == nil {
		faults = append(faults, errors.New("scale: there is no trace to scale; add --trace FILE"))
	}
	if !(o.Speed >= 0) {
		faults = append(faults, fmt.Errorf("speed %v: give a number of virtual seconds per second, or 0 for as fast as it goes", o.Speed))
	}
	return errors.Join(faults...)
}

// load returns the requests of the run, sorted.
func (o Options) load() ([]simulation.Request, error) {
	if o.Trace == nil {
		return generatedLoad(o.Seed)
	}
	trace, err := simulation.ReadTrace(o.Trace, chatModel)
	if err != nil {
		return nil, err
	}
	if len(trace) == 0 {
		return nil, errors.New("the trace holds no requests; give one line per request below the header")
	}
	return simulation.Scale(trace, o.Scale, o.Seed)
}
