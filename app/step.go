package app

import (
	"context"
	"net"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/wva-project/wva/fleet"
)

// Serve answers KEDA and operators, each on a listener, until the context ends, and decides nothing
// by itself: that is done by Step. A server serves once.
func (s *Server) Serve(ctx context.Context, keda, operators net.Listener) error {
	defer func() { s.settings.Load().close() }()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.scaler.Serve(ctx, keda) })
	group.Go(func() error { return s.scaler.ServeOperators(ctx, operators) })
	return group.Wait()
}

// Step does at one instant what Run does by the clock: it runs a cycle if one is due by the
// interval, or if requests wait for a model that is scaled to zero. It reports whether it decided.
func (s *Server) Step(ctx context.Context, now time.Time) (decided bool, err error) {
	c := s.settings.Load().config
	if now.Add(-c.Prometheus.QueryOffset).UnixNano()%int64(c.Interval) != 0 {
		// A gateway that cannot be queried is no reason for a cycle.
		if wake, _ := s.poller.Poll(ctx, now); !wake {
			return false, ctx.Err()
		}
	}
	return true, s.loop.Once(ctx, now)
}

// Replicas returns the number that KEDA gets for a ScaledObject with these trigger metadata, or the
// error that it gets, without a call over a network.
func (s *Server) Replicas(ctx context.Context, id fleet.VariantID, metadata map[string]string) (int, error) {
	return s.scaler.Replicas(ctx, id, metadata)
}

// Settle hands out every push that is due at the present time of the clock, and waits until each
// has been sent.
func (s *Server) Settle(ctx context.Context) error { return s.scaler.Settle(ctx) }

// Pushes returns how many pushes were sent so far.
func (s *Server) Pushes() uint64 { return s.scaler.Pushes() }
