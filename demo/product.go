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

// interval is the time between two decisions, and lag how long after an instant its samples are asked for.
const (
	interval = 15 * time.Second
	lag      = 2 * time.Second
)

// product is one life of the scaler: the real collector, planner, loop, board and gRPC server, in virtual time.
type product struct {
	world     *world
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

// productOptions is what a product is wired to.
type productOptions struct {
	world     *world
	workloads func() []fleet.Workload
	pools     func() []fleet.Pool
	transport http.RoundTripper // to Prometheus
	clock     clock.Clock
	logger    *slog.Logger
	address   string
	seed      uint64
}

// startProduct wires a product and begins to serve. It remembers nothing of an earlier one.
func startProduct(ctx context.Context, o productOptions) (*product, error) {
	p := &product{world: o.world, workloads: o.workloads, pools: o.pools, ended: make(chan error, 1)}
	registry := prometheus.NewRegistry()
	var err error
	if p.collector, err = collector.New(collector.Options{
		Address: "http://prometheus.demo", RoundTripper: o.transport, Interval: interval, Lag: lag, Logger: o.logger, Registerer: registry,
	}); err != nil {
		return nil, err
	}
	p.board = scaler.NewBoard(scaler.BoardOptions{Clock: o.clock})
	if p.loop, err = scaler.NewLoop(scaler.LoopOptions{
		Observe: p.observe, Plan: func(s fleet.Snapshot) fleet.Plan { return planner.Plan(s, o.world.policy) },
		Board: p.board, Interval: interval, Logger: o.logger, Registerer: registry,
	}); err != nil {
		return nil, err
	}
	if p.poller, err = scaler.NewQueuePoller(scaler.QueuePollerOptions{
		Board: p.board, Queues: p.collector.Queues, Variants: func() []fleet.Variant { return o.world.variants },
	}); err != nil {
		return nil, err
	}
	if p.server, err = scaler.NewServer(scaler.ServerOptions{Board: p.board, Logger: o.logger, Registerer: registry, Seed: o.seed + 1}); err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.address)
	if err != nil {
		return nil, fmt.Errorf("listening for gRPC: %w; take another address with --grpc-address, or port 0 for a free one", err)
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

// observe fills the tables of a snapshot.
func (p *product) observe(ctx context.Context, now time.Time, standing []fleet.PreviousDecision) (fleet.Snapshot, error) {
	seen := p.collector.Collect(ctx, now)
	return fleet.Snapshot{
		Time: now, Models: p.world.models, Accelerators: p.world.accelerators, Profiles: p.world.profiles, Variants: p.world.variants,
		Workloads: p.workloads(), Pools: p.pools(), Usages: seen.Usages, Loads: append(seen.Loads, p.poller.Queued(now)...), Missing: seen.Missing, Previous: standing,
	}, nil
}

// turn is what the scaler does in one second: a cycle at its interval, or at once where requests wait for a model at zero.
func (p *product) turn(ctx context.Context, now time.Time) (decided bool, err error) {
	due := now.Sub(now.Truncate(interval)) == lag
	if !due {
		// A gateway that cannot be seen is no reason to wake.
		if wake, _ := p.poller.Poll(ctx, now); !wake {
			return false, ctx.Err()
		}
	}
	return true, p.loop.Once(ctx, now)
}
