package app

import (
	"github.com/wva-project/wva/fleet"
)

// covering returns the settings with which the last use of each model is searched for as long as
// the retentions of the variants need. Their collector is another one if that changed. An error
// keeps the present ones: a model whose retention is not covered keeps its last replica.
func (s *Server) covering(variants []fleet.Variant) *settings {
	current := s.settings.Load()
	window := current.config.IdleWindow(variants)
	if window == current.idleWindow {
		return current
	}
	next, err := current.withIdleWindow(window, s.logger)
	if err != nil {
		s.logger.Error("idle window not changed", "window", window.String(), "error", err, "remedy", "set prometheus.windows.idle")
		return current
	}
	if !s.settings.CompareAndSwap(current, next) { // the configuration was reloaded meanwhile
		return s.settings.Load()
	}
	s.logger.Debug("idle window changed", "window", window.String())
	return next
}
