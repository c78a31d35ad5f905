package collector

import (
	"context"
	"fmt"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/wva-project/wva/fleet"
)

// Collector queries Prometheus about the fleet. It is safe for concurrent use.
type Collector struct {
	options Options
	api     v1.API
	address string // of Prometheus, without credentials
	metrics *metrics
	queues  query

	turn    chan struct{} // of capacity 1: the sender owns the queries and their answers
	queries []*asked
	written Windows // those of the queries
}

// Observation is the answer of Prometheus for one instant. Its tables are sorted by identity.
type Observation struct {
	// Time is the instant of the queries: a multiple of the interval.
	Time   time.Time
	Usages []fleet.Usage
	Loads  []fleet.Load
	// Missing has the queries that failed, joined by reason, those that Prometheus answered with a
	// warning, and series without the labels of a model.
	Missing []fleet.Missing
}

// New returns a collector, or an error that names every invalid option.
func New(o Options) (*Collector, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	api, err := o.prometheusAPI()
	if err != nil {
		return nil, err
	}
	metrics, err := newMetrics(o.Registerer)
	if err != nil {
		return nil, err
	}
	c := &Collector{
		options: o,
		api:     api,
		address: displayAddress(o.Address),
		metrics: metrics,
		queues:  query{name: "queues", text: newGatewayExpressions(o).queuesQuery(), step: pollStep, answer: model.ValVector},
		turn:    make(chan struct{}, 1),
	}
	c.queries, c.written = cycleQueries(o), o.windows()
	return c, nil
}

// cycleQueries returns the queries of a cycle.
func cycleQueries(o Options) []*asked {
	var queries []*asked
	engines, gateways := newExpressions(o), newGatewayExpressions(o)
	for _, q := range append(engines.queries(), engines.arrivalsQuery(gateways)) {
		queries = append(queries, &asked{query: q, hides: fleet.SourceEngine})
	}
	for _, q := range gateways.queries() {
		queries = append(queries, &asked{query: q, hides: fleet.SourceGateway})
	}
	return queries
}

// Collect returns the state that Prometheus knows at the last instant that is at least the lag
// before now. It sends at most a dozen queries side by side, none for an instant that was answered
// before. It always returns: the readings of a failed query are absent, and Missing has the reason.
func (c *Collector) Collect(ctx context.Context, now time.Time, w Windows) Observation {
	at, options := c.instant(now), c.options.over(w)
	c.metrics.scaleDown.Set(options.scaleDown.Seconds())
	answered := newTables(options, at)
	for _, a := range c.answers(ctx, now, options) {
		answered.read(a.query, a.hides, a.answer)
	}
	if newest, seen := answered.newestSample(); seen {
		c.metrics.age.Set(now.Sub(newest).Seconds())
	}
	return Observation{Time: at, Usages: answered.usages(), Loads: answered.loads(), Missing: answered.missing()}
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
