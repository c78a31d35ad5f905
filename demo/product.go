package demo

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/wva-project/wva/collector"
	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/planner"
	"github.com/wva-project/wva/scaler"
)

// interval is the time between two cycles, and lag how long after an instant its samples are
// queried.
const (
	interval = 15 * time.Second
	lag      = 2 * time.Second
)

// product is one instance of the scaler in virtual time: the real collector, planner, loop, board
// and gRPC server.
type product struct {
	scenario  *scenario
	workloads func() []fleet.Workload
	pools     func() []fleet.Pool
	collector *collector.Collector
	board     *scaler.Board
	loop      *scaler.Loop
	server    *scaler.Server
	poller    *scaler.QueuePoller
	address   string
	stop      context.CancelFunc
	ended     chan error
}

// productOptions are the inputs of a product.
type productOptions struct {
	scenario  *scenario
	workloads func() []fleet.Workload
	pools     func() []fleet.Pool
	transport http.RoundTripper // to Prometheus
	clock     clock.Clock
	logger    *slog.Logger
	address   string
	seed      uint64
}

// startProduct connects the parts of a product and begins to serve. It has no state of an earlier
// one.
func startProduct(ctx context.Context, o productOptions) (*product, error) {
	p := &product{scenario: o.scenario, workloads: o.workloads, pools: o.pools, ended: make(chan error, 1)}
	registry := prometheus.NewRegistry()
	var err error
	if p.collector, err = collector.New(collector.Options{
		Address: "http://prometheus.demo", RoundTripper: o.transport, Interval: interval, Lag: lag, Logger: o.logger, Registerer: registry,
	}); err != nil {
		return nil, err
	}
	p.board = scaler.NewBoard(scaler.BoardOptions{Clock: o.clock})
	if p.loop, err = scaler.NewLoop(scaler.LoopOptions{
		Observe: p.observe, Plan: func(s fleet.Snapshot) fleet.Plan { return planner.Plan(s, o.scenario.policy) },
		Board: p.board, Interval: interval, Logger: o.logger, Registerer: registry,
	}); err != nil {
		return nil, err
	}
	if p.poller, err = scaler.NewQueuePoller(scaler.QueuePollerOptions{
		Board: p.board, Queues: p.collector.Queues, Variants: func() []fleet.Variant { return o.scenario.variants },
	}); err != nil {
		return nil, err
	}
	if p.server, err = scaler.NewServer(scaler.ServerOptions{Board: p.board, Logger: o.logger, Registerer: registry, Seed: o.seed + 1}); err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.address)
	if err != nil {
		return nil, fmt.Errorf("listening for gRPC: %w; set another address with --grpc-address, or port 0 for a free one", err)
	}
	p.address = listener.Addr().String()
	ctx, p.stop = context.WithCancel(ctx)
	go func() { p.ended <- p.server.Serve(ctx, listener) }()
	return p, nil
}

// close ends the product as a SIGTERM does, and returns once it has ended.
func (p *product) close() error {
	p.stop()
	return <-p.ended
}

// observe returns the snapshot of a cycle.
func (p *product) observe(ctx context.Context, now time.Time, previous []fleet.PreviousDecision) (fleet.Snapshot, error) {
	seen := p.collector.Collect(ctx, now)
	return fleet.Snapshot{
		Time: now, Models: p.scenario.models, Accelerators: p.scenario.accelerators, Profiles: p.scenario.profiles, Variants: p.scenario.variants,
		Workloads: p.workloads(), Pools: p.pools(), Usages: seen.Usages, Loads: append(seen.Loads, p.poller.Queued(now)...), Missing: seen.Missing, Previous: previous,
	}, nil
}

// turn runs a cycle if it is due: at its interval, or at once if requests wait for a model that is
// scaled to zero.
func (p *product) turn(ctx context.Context, now time.Time) (decided bool, err error) {
	due := now.Sub(now.Truncate(interval)) == lag
	if !due {
		// A gateway that cannot be queried is no reason for a cycle.
		if wake, _ := p.poller.Poll(ctx, now); !wake {
			return false, ctx.Err()
		}
	}
	return true, p.loop.Once(ctx, now)
}
