package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/wva-project/wva/scaler"
)

const (
	// headerTimeout is the longest time that a client may take to send a request.
	headerTimeout = 5 * time.Second
	// answerTimeout is the longest time of an answer: the metrics of a large fleet are megabytes.
	answerTimeout = 30 * time.Second
	// lastAnswers is the longest time that requests may take to end after gRPC has ended.
	lastAnswers = time.Second
)

// serveHTTP serves health and metrics until gRPC has ended, so that probes see that the server is
// not ready any more.
func (s *Server) serveHTTP(ctx context.Context, listener net.Listener, answered <-chan struct{}) error {
	h := &http.Server{
		Handler: s.handler(ctx), ReadHeaderTimeout: headerTimeout, WriteTimeout: answerTimeout, IdleTimeout: time.Minute,
		ErrorLog: slog.NewLogLogger(s.logger.Handler(), slog.LevelWarn),
	}
	ended := make(chan error, 1)
	go func() { ended <- h.Serve(listener) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serving HTTP on %s: %w", listener.Addr(), err)
	case <-answered:
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastAnswers)
	defer cancel()
	if err := h.Shutdown(bounded); err != nil {
		_ = h.Close() // the time is over
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving HTTP on %s: %w", listener.Addr(), err)
	}
	return nil
}

// handler answers as the scaler's handler does, but is not ready after the context has ended. Below
// the answer whether it is ready come the resources that cannot be read: they hold variants, or
// delay the first decision, and other servers could not read them either. The collector and its
// metrics are replaced with the configuration.
func (s *Server) handler(ctx context.Context) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" && ctx.Err() != nil {
			http.Error(w, "shutting down", http.StatusServiceUnavailable)
			return
		}
		scaler.NewHTTPHandler(s.board, prometheus.Gatherers{s.registry, s.settings.Load().metrics}).ServeHTTP(w, r)
		if r.URL.Path == "/readyz" {
			for _, line := range s.source.behind() {
				_, _ = fmt.Fprintln(w, line) // it fails only if the caller went away
			}
		}
	})
}
