package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/wva-project/wva/config"
)

// Run opens the ports of the configuration and works until the context ends. It returns when all
// that it started has ended. A server runs once.
func (s *Server) Run(ctx context.Context) error {
	c := s.settings.Load().config
	defer func() { s.settings.Load().close() }()
	ports, err := listen(ctx, c)
	if err != nil {
		return err
	}
	s.logger.Info("starting", "version", s.build.String(), "grpc", ports.keda.Addr().String(),
		"operators", ports.operators.Addr().String(), "http", ports.http.Addr().String(), "prometheus", c.Prometheus.URL, "config", c.File())
	group, ctx := errgroup.WithContext(ctx)
	answered := make(chan struct{}) // closed once gRPC has ended
	group.Go(func() error {
		defer close(answered)
		return s.scaler.Serve(ctx, ports.keda)
	})
	group.Go(func() error { return s.scaler.ServeOperators(ctx, ports.operators) })
	group.Go(func() error { return s.serveHTTP(ctx, ports.http, answered) })
	group.Go(func() error { return s.source.watch(ctx, s.loop.Trigger) })
	group.Go(func() error { return s.runLoop(ctx) })
	if s.source.events != nil {
		group.Go(func() error { return s.source.events.run(ctx) })
	}
	group.Go(func() error { return s.dumper.run(ctx) })
	group.Go(func() error { return s.watchConfig(ctx) })
	group.Go(func() error { return s.logProgress(ctx) })
	err = group.Wait()
	s.logger.Info("stopped")
	return err
}

// ports are the listeners of a server.
type ports struct{ keda, operators, http net.Listener }

// listen opens all ports or none.
func listen(ctx context.Context, c *config.Config) (ports, error) {
	var opened ports
	var errs []error
	for _, port := range []struct {
		listener                  *net.Listener
		purpose, setting, address string
	}{
		{&opened.keda, "gRPC", "grpc.address", c.GRPC.Address},
		{&opened.operators, "operators", "operators.address", c.Operators.Address},
		{&opened.http, "HTTP", "http.address", c.HTTP.Address},
	} {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", port.address)
		if err != nil {
			errs = append(errs, fmt.Errorf("listening for %s: %w; set %s to a free address", port.purpose, err, port.setting))
			continue
		}
		*port.listener = listener
	}
	if len(errs) == 0 {
		return opened, nil
	}
	for _, listener := range []net.Listener{opened.keda, opened.operators, opened.http} {
		if listener != nil {
			_ = listener.Close() // nothing was accepted
		}
	}
	return ports{}, errors.Join(errs...)
}

// runLoop decides once the tables are complete: a variant whose workload is not listed yet would be
// held.
func (s *Server) runLoop(ctx context.Context) error {
	select {
	case <-s.source.complete:
		return s.loop.Run(ctx)
	case <-ctx.Done():
		return nil
	}
}

// logProgress logs the steps of the server's life. From the first plan on, its input can be dumped.
func (s *Server) logProgress(ctx context.Context) error {
	select {
	case <-s.dumper.first:
		s.logger.Info("first plan posted, server ready")
		<-ctx.Done()
	case <-ctx.Done():
	}
	s.logger.Info("stopping")
	return nil
}

func (s *Server) watchConfig(ctx context.Context) error {
	return config.Watch(ctx, config.WatchOptions{
		Live: s.live, Every: s.options.ConfigPollInterval, Reloaded: func() { s.loop.Trigger("configuration") },
		Rejected: func(err error) {
			s.logger.Error("configuration rejected, keeping the previous one", "errors", err)
		},
	})
}

// apply replaces the configuration.
func (s *Server) apply(c *config.Config, change config.Change) error {
	before := s.settings.Load()
	next, err := before.with(c, s.options.Transport, s.logger)
	if err != nil {
		return err
	}
	if len(change.Reloaded) == 0 { // the rows of the administrator are the same
		next.matched.Store(before.matched.Load())
	}
	s.settings.Store(next)
	if next.transport != before.transport {
		before.close()
	}
	s.options.Level.Set(c.Log.Level)
	s.board.SetMaxAge(c.MaxPlanAge)
	s.loop.SetInterval(c.Interval)
	s.logger.Info("configuration reloaded", "changed", change.Reloaded, "namespaces", change.Namespaces,
		"variants", c.Affected(before.config, s.source.Tables().Variants))
	if len(change.Pending) > 0 {
		s.logger.Warn("restart required for changed settings", "settings", change.Pending)
	}
	for _, warning := range c.Warnings() {
		if !slices.Contains(before.config.Warnings(), warning) {
			s.logger.Warn("configuration warning", "warning", warning)
		}
	}
	return nil
}
