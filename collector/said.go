package collector

import (
	"cmp"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/wva-project/wva/fleet"
)

// said logs scrape intervals: for each window of rates the first one that selects it. There are few
// windows, whatever intervals tenants configure.
type said struct {
	logger *slog.Logger
	mu     sync.Mutex
	seen   map[saidWindow]bool
}

type saidWindow struct {
	source  fleet.LoadSource
	window  time.Duration
	tooLong bool // the interval
}

// intervals logs the shortest interval of each window that was not logged before.
func (s *said) intervals(found scrapeIntervals) {
	s.mu.Lock()
	defer s.mu.Unlock()
	shortest := make(map[saidWindow]time.Duration)
	for who, interval := range found.of {
		window := found.window(who)
		key := saidWindow{who.source, window, window.Seconds() < minScrapes*interval.Seconds()}
		if known, is := shortest[key]; !s.seen[key] && (!is || interval < known) {
			shortest[key] = interval
		}
	}
	order := func(a, b saidWindow) int {
		return cmp.Or(cmp.Compare(a.source, b.source), cmp.Compare(shortest[a], shortest[b]))
	}
	for _, key := range slices.SortedFunc(maps.Keys(shortest), order) {
		if s.seen == nil {
			s.seen = make(map[saidWindow]bool)
		}
		s.seen[key] = true
		s.log(key, shortest[key])
	}
}

// log logs an interval in whole seconds.
func (s *said) log(key saidWindow, interval time.Duration) {
	rounded := interval.Round(time.Second)
	if interval < time.Second {
		rounded = interval.Round(time.Millisecond)
	}
	attributes := []any{"source", key.source, "interval", rounded, "window", key.window}
	if key.tooLong {
		s.logger.Warn("scrape interval too long for the peak window", append(attributes,
			"remedy", "scrape every 5 to 60 s, or raise prometheus.windows.peak")...)
		return
	}
	s.logger.Info("scrape interval found", attributes...)
}

// clockTolerance is the distance of clocks that is not worth knowing.
const clockTolerance = 5 * time.Second

// behind returns by how much the clock of this server is behind that of Prometheus, at least: a
// sample cannot be of the future. Without a sample nothing is known.
func (s scrapeIntervals) behind() (behind time.Duration, known bool) {
	if s.newest.IsZero() || s.newest.Sub(s.sent) < clockTolerance {
		return 0, !s.newest.IsZero()
	}
	return s.newest.Sub(s.sent), true
}
