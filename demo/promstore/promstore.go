// Package promstore is a Prometheus inside the process. Samples are appended with their times, and
// PromQL queries are answered over Prometheus' own HTTP API. The demo scrapes its simulated fleet
// into it, and tests use it to run real queries.
//
// Units: times are rounded to milliseconds, as in Prometheus. The store has no clock: samples and
// queries have their times, so that hours of virtual time pass as fast as they are appended.
//
// Limits: float samples only; no retention, rules, remote write or discovery. Prometheus' engine is
// linked here only.
package promstore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
)

const (
	// lookback is Prometheus' default: the maximum age of a sample in an instant query.
	lookback = 5 * time.Minute
	// appendSpan is how far before the newest sample of the store a sample of another series may
	// be.
	appendSpan   = 366 * 24 * time.Hour
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
	head   *tsdb.Head
	engine *promql.Engine
	dir    string

	mu      sync.Mutex // guards the fields below, and makes a scrape one step
	builder labels.ScratchBuilder
	targets map[string]*target
}

// target has the series of the last scrapes of one target.
type target struct {
	scrape uint64
	series map[storage.SeriesRef]*liveSeries
}

type liveSeries struct {
	labels labels.Labels
	scrape uint64 // the last scrape with the series
}

// New returns an empty store in a temporary directory, which Close removes.
func New() (*Store, error) {
	dir, err := os.MkdirTemp("", "promstore-")
	if err != nil {
		return nil, fmt.Errorf("making the directory of the store: %w", err)
	}
	options := tsdb.DefaultHeadOptions()
	options.ChunkDirRoot = dir
	options.ChunkRange = 2 * appendSpan.Milliseconds()
	options.StripeSize = 1 << 10
	head, err := tsdb.NewHead(nil, nil, nil, nil, options, nil)
	if err == nil {
		err = head.Init(math.MinInt64)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening the store: %w", err), os.RemoveAll(dir))
	}
	engine := promql.NewEngine(promql.EngineOpts{
		MaxSamples:               maxSamples,
		Timeout:                  queryTimeout,
		LookbackDelta:            lookback,
		NoStepSubqueryIntervalFn: func(int64) int64 { return time.Minute.Milliseconds() },
		EnableAtModifier:         true,
		EnableNegativeOffset:     true,
	})
	return &Store{
		head:    head,
		engine:  engine,
		dir:     dir,
		builder: labels.NewScratchBuilder(16),
		targets: make(map[string]*target),
	}, nil
}

// Close ends the store and removes its directory.
func (s *Store) Close() error {
	return errors.Join(s.engine.Close(), s.head.Close(), os.RemoveAll(s.dir))
}

// Append adds the samples, all at the time t. It marks no series as stale. It adds all or none.
func (s *Store) Append(t time.Time, samples []Sample) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	appender := s.head.Appender(context.Background())
	for _, sample := range samples {
		if _, err := appender.Append(0, s.seriesLabels(sample), t.UnixMilli(), sample.Value); err != nil {
			return abandon(appender, sample.Name, err)
		}
	}
	return commit(appender)
}

// Scrape adds the samples of a target at the time t. Series of the previous scrape that the target
// has no longer get Prometheus' staleness marker, so that instant queries lose them at once. A
// scrape without samples is a failed one. It adds all or none.
func (s *Store) Scrape(name string, t time.Time, samples []Sample) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := s.targets[name]
	if from == nil {
		from = &target{series: make(map[storage.SeriesRef]*liveSeries)}
		s.targets[name] = from
	}
	from.scrape++
	appender := s.head.Appender(context.Background())
	for _, sample := range samples {
		series := s.seriesLabels(sample)
		ref, err := appender.Append(0, series, t.UnixMilli(), sample.Value)
		if err != nil {
			return abandon(appender, sample.Name, err)
		}
		if live := from.series[ref]; live != nil {
			live.scrape = from.scrape
			continue
		}
		from.series[ref] = &liveSeries{labels: series, scrape: from.scrape}
	}
	if err := from.markVanished(appender, t); err != nil {
		return err
	}
	return commit(appender)
}

// Gone removes a target at the time t: all its series are marked as stale. A target that was never
// scraped is no error.
func (s *Store) Gone(name string, t time.Time) error {
	if err := s.Scrape(name, t, nil); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.targets, name)
	return nil
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

// Querier returns a reader of the samples between two times in milliseconds, both inclusive. It
// makes the store a storage.Queryable of Prometheus.
func (s *Store) Querier(mint, maxt int64) (storage.Querier, error) {
	return tsdb.NewBlockQuerier(tsdb.NewRangeHead(s.head, mint, maxt), mint, maxt)
}

// seriesLabels returns the labels of a sample's series. s.mu is locked.
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

// markVanished appends the staleness marker to the series that are missing in the latest scrape,
// and removes them.
func (t *target) markVanished(appender storage.Appender, at time.Time) error {
	for ref, live := range t.series {
		if live.scrape == t.scrape {
			continue
		}
		if _, err := appender.Append(ref, live.labels, at.UnixMilli(), math.Float64frombits(value.StaleNaN)); err != nil {
			return abandon(appender, live.labels.Get(model.MetricNameLabel), err)
		}
		delete(t.series, ref)
	}
	return nil
}

func abandon(appender storage.Appender, name string, cause error) error {
	return errors.Join(fmt.Errorf("appending a sample of %s: %w", name, cause), appender.Rollback())
}

func commit(appender storage.Appender) error {
	if err := appender.Commit(); err != nil {
		return fmt.Errorf("committing samples: %w", err)
	}
	return nil
}
