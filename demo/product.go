package demo

import (
	"context"
	"errors"
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
	server *app.Server
	board  board
	read   func() inventory.Tables
	latest atomic.Pointer[inventory.Tables]
	// address and operators are those of the ports.
	address, operators string

	stop  context.CancelFunc
	ended chan error
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
	address   string // for KEDA
	operators string // for operators
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
	keda, err := listen(ctx, o.address, "--grpc-address")
	if err != nil {
		return nil, err
	}
	operators, err := listen(ctx, o.operators, "--operators-address")
	if err != nil {
		return nil, errors.Join(err, keda.Close())
	}
	p.address, p.operators = keda.Addr().String(), operators.Addr().String()
	ctx, p.stop = context.WithCancel(ctx)
	go func() { p.ended <- p.server.Serve(ctx, keda, operators) }()
	return p, nil
}

func listen(ctx context.Context, address, flag string) (net.Listener, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listening for gRPC: %w; set another address with %s, or port 0 for a free one", err, flag)
	}
	return listener, nil
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
