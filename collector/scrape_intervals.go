package collector

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/common/model"

	"github.com/wva-project/wva/engine"
	"github.com/wva-project/wva/fleet"
)

const (
	// intervalSteps is the number of steps of the query for scrape intervals, and stepsOfWindow
	// that in the shortest window of rates. Scrapes that are closer than a step need no other
	// window.
	intervalSteps, stepsOfWindow = 60, 12
	// scrapesOfWindow is the least length of a window of rates in scrape intervals. Half an
	// interval less than four, so that the jitter of scrapes does not change the window.
	scrapesOfWindow = 3.5
	// future is how far after the instant samples are searched: none are there unless the clock of
	// this server is behind.
	future = 5 * time.Minute
)

// intervalsQuery asks for the usual distance of two scrapes of each model's engines and gateways,
// and for the newest sample that all namespaces have. Every server gets the same answer in the same
// minute, so that nothing has to be remembered.
func (e expressions) intervalsQuery(g gatewayExpressions) query {
	step := (e.options.Window / stepsOfWindow).Truncate(time.Millisecond)
	heartbeat := g.heartbeat()
	var newest []string
	// of each namespace: pods may expose timestamps of their own, and those of one tenant are a
	// claim
	namespace := e.options.NamespaceLabel
	for _, n := range e.engines[engine.Running].names {
		ahead := fmt.Sprintf("(timestamp(%[1]s offset -%[2]s) or timestamp(%[1]s))", n.metric, duration(future))
		newest = append(newest, aggregate(engine.Largest, namespace, ahead))
	}
	text := either(
		tagged(engineIntervals, aggregate(engine.Largest, e.byModel, either(e.engines[engine.Running].each(distance(step))...))),
		tagged(gatewayIntervals, aggregate(engine.Largest, g.byModel, g.labelled(aggregate(engine.Largest, g.byGateway(), either(heartbeat.each(distance(step))...))))),
		tagged(newestSample, fmt.Sprintf("min(%s)", either(newest...))),
	)
	return query{"scrape intervals", text, e.options.step(e.options.LongWindow), model.ValVector}
}

// distance is the median of the times between two neighboring scrapes: a failed scrape leaves a
// staleness marker, beside which there is no distance.
func distance(step time.Duration) func(name) string {
	return func(n name) string {
		return fmt.Sprintf("quantile_over_time(0.5, (timestamp(%[1]s) - timestamp(%[1]s offset %[2]s) > 0)[%[3]s:%[2]s])",
			n.metric, duration(step), duration(intervalSteps*step))
	}
}

// scraped is a model at one source.
type scraped struct {
	source           fleet.LoadSource
	namespace, model string
}

// scrapeIntervals are the distances of scrapes, by source and model.
type scrapeIntervals struct {
	options Options
	of      map[scraped]time.Duration
	longest map[string]time.Duration // the longest window of each namespace
	sent    time.Time                // when it was asked, by the clock of this server
	// newest is the time that samples of engines of each namespace have reached, of the future too;
	// zero if there are none
	newest time.Time
	// windows of models whose interval is not known: the shortest in use at their source
	engines, gateways time.Duration
}

// newScrapeIntervals reads the answer to the query. Without one, nothing is known.
func newScrapeIntervals(o Options, a answer) scrapeIntervals {
	s := scrapeIntervals{options: o, sent: a.sent, of: make(map[scraped]time.Duration), longest: make(map[string]time.Duration)}
	for row := range a.all() {
		who := scraped{fleet.SourceEngine, a.subjects[row.subject].namespace, a.subjects[row.subject].model}
		if row.part == newestSample {
			s.newest = unixTime(row.value)
			continue
		}
		if row.part == gatewayIntervals {
			who.source = fleet.SourceGateway
		}
		if interval := time.Duration(row.value * float64(time.Second)); interval > 0 {
			s.of[who] = interval
			s.longest[who.namespace] = max(s.longest[who.namespace], o.windowFor(interval))
		}
	}
	s.engines = s.shortest(fleet.SourceEngine, o.Window)
	s.gateways = s.shortest(fleet.SourceGateway, s.engines)
	return s
}

// shortest returns the shortest window of the models of a source; the default if none is known.
func (s scrapeIntervals) shortest(source fleet.LoadSource, otherwise time.Duration) time.Duration {
	var shortest time.Duration
	for who, interval := range s.of {
		if window := s.options.windowFor(interval); who.source == source && (shortest == 0 || window < shortest) {
			shortest = window
		}
	}
	if shortest == 0 {
		return otherwise
	}
	return shortest
}

// window returns the window of rates of a model at a source.
func (s scrapeIntervals) window(who scraped) time.Duration {
	interval, known := s.of[who]
	switch {
	case known:
		return s.options.windowFor(interval)
	case who.source == fleet.SourceGateway:
		return s.gateways
	}
	return s.engines
}

// expected returns how many scrapes the window of a model's engines holds if none fails.
func (s scrapeIntervals) expected(namespace, model string) int {
	who := scraped{fleet.SourceEngine, namespace, model}
	interval, known := s.of[who]
	if !known {
		return minScrapes
	}
	const jitter = 0.1
	return max(minScrapes, int(s.window(who).Seconds()/interval.Seconds()+jitter))
}

// batches returns the windows in use, in ascending order, each with the sources that are asked with
// it.
func (s scrapeIntervals) batches() []batch {
	all := make(map[time.Duration]batch)
	use := func(source fleet.LoadSource, window time.Duration) {
		b := all[window]
		b.window = window
		b.engines, b.gateways = b.engines || source == fleet.SourceEngine, b.gateways || source == fleet.SourceGateway
		all[window] = b
	}
	use(fleet.SourceEngine, s.engines)
	use(fleet.SourceGateway, s.gateways)
	for who := range s.of {
		use(who.source, s.window(who))
	}
	return slices.SortedFunc(maps.Values(all), func(a, b batch) int { return int(a.window - b.window) })
}

// windowFor returns the window of rates for a scrape interval: that of the options, doubled until
// it holds enough scrapes. It is never longer than the peak window.
func (o Options) windowFor(interval time.Duration) time.Duration {
	window := o.Window
	for window.Seconds() < scrapesOfWindow*interval.Seconds() && window < o.PeakWindow {
		window = min(2*window, o.PeakWindow)
	}
	return window
}

// within returns the options with another window of rates.
func (o Options) within(window time.Duration) Options {
	o.Window = window
	if o.shortScaleDown > 0 {
		o.shortScaleDown = max(o.shortScaleDown, window)
	}
	// The error budget must tell of a burst before the scale-down window forgets it.
	if o.shortScaleDown >= o.scaleDown || o.budgetStep()+window > o.scaleDown {
		o.shortScaleDown = 0
	}
	o.StaleAfter = max(o.StaleAfter, o.gap())
	return o
}
