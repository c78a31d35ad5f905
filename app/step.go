package app

import (
	"context"
	"net"
	"time"
)

// Serve answers KEDA and operators on the listener until the context ends, and decides nothing by
// itself: that is done by Step. A server serves once.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	defer func() { s.settings.Load().close() }()
	return s.scaler.Serve(ctx, listener)
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

// Settle hands out every push that is due at the present time of the clock, and waits until each
// has been sent.
func (s *Server) Settle(ctx context.Context) error { return s.scaler.Settle(ctx) }

// Pushes returns how many pushes were sent so far.
func (s *Server) Pushes() uint64 { return s.scaler.Pushes() }
