package promstore

import (
	"cmp"
	"context"
	"slices"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/util/annotations"
)

// Querier returns a reader of the samples between two times in milliseconds, both inclusive. It
// makes the store a storage.Queryable of Prometheus. No sample is appended until it is closed. It
// does not list labels: the engine never asks for them.
func (s *Store) Querier(mint, maxt int64) (storage.Querier, error) {
	s.memory.mu.RLock()
	return &querier{Querier: storage.NoopQuerier(), memory: s.memory, mint: mint, maxt: maxt}, nil
}

type querier struct {
	storage.Querier
	memory     *memory
	mint, maxt int64
}

// Close lets samples be appended again.
func (q *querier) Close() error {
	q.memory.mu.RUnlock()
	return nil
}

// Select returns the series that match and have samples in the time range, in the order of their
// creation unless they are to be sorted: sums of floats depend on it.
func (q *querier) Select(_ context.Context, sorted bool, hints *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	mint, maxt := q.mint, q.maxt
	if hints != nil {
		mint, maxt = hints.Start, hints.End
	}
	found := &seriesSet{at: -1}
	for _, s := range q.memory.matching(matchers) {
		from, _ := slices.BinarySearch(s.times, mint)
		until, _ := slices.BinarySearch(s.times, maxt+1)
		if from < until {
			found.all = append(found.all, &window{labels: s.labels, times: s.times[from:until], values: s.values[from:until]})
		}
	}
	if sorted {
		slices.SortFunc(found.all, func(a, b *window) int { return labels.Compare(a.labels, b.labels) })
	}
	return found
}

// matching returns the series that all matchers accept, in the order of their creation. m.mu is
// locked.
func (m *memory) matching(matchers []*labels.Matcher) []*series {
	var found []*series
	names := m.names(matchers)
	for _, name := range names {
		for _, s := range m.byName[name] {
			if matches(matchers, s.labels) {
				found = append(found, s)
			}
		}
	}
	if len(names) > 1 {
		slices.SortFunc(found, func(a, b *series) int { return cmp.Compare(a.order, b.order) })
	}
	return found
}

// names returns the metric names that the matchers accept.
func (m *memory) names(matchers []*labels.Matcher) []string {
	for _, matcher := range matchers { // nearly all selectors name their metric
		if matcher.Name == model.MetricNameLabel && matcher.Type == labels.MatchEqual && matchesName(matchers, matcher.Value) {
			return []string{matcher.Value}
		}
	}
	var names []string
	for name := range m.byName {
		if matchesName(matchers, name) {
			names = append(names, name)
		}
	}
	return names
}

func matchesName(matchers []*labels.Matcher, name string) bool {
	return !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return m.Name == model.MetricNameLabel && !m.Matches(name) })
}

func matches(matchers []*labels.Matcher, ls labels.Labels) bool {
	return !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return m.Name != model.MetricNameLabel && !m.Matches(ls.Get(m.Name)) })
}

type seriesSet struct {
	all []*window
	at  int
}

func (s *seriesSet) Next() bool {
	s.at++
	return s.at < len(s.all)
}

func (s *seriesSet) At() storage.Series                { return s.all[s.at] }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }

// window is the samples of a series within a time range.
type window struct {
	labels labels.Labels
	times  []int64
	values []float64
}

func (w *window) Labels() labels.Labels { return w.labels }

// Iterator returns an iterator before the first sample. It uses the given one again if it can.
func (w *window) Iterator(previous chunkenc.Iterator) chunkenc.Iterator {
	it, reusable := previous.(*iterator)
	if !reusable {
		it = new(iterator)
	}
	it.window, it.at = w, -1
	return it
}

// milliseconds is a time since 1970. The name tells go vet that Seek is not that of io.Seeker.
type milliseconds = int64

// iterator iterates over float samples.
type iterator struct {
	window *window
	at     int
}

func (i *iterator) Next() chunkenc.ValueType {
	i.at++
	return i.here()
}

// Seek moves forward only, as the interface demands.
func (i *iterator) Seek(t milliseconds) chunkenc.ValueType {
	i.at = max(i.at, 0)
	if i.at < len(i.window.times) && i.window.times[i.at] < t {
		ahead, _ := slices.BinarySearch(i.window.times[i.at:], t)
		i.at += ahead
	}
	return i.here()
}

func (i *iterator) here() chunkenc.ValueType {
	if i.at < len(i.window.times) {
		return chunkenc.ValFloat
	}
	i.at = len(i.window.times)
	return chunkenc.ValNone
}

func (i *iterator) At() (int64, float64) { return i.window.times[i.at], i.window.values[i.at] }
func (i *iterator) AtT() int64           { return i.window.times[i.at] }
func (*iterator) AtST() int64            { return 0 }
func (*iterator) Err() error             { return nil }

// AtHistogram is never called: all samples are floats.
func (*iterator) AtHistogram(*histogram.Histogram) (int64, *histogram.Histogram) { return 0, nil }

// AtFloatHistogram is never called: all samples are floats.
func (*iterator) AtFloatHistogram(*histogram.FloatHistogram) (int64, *histogram.FloatHistogram) {
	return 0, nil
}
