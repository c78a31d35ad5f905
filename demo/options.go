package demo

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"time"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/simulation"
)

// Options are the inputs of a demo.
type Options struct {
	// Trace has the requests of the chat model as a CSV (see simulation.ReadTrace). Nil: the
	// generated load of both models.
	Trace io.Reader
	// TraceName names the trace in errors and in the report, such as its file.
	TraceName string
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
	// Address is that of the gRPC server for KEDA. Default a free port of 127.0.0.1.
	Address string
	// OperatorsAddress is that of the operators' API. Default a free port of 127.0.0.1.
	OperatorsAddress string
	// JSON selects JSON instead of a table: a line per cycle, then a summary.
	JSON bool
	// Output receives the table and the summary. Default: nothing is written.
	Output io.Writer
	// Report receives the run as one HTML page at the end. Default: no page is written.
	Report io.Writer
	// Command is the command line in the report. It is not interpreted.
	Command string
	// Logger receives the product's log. Default: nothing is logged.
	Logger *slog.Logger
}

// OptionsError are options that are invalid. Nothing was run.
type OptionsError struct{ err error }

// Error returns the errors of all options, a line each.
func (e OptionsError) Error() string { return e.err.Error() }

// Unwrap returns the errors of all options.
func (e OptionsError) Unwrap() error { return e.err }

// invalid returns an OptionsError, or nil without errors.
func invalid(errs ...error) error {
	if err := errors.Join(errs...); err != nil {
		return OptionsError{err: err}
	}
	return nil
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
	if o.OperatorsAddress == "" {
		o.OperatorsAddress = "127.0.0.1:0"
	}
	if o.Output == nil {
		o.Output = io.Discard
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	var errs []error
	if !(o.Scale > 0) || math.IsInf(o.Scale, 0) {
		errs = append(errs, fmt.Errorf("scale %v: set a number above 0", o.Scale))
	}
	if o.Scale != 1 && o.Trace == nil {
		errs = append(errs, errors.New("scale: there is no trace to scale; add --trace FILE"))
	}
	if !(o.Speed >= 0) || math.IsInf(o.Speed, 0) {
		errs = append(errs, fmt.Errorf("speed %v: set a number of virtual seconds per second, or 0 for as fast as possible", o.Speed))
	}
	if o.Objective.TTFT < 0 || o.Objective.ITL < 0 {
		errs = append(errs, fmt.Errorf("TTFT %v and ITL %v: set times above 0", o.Objective.TTFT, o.Objective.ITL))
	}
	if p := o.Objective.Percentile; !(p >= 0 && p < 1) {
		errs = append(errs, fmt.Errorf("percentile %v: set a share below 1, such as 0.95", p))
	}
	return invalid(errs...)
}

// checkFaults returns an error if a fault begins when the load has ended, in seconds.
func (o Options) checkFaults(end int) error {
	var errs []error
	for _, f := range o.Faults {
		if f.At >= time.Duration(end)*time.Second {
			errs = append(errs, fmt.Errorf("fault %s@%v+%v: the load ends at %v; let the fault begin earlier",
				f.Type, f.At, f.Duration, time.Duration(end)*time.Second))
		}
	}
	return invalid(errs...)
}

// load returns the requests of the run, sorted.
func (o Options) load() ([]simulation.Request, error) {
	if o.Trace == nil {
		return generatedLoad(o.Seed)
	}
	trace, err := simulation.ReadTrace(o.Trace, chatModel)
	if err != nil {
		return nil, inFile(cmp.Or(o.TraceName, "trace"), err)
	}
	scaled, err := simulation.Scale(trace, o.Scale, o.Seed)
	if err != nil {
		return nil, invalid(err)
	}
	if len(scaled) == 0 {
		return nil, invalid(fmt.Errorf("scale %v: it leaves none of %d requests; set a larger number", o.Scale, len(trace)))
	}
	return scaled, nil
}

// inFile returns the errors of a file, each with its name.
func inFile(name string, err error) error {
	joined, several := err.(interface{ Unwrap() []error })
	if !several {
		return fmt.Errorf("%s: %w", name, err)
	}
	var errs []error
	for _, one := range joined.Unwrap() {
		errs = append(errs, fmt.Errorf("%s: %w", name, one))
	}
	return errors.Join(errs...)
}

// lastSecond returns the first second at which the run may end.
func (o Options) lastSecond(requests []simulation.Request) int {
	if o.Trace == nil {
		return generatedMinutes * 60
	}
	return int(requests[len(requests)-1].Arrival) + 1
}
