package demo

import (
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/simulation"
)

// Options are the inputs of a demo.
type Options struct {
	// Trace has the requests of the chat model as a CSV (see simulation.ReadTrace). Nil: the
	// generated load of both models.
	Trace io.Reader
	// Scale multiplies the rate of a trace. Default 1.
	Scale float64
	// Objective replaces the latency objective of every model of the demo. A field that is zero
	// does not replace that of the manifests.
	Objective fleet.Objective
	// SaturationAlone makes the product decide without profiles and percentiles, for comparison.
	SaturationAlone bool
	// Seed is the randomness of the run. Default 1.
	Seed uint64
	// Speed is the number of virtual seconds per second. Zero: as fast as possible.
	Speed float64
	// Faults are injected.
	Faults []Fault
	// Pools are the nodes of each accelerator type, in one row. Accelerators of a type without a
	// row are unlimited.
	Pools []Pool
	// Address is that of the gRPC server. Default a free port of 127.0.0.1.
	Address string
	// JSON selects JSON instead of a table: a line per cycle, then a summary.
	JSON bool
	// Output receives the table and the summary. Default: nothing is written.
	Output io.Writer
	// Logger receives the product's log. Default: nothing is logged.
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
	var errs []error
	if !(o.Scale > 0) {
		errs = append(errs, fmt.Errorf("scale %v: set a number above 0", o.Scale))
	}
	if o.Scale != 1 && o.Trace == nil {
		errs = append(errs, errors.New("scale: there is no trace to scale; add --trace FILE"))
	}
	if !(o.Speed >= 0) {
		errs = append(errs, fmt.Errorf("speed %v: set a number of virtual seconds per second, or 0 for as fast as possible", o.Speed))
	}
	return errors.Join(errs...)
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
		return nil, errors.New("the trace has no requests; add a line for each request below the header")
	}
	return simulation.Scale(trace, o.Scale, o.Seed)
}
