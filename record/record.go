// Package record reads the requests of one model that were served in the past from Prometheus, as a
// trace that the simulator can replay: "what would another policy have cost me?"
//
// Engines export counters and histograms, and not requests. For each window, the number of
// arrivals is that of first tokens and the growth of the engines' queues, exactly. Lengths are
// drawn from the histograms of the hour, scaled to the mean of the window. Arrivals within a window
// are drawn with the burstiness that the halves of the windows of the hour show.
//
// Units: times are seconds, lengths are tokens. Windows end at multiples of their length.
//
// Limits: requests that wait at a gateway count when an engine gets them. The first requests of a
// replica before its first scrape are missing, and so is all that was not scraped: a window
// without samples is unknown, and Recording counts it. Prefix cache hits are not recorded.
package record

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"

	"github.com/wva-project/wva/engine"
	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/simulation"
)

// Options select a model and a period. Zero fields take their defaults.
type Options struct {
	API v1.API // needed
	// Model is the model's name in the engines' metrics, and its namespace, which may be empty if
	// only one has it.
	Model fleet.ModelID
	// End is the end of the period; needed. It is rounded down to a multiple of Step.
	End time.Time
	// Since is the length of the period. Default 7 days.
	Since time.Duration
	// Step is the length of a window, at least the scrape interval. Default 1 m, at least 1 s.
	Step time.Duration
	// MaxRequests is the largest number of requests. Default 5 million.
	MaxRequests int
	// Seed is the randomness of arrivals and lengths.
	Seed uint64
	// Timeout is the deadline of each query. Default 2 m.
	Timeout time.Duration
	// NamespaceLabel, PodLabel and ModelLabel name the labels of engine metrics. Defaults
	// namespace, pod, model_name.
	NamespaceLabel, PodLabel, ModelLabel string
	// Matchers are label matchers as in PromQL, without braces, that every series must meet.
	Matchers string
	// Progress, if it is not nil, is called after each query with the number of those that were
	// answered and of all.
	Progress func(done, all int)
}

const (
	// maxWindows is the largest number of windows: 347 days of minutes.
	maxWindows = 500_000
	// maxPoints is the largest number of instants of one query.
	maxPoints = 1000
	// block is the period of one histogram of lengths and of one burstiness.
	block = time.Hour
)

// Recording is the windows of a model.
type Recording struct {
	// Begin is the begin of the first window that is known.
	Begin   time.Time
	Windows []simulation.Window // in seconds since Begin, without those that are unknown
	All     int                 // windows since Begin, those that are unknown included
	// Unknown is how many windows after the first had no sample: the model was scaled to zero, or
	// its engines were not scraped. No request is recorded for them.
	Unknown int
	// Longest is the longest time without samples, and LongestAt its begin.
	Longest   time.Duration
	LongestAt time.Time
	Requests  int
	// Histograms is false if lengths are drawn around a mean, since the engines have no histograms
	// of them.
	Histograms bool
	model      fleet.ModelID
	seed       uint64
}

// Read reads a recording. It sends one query at a time.
func Read(ctx context.Context, o Options) (*Recording, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	if o.Model.Name == "" || o.Model.Namespace == "" {
		var err error
		if o.Model, err = o.onlyModel(ctx); err != nil {
			return nil, err
		}
	}
	observed, err := newReader(o).observe(ctx)
	if err != nil {
		return nil, err
	}
	r, err := observed.recording(o)
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", o.Model, err)
	}
	return r, nil
}

// Trace draws the requests of a recording, sorted, in seconds since Begin.
func (r *Recording) Trace() ([]simulation.Request, error) {
	return simulation.Regenerate(r.Windows, r.model, r.seed)
}

// Model returns the model that was recorded.
func (r *Recording) Model() fleet.ModelID { return r.model }

func (o Options) withDefaults() Options {
	defaultTo(&o.Since, 7*24*time.Hour)
	defaultTo(&o.Step, time.Minute)
	defaultTo(&o.MaxRequests, 5_000_000)
	defaultTo(&o.Timeout, 2*time.Minute)
	defaultTo(&o.NamespaceLabel, "namespace")
	defaultTo(&o.PodLabel, "pod")
	defaultTo(&o.ModelLabel, engine.ModelLabel)
	o.End = o.End.Truncate(max(o.Step, time.Second))
	return o
}

func defaultTo[T comparable](value *T, standard T) {
	var zero T
	if *value == zero {
		*value = standard
	}
}

func (o Options) validate() error {
	var errs []error
	if o.Step < time.Second || o.Step > block {
		errs = append(errs, fmt.Errorf("step %s; set 1s to %s", o.Step, block))
	} else if o.Since < o.Step || o.windows() > maxWindows {
		errs = append(errs, fmt.Errorf("%s in steps of %s; set at least one step and at most %d: shorten the period or raise the step", o.Since, o.Step, maxWindows))
	}
	if o.MaxRequests < 1 {
		errs = append(errs, fmt.Errorf("%d requests at most; set a number above 0", o.MaxRequests))
	}
	return errors.Join(append(errs, checkMatchers(o.Matchers))...)
}

// windows returns the number of whole steps of the period.
func (o Options) windows() int { return int(o.Since / o.Step) }

// begin returns the begin of the first window.
func (o Options) begin() time.Time { return o.End.Add(-time.Duration(o.windows()) * o.Step) }
