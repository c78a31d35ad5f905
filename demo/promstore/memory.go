package promstore

import (
	"math"
	"slices"
	"sync"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
)

// memory has the samples of all series. A querier holds its read lock, so that a query sees whole
// scrapes only.
type memory struct {
	mu     sync.RWMutex
	byKey  map[string]*series   // by the bytes of their labels
	byName map[string][]*series // by metric name, in the order of their creation
	// order is the number of series that were ever created.
	order  uint64
	newest int64 // time of the newest sample of any series
	// retention is how long before newest a sample may be, in milliseconds.
	retention int64
	swept     int64 // the value of newest at the latest sweep
	key       []byte
}

// series is the samples of one series, in the order of their times.
type series struct {
	labels labels.Labels
	order  uint64 // of its creation, among all series
	times  []int64
	values []float64
}

// pending is a sample that was checked, and not appended yet.
type pending struct {
	series *series
	value  float64
}

func newMemory() *memory {
	return &memory{
		byKey: make(map[string]*series), byName: make(map[string][]*series), newest: math.MinInt64, swept: math.MinInt64,
		retention: retention.Milliseconds(),
	}
}

// of returns the series with these labels, which it creates if it is new. m.mu is locked.
func (m *memory) of(ls labels.Labels) *series {
	m.key = ls.Bytes(m.key)
	if known := m.byKey[string(m.key)]; known != nil {
		return known
	}
	m.order++
	created := &series{labels: ls, order: m.order}
	m.byKey[string(m.key)] = created
	name := ls.Get(model.MetricNameLabel)
	m.byName[name] = append(m.byName[name], created)
	return created
}

// check returns an error if a sample cannot be appended to the series. The same sample again is no
// error. m.mu is locked.
func (m *memory) check(s *series, t int64, value float64) error {
	if m.newest != math.MinInt64 && t < m.newest-m.retention {
		return storage.ErrOutOfBounds
	}
	last := len(s.times) - 1
	switch {
	case last < 0 || t > s.times[last]:
		return nil
	case t < s.times[last]:
		return storage.ErrOutOfOrderSample
	case math.Float64bits(value) != math.Float64bits(s.values[last]):
		return storage.NewDuplicateFloatErr(t, s.values[last], value)
	}
	return nil
}

// commit appends checked samples. Of two samples of one series and time, the first counts. m.mu is
// locked.
func (m *memory) commit(t int64, samples []pending) {
	for _, p := range samples {
		if last := len(p.series.times) - 1; last >= 0 && p.series.times[last] >= t {
			continue
		}
		p.series.times = append(p.series.times, t)
		p.series.values = append(p.series.values, p.value)
	}
	if len(samples) > 0 {
		m.newest = max(m.newest, t)
	}
	if m.swept == math.MinInt64 {
		m.swept = m.newest
	}
	if m.newest-m.swept >= sweepEvery.Milliseconds() {
		m.sweep(m.newest - m.retention)
		m.swept = m.newest
	}
}

// sweep drops the samples before a time, and the series that have no others. m.mu is locked.
func (m *memory) sweep(before int64) {
	for key, s := range m.byKey {
		old, _ := slices.BinarySearch(s.times, before)
		if old == len(s.times) {
			delete(m.byKey, key)
		}
		if old > 0 { // into new slices, which leave no memory of the dropped ones
			s.times, s.values = slices.Clone(s.times[old:]), slices.Clone(s.values[old:])
		}
	}
	for name, list := range m.byName {
		m.byName[name] = slices.DeleteFunc(list, func(s *series) bool { return len(s.times) == 0 })
		if len(m.byName[name]) == 0 {
			delete(m.byName, name)
		}
	}
}
