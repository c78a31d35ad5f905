package collector

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/api"
	"github.com/prometheus/common/model"

	"github.com/wva-project/wva/fleet"
)

// Collector queries Prometheus about the fleet. It is safe for concurrent use.
type Collector struct {
	options Options
	client  api.Client // of sender
	sender  *http.Client
	address string // of Prometheus, without credentials
	metrics *metrics
	queues  query

	turn    chan struct{} // of capacity 1: the sender owns the queries and their answers
	batches map[batch]written
	said    said
}

// Observation is the answer of Prometheus for one instant. Its tables are sorted by identity.
type Observation struct {
	// Time is the instant of the queries: a multiple of the interval.
	Time   time.Time
	Usages []fleet.Usage
	Loads  []fleet.Load
	// Missing has the queries that failed, joined by reason, those with a partial answer, and
	// series without the labels of a model.
	Missing []fleet.Missing
	// Behind is by how much the clock of this server is behind that of Prometheus, at least.
	// BehindKnown is false if Prometheus has not told of its clock.
	Behind      time.Duration
	BehindKnown bool
}

// New returns a collector, or an error that names every invalid option.
func New(o Options) (*Collector, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	sender := &http.Client{Transport: o.RoundTripper}
	client, err := api.NewClient(api.Config{Address: o.Address, Client: sender})
	if err != nil {
		return nil, fmt.Errorf("address of Prometheus %q: %w", o.Address, err)
	}
	metrics, err := newMetrics(o.Registerer)
	if err != nil {
		return nil, err
	}
	c := &Collector{
		options: o,
		client:  client,
		sender:  sender,
		address: displayAddress(o.Address),
		metrics: metrics,
		queues:  query{name: "queues", text: o.matchers().in(newGatewayExpressions(o).queuesQuery()), step: pollStep, answer: model.ValVector},
		turn:    make(chan struct{}, 1),
		batches: make(map[batch]written),
		said:    said{logger: o.Logger},
	}
	return c, nil
}

// Collect returns the state that Prometheus knows at the last instant that is at least the lag
// before now. It sends one query for the scrape intervals and then at most fifteen for each window
// of rates that these need, side by side; all models need the same one unless they are scraped at
// different intervals. None is sent for an instant that was answered before. It always returns: the
// readings of a failed query are absent, and Missing has the reason.
func (c *Collector) Collect(ctx context.Context, now time.Time, w Windows) Observation {
	at, options := c.instant(now), c.options.over(w)
	c.metrics.scaleDown.Set(options.scaleDown.Seconds())
	found, intervals := c.scrapeIntervals(ctx, now, options)
	c.said.intervals(found)
	o := Observation{Time: at}
	o.Behind, o.BehindKnown = found.behind()
	var newest time.Time
	var all []*tables
	for i, b := range found.batches() {
		answered := newTables(options.within(b.window), at)
		answered.scrapes, answered.began, answered.since = found, w.Began, now.Add(-c.options.Interval/2)
		for _, a := range c.answers(ctx, now, answered.options, b) {
			answered.read(a.query, a.hides, a.answer)
			for _, ofTurn := range a.turns {
				answered.readings.read(ofTurn, a.step)
			}
			if a.query == meansOfPods || a.query == mixOfModels {
				answered.readings.isWhole = answered.readings.isWhole && a.isComplete()
			}
			if a.query == latencyParts {
				answered.readLatencies(a.complete)
			}
		}
		if i == 0 && (intervals.err == nil || !answered.hidesEngines()) { // else it says no more
			answered.read(intervals.query, intervals.hides, intervals.answer)
		}
		if sample, seen := answered.newestSample(); seen && sample.After(newest) {
			newest = sample
		}
		all = append(all, answered)
	}
	for _, answered := range all {
		answered.all = all
		o.Usages, o.Loads = append(o.Usages, answered.usages()...), append(o.Loads, answered.loads()...)
		o.Missing = append(o.Missing, answered.missing()...)
	}
	if !newest.IsZero() {
		c.metrics.age.Set(now.Sub(newest).Seconds())
	}
	o.sort()
	return o
}

// sort sorts the tables of several windows together.
func (o *Observation) sort() {
	slices.SortStableFunc(o.Usages, func(a, b fleet.Usage) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Model, b.Model))
	})
	slices.SortStableFunc(o.Loads, func(a, b fleet.Load) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Model, b.Model))
	})
	slices.SortStableFunc(o.Missing, func(a, b fleet.Missing) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Hides, b.Hides), cmp.Compare(a.Reason, b.Reason))
	})
	o.Missing = slices.Compact(o.Missing)
}

// pollStep is the distance between the instants at which queues are polled.
const pollStep = 250 * time.Millisecond

// Queues returns the queues of the gateways at the present quarter of a second, one row for each
// model, by one query that is never answered from memory. Only Queued is filled.
func (c *Collector) Queues(ctx context.Context, now time.Time) ([]fleet.Load, error) {
	at := floorTime(now, c.queues.step)
	answer := c.ask(ctx, c.queues, at, c.options.QueueTimeout)
	if answer.err != nil {
		return nil, fmt.Errorf("asking Prometheus for the queues of the gateways: %w", answer.err)
	}
	answered := newTables(c.options, at)
	answered.read("", "", answer)
	return answered.loads(), nil
}

// instant returns the instant of a cycle at the time now. Replicas of the scaler compute the same
// one.
func (c *Collector) instant(now time.Time) time.Time {
	return floorTime(now.Add(-c.options.Lag), c.options.Interval)
}
