// Package promstore is a Prometheus inside the process. Samples are appended with their times, and
// PromQL queries are answered over Prometheus' own HTTP API. The demo scrapes its simulated fleet
// into it, and tests use it to run real queries.
//
// Units: times are rounded to milliseconds, as in Prometheus. The store has no clock: samples and
// queries have their times, so that hours of virtual time pass as fast as they are appended.
//
// Limits: float samples only, in memory; no rules, remote write or discovery. Samples that are more
// than two days older than the newest one are dropped, or sooner by Keep. Prometheus' query engine
// is linked here only. Its storage engine is not: that needs the client libraries of three clouds.
package promstore

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
)

const (
	// lookback is Prometheus' default: the maximum age of a sample in an instant query.
	lookback = 5 * time.Minute
	// retention is how far before the newest sample of the store a sample may be.
	retention    = 48 * time.Hour
	sweepEvery   = 10 * time.Minute // between two removals of older samples
	maxSamples   = 50_000_000
	queryTimeout = 2 * time.Minute
)

// Label is one label of a series.
type Label struct{ Name, Value string }

// Sample is one sample of one series. Labels may be in any order. A label with an empty value is no
// label.
type Sample struct {
	Name   string
	Labels []Label
	Value  float64
}

// Labels returns labels from pairs of names and values. An odd last argument is ignored.
func Labels(pairs ...string) []Label {
	list := make([]Label, 0, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		list = append(list, Label{Name: pairs[i], Value: pairs[i+1]})
	}
	return list
}

// Store stores series and answers queries. It is safe for concurrent use. Within a series, samples
// must be appended in the order of their times.
type Store struct {
	engine *promql.Engine
	memory *memory // its lock guards the fields below as well

	builder labels.ScratchBuilder
	targets map[string]map[*series]bool // the series of the last scrape of each target
}

// New returns an empty store.
func New() (*Store, error) {
	engine := promql.NewEngine(promql.EngineOpts{
		MaxSamples:               maxSamples,
		Timeout:                  queryTimeout,
		LookbackDelta:            lookback,
		NoStepSubqueryIntervalFn: func(int64) int64 { return time.Minute.Milliseconds() },
		EnableAtModifier:         true,
		EnableNegativeOffset:     true,
		Parser:                   newParseCache(),
	})
	return &Store{
		memory:  newMemory(),
		engine:  engine,
		builder: labels.NewScratchBuilder(16),
		targets: make(map[string]map[*series]bool),
	}, nil
}

// Keep drops samples from now on that are older than the newest one by more than a time, which
// should be longer than every window of the queries. Default: two days.
func (s *Store) Keep(samples time.Duration) {
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	s.memory.retention = samples.Milliseconds()
}

// Close ends the store.
func (s *Store) Close() error { return s.engine.Close() }

// Append adds the samples, all at the time t. It marks no series as stale. It adds all or none.
func (s *Store) Append(t time.Time, samples []Sample) error {
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	checked, err := s.check(t, samples)
	if err == nil {
		s.memory.commit(t.UnixMilli(), checked)
	}
	return err
}

// Scrape adds the samples of a target at the time t. Series of the previous scrape that the target
// has no longer get Prometheus' staleness marker, so that instant queries lose them at once. A
// scrape without samples is a failed one. It adds all or none.
func (s *Store) Scrape(name string, t time.Time, samples []Sample) error {
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	return s.scrape(name, t, samples)
}

// Gone removes a target at the time t: all its series are marked as stale. A target that was never
// scraped is no error.
func (s *Store) Gone(name string, t time.Time) error {
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	if err := s.scrape(name, t, nil); err != nil {
		return err
	}
	delete(s.targets, name)
	return nil
}

// scrape is Scrape with s.memory locked.
func (s *Store) scrape(name string, t time.Time, samples []Sample) error {
	checked, err := s.check(t, samples)
	if err != nil {
		return err
	}
	present := make(map[*series]bool, len(checked))
	for _, p := range checked {
		present[p.series] = true
	}
	for vanished := range s.targets[name] {
		if present[vanished] {
			continue
		}
		stale := pending{series: vanished, value: math.Float64frombits(value.StaleNaN)}
		if err := s.memory.check(vanished, t.UnixMilli(), stale.value); err != nil {
			return rejected(vanished.labels.Get(model.MetricNameLabel), err)
		}
		checked = append(checked, stale)
	}
	s.memory.commit(t.UnixMilli(), checked)
	s.targets[name] = present
	return nil
}

// check returns the samples with their series, or the error of one that cannot be appended.
// s.memory is locked.
func (s *Store) check(t time.Time, samples []Sample) ([]pending, error) {
	checked := make([]pending, len(samples))
	for i, sample := range samples {
		checked[i] = pending{series: s.memory.of(s.seriesLabels(sample)), value: sample.Value}
		if err := s.memory.check(checked[i].series, t.UnixMilli(), sample.Value); err != nil {
			return nil, rejected(sample.Name, err)
		}
	}
	return checked, nil
}

func rejected(name string, cause error) error {
	return fmt.Errorf("appending a sample of %s: %w", name, cause)
}

// Query answers an instant query at the time t. A scalar is answered as a vector of one sample
// without labels.
func (s *Store) Query(ctx context.Context, expression string, t time.Time) (promql.Vector, error) {
	query, err := s.engine.NewInstantQuery(ctx, s, nil, expression, t)
	if err != nil {
		return nil, err
	}
	result := query.Exec(ctx)
	if result.Err != nil {
		return nil, result.Err
	}
	switch v := result.Value.(type) {
	case promql.Vector:
		return v, nil
	case promql.Scalar:
		return promql.Vector{{T: v.T, F: v.V}}, nil
	default:
		return nil, fmt.Errorf("the result is a %s; write an expression that returns a vector", parser.DocumentedType(result.Value.Type()))
	}
}

// seriesLabels returns the labels of a sample's series. s.memory is locked.
func (s *Store) seriesLabels(sample Sample) labels.Labels {
	s.builder.Reset()
	s.builder.Add(model.MetricNameLabel, sample.Name)
	for _, label := range sample.Labels {
		if label.Value != "" {
			s.builder.Add(label.Name, label.Value)
		}
	}
	s.builder.Sort()
	return s.builder.Labels()
}

// newest returns the time of the newest sample, or 1970 without samples.
func (s *Store) newest() time.Time {
	s.memory.mu.RLock()
	defer s.memory.mu.RUnlock()
	if len(s.memory.byKey) == 0 {
		return time.UnixMilli(0)
	}
	return time.UnixMilli(s.memory.newest)
}
