package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/sync/errgroup"

	"github.com/wva-project/wva/config"
	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/planner"
	"github.com/wva-project/wva/scaler"
)

// server is the product wired together. It decides nothing itself.
type server struct {
	logger   *slog.Logger
	level    *slog.LevelVar
	settings atomic.Pointer[settings] // replaced whole
	source   source
	registry *prometheus.Registry
	board    *scaler.Board
	loop     *scaler.Loop
	poller   *scaler.QueuePoller
	dumper   *dumper
	scaler   *scaler.Server
	grpc     net.Listener
	http     net.Listener

	configPollInterval time.Duration // zero: the default of package config
}

// newServer wires a server and opens its ports. The error joins everything that is wrong.
func newServer(ctx context.Context, c *config.Config, log io.Writer) (*server, error) {
	s := &server{level: new(slog.LevelVar), registry: prometheus.NewRegistry()}
	s.logger = newLogger(log, c.Log, s.level)
	for _, warning := range c.Warnings() {
		s.logger.Warn("configuration warning", "warning", warning)
	}
	s.dumper = newDumper(func() string { return s.settings.Load().config.DumpSnapshot }, s.logger)
	s.dumper.notify() // before all that takes time
	if err := s.wire(ctx, c); err != nil {
		s.dumper.close()
		return nil, err
	}
	return s, nil
}

// wire makes the parts and opens the ports.
func (s *server) wire(ctx context.Context, c *config.Config) error {
	current, err := newSettings(c, s.logger)
	s.settings.Store(current)
	wrong := []error{err}
	if s.source, err = openSource(c, s.logger, s.registry); err != nil {
		wrong = append(wrong, err)
	}
	if err := errors.Join(append(wrong, s.decide(c), s.serve(c))...); err != nil {
		return err
	}
	if err := s.listen(ctx, c); err != nil {
		current.close()
		return err
	}
	return nil
}

// decide makes the parts that observe, plan and post.
func (s *server) decide(c *config.Config) (err error) {
	s.board = scaler.NewBoard(scaler.BoardOptions{MaxAge: c.MaxPlanAge})
	if s.poller, err = scaler.NewQueuePoller(scaler.QueuePollerOptions{Board: s.board, Queues: s.queues, Variants: s.variants}); err != nil {
		return err
	}
	options := scaler.LoopOptions{
		Observe: s.observe, Plan: s.plan, Board: s.board, Posted: s.posted, PollQueues: s.poller.Poll,
		Interval: c.Interval, Offset: c.Prometheus.QueryOffset, Logger: s.logger, Registerer: s.registry,
	}
	s.loop, err = scaler.NewLoop(options)
	return err
}

// serve makes the parts that answer.
func (s *server) serve(c *config.Config) error {
	observed := &observedReplicas{tables: s.source.tables}
	options := scaler.ServerOptions{Board: s.board, Observed: observed.of, Logger: s.logger, Registerer: s.registry}
	if files := tlsOf(c); !files.IsZero() {
		var err error
		if options.TLS, err = scaler.NewTLSConfig(files, s.logger); err != nil {
			return err
		}
	}
	s.registry.MustRegister(builtFrom().metric(), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	var err error
	s.scaler, err = scaler.NewServer(options)
	return err
}

func (s *server) listen(ctx context.Context, c *config.Config) error {
	var network net.ListenConfig
	var grpcErr, httpErr error
	if s.grpc, grpcErr = network.Listen(ctx, "tcp", c.GRPC.Address); grpcErr != nil {
		grpcErr = fmt.Errorf("listening for gRPC: %w; set grpc.address to a free address", grpcErr)
	}
	if s.http, httpErr = network.Listen(ctx, "tcp", c.HTTP.Address); httpErr != nil {
		httpErr = fmt.Errorf("listening for HTTP: %w; set http.address to a free address", httpErr)
	}
	err := errors.Join(grpcErr, httpErr)
	if err != nil {
		for _, listener := range []net.Listener{s.grpc, s.http} {
			if listener != nil {
				_ = listener.Close() // nothing was accepted
			}
		}
	}
	return err
}

// run works until the context ends, and returns when all that it started has ended.
func (s *server) run(ctx context.Context) error {
	s.logger.Info("starting", "version", builtFrom().String(), "grpc", s.grpc.Addr().String(), "http", s.http.Addr().String(),
		"prometheus", s.settings.Load().config.Prometheus.URL, "config", s.settings.Load().config.File())
	group, ctx := errgroup.WithContext(ctx)
	posted := s.board.Changed()     // before anything can post
	answered := make(chan struct{}) // closed once gRPC has ended
	group.Go(func() error {
		defer close(answered)
		return s.scaler.Serve(ctx, s.grpc)
	})
	group.Go(func() error { return s.serveHTTP(ctx, answered) })
	group.Go(func() error { return s.source.watch(ctx, s.loop.Trigger) })
	group.Go(func() error { return s.runLoop(ctx) })
	if s.source.events != nil {
		group.Go(func() error { return s.source.events.run(ctx) })
	}
	defer s.dumper.close()
	group.Go(func() error { return s.dumper.run(ctx) })
	group.Go(func() error { return s.watchConfig(ctx) })
	group.Go(func() error { return s.logProgress(ctx, posted) })
	err := group.Wait()
	s.settings.Load().close()
	s.logger.Info("stopped")
	return err
}

// runLoop decides once the tables are complete: a variant whose workload is not listed yet would be
// held.
func (s *server) runLoop(ctx context.Context) error {
	select {
	case <-s.source.complete:
		return s.loop.Run(ctx)
	case <-ctx.Done():
		return nil
	}
}

// logProgress logs the steps of the server's life.
func (s *server) logProgress(ctx context.Context, posted <-chan struct{}) error {
	select {
	case <-posted:
		s.logger.Info("first plan posted, server ready")
		<-ctx.Done()
	case <-ctx.Done():
	}
	s.logger.Info("stopping")
	return nil
}

func (s *server) watchConfig(ctx context.Context) error {
	return config.Watch(ctx, config.WatchOptions{
		Current: s.settings.Load().config, Every: s.configPollInterval, Apply: s.apply,
		Rejected: func(err error) {
			s.logger.Error("configuration rejected, keeping the previous one", "errors", err)
		},
	})
}

// apply replaces the configuration.
func (s *server) apply(c *config.Config, change config.Change) error {
	next, err := newSettings(c, s.logger)
	if err != nil {
		return err
	}
	before := s.settings.Swap(next)
	before.close()
	s.level.Set(c.Log.Level)
	s.board.SetMaxAge(c.MaxPlanAge)
	s.loop.SetInterval(c.Interval)
	s.loop.Trigger("configuration")
	s.logger.Info("configuration reloaded", "changed", change.Reloaded)
	if len(change.Pending) > 0 {
		s.logger.Warn("restart required for changed settings", "settings", change.Pending)
	}
	for _, warning := range c.Warnings() {
		s.logger.Warn("configuration warning", "warning", warning)
	}
	return nil
}

// observe fills the tables of a snapshot.
func (s *server) observe(ctx context.Context, now time.Time, previous []fleet.PreviousDecision) (fleet.Snapshot, error) {
	current, declared := s.settings.Load(), s.source.tables()
	seen := current.collector.Collect(ctx, now)
	missing := seen.Missing
	for _, problem := range declared.Problems {
		missing = append(missing, problem.Missing())
	}
	return fleet.Snapshot{
		Time: now, Models: current.config.Models, Classes: current.config.ServiceClasses,
		Accelerators: fleet.NameAsObserved(current.config.Accelerators, declared.Pools), Profiles: current.config.EngineProfiles(),
		Variants: declared.Variants, Workloads: declared.Workloads, Pools: fleet.FixPools(declared.Pools, current.config.FixedAccelerators, declared.Variants),
		Usages: seen.Usages, Loads: append(seen.Loads, s.poller.Queued(now)...), Previous: previous, Missing: missing,
	}, nil
}

func (s *server) plan(snapshot fleet.Snapshot) fleet.Plan {
	current := s.settings.Load()
	plan := s.dumper.plan(planner.Input{Snapshot: snapshot, Policy: current.policy})
	current.warnUnmatched(snapshot, s.logger)
	return plan
}

// posted passes on a plan that is on the board.
func (s *server) posted(before, after fleet.Plan) {
	s.dumper.posted()
	if s.source.events != nil {
		s.source.events.posted(before, after)
	}
}

func (s *server) queues(ctx context.Context, now time.Time) ([]fleet.Load, error) {
	return s.settings.Load().collector.Queues(ctx, now)
}

func (s *server) variants() []fleet.Variant { return s.source.tables().Variants }

func newLogger(w io.Writer, c config.Log, level *slog.LevelVar) *slog.Logger {
	level.Set(c.Level)
	options := &slog.HandlerOptions{Level: level}
	if c.Format == config.FormatJSON {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
