package app

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/wva-project/wva/collector"
	"github.com/wva-project/wva/fleet"
)

// longestBehind is how far the clock may be behind that of Prometheus before the latest samples are
// older than one would act on.
const longestBehind = time.Minute

// clockCheck reports whether the clock of this server is behind that of Prometheus. Its zero value
// has a right clock.
type clockCheck struct {
	mu     sync.Mutex
	behind time.Duration // when it was last known
}

// missing returns a row if the clock is behind, or was when that was last known. From a minute on
// the row blocks scale-down: newer samples exist than are looked at.
func (c *clockCheck) missing(seen collector.Observation, logger *slog.Logger) []fleet.Missing {
	behind := c.note(seen, logger)
	if behind == 0 {
		return nil
	}
	row := fleet.Missing{Source: "clock", Reason: fmt.Sprintf(
		"this server's clock is %s or more behind Prometheus', so its numbers are late; synchronize the clocks of the nodes", behind.Truncate(5*time.Second))}
	if behind >= longestBehind {
		row.Hides = fleet.SourceEngine
	}
	return []fleet.Missing{row}
}

// note returns by how much the clock is behind as far as is known, and logs changes.
func (c *clockCheck) note(seen collector.Observation, logger *slog.Logger) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !seen.BehindKnown {
		return c.behind
	}
	before := c.behind
	c.behind = seen.Behind
	switch {
	case before == 0 && c.behind > 0:
		logger.Warn("clock is behind that of Prometheus", "behind", c.behind, "remedy", "synchronize the clocks of the nodes")
	case before > 0 && c.behind == 0:
		logger.Info("clock is not behind that of Prometheus any more")
	}
	return c.behind
}
