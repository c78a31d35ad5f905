package demo

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/wva-project/wva/app"
	"github.com/wva-project/wva/config"
	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/inventory"
)

// interval is the time between two cycles, and lag how long after an instant its samples are
// queried.
const (
	interval = 15 * time.Second
	lag      = 2 * time.Second
)

// product is one instance of the product in virtual time.
type product struct {
	server  *app.Server
	board   board
	read    func() inventory.Tables
	latest  atomic.Pointer[inventory.Tables]
	address string
	stop    context.CancelFunc
	ended   chan error
}

// board is the plan that KEDA is answered from.
type board interface {
	Plan() (fleet.Plan, bool)
	Lookup(id fleet.VariantID) (fleet.Decision, bool)
}

// productOptions are the inputs of a product.
type productOptions struct {
	config    *config.Config
	tables    func() inventory.Tables
	transport http.RoundTripper // to Prometheus
	clock     clock.Clock
	logger    *slog.Logger
	address   string
	seed      uint64
}

// startProduct starts a product, which answers KEDA from then on. It has no state of an earlier
// one.
func startProduct(ctx context.Context, o productOptions) (*product, error) {
	p := &product{read: o.tables, ended: make(chan error, 1)}
	p.watch()
	var err error
	if p.server, err = app.New(app.Options{
		Config: o.config, Source: &app.Source{Tables: func() inventory.Tables { return *p.latest.Load() }},
		Transport: o.transport, Clock: o.clock, Logger: o.logger, Seed: o.seed + 1,
	}); err != nil {
		return nil, err
	}
	p.board = p.server.Board()
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

// turn lets the product see the fleet of this instant, and decide if a cycle is due.
func (p *product) turn(ctx context.Context, now time.Time) (decided bool, err error) {
	p.watch()
	return p.server.Step(ctx, now)
}

// watch replaces the tables. Calls of KEDA read them at the same time, while the fleet changes.
func (p *product) watch() {
	tables := p.read()
	p.latest.Store(&tables)
}
