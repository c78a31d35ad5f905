package app

import (
	"errors"
	"log/slog"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/wva-project/wva/config"
	"github.com/wva-project/wva/scaler"
)

// Server is the product, joined. It decides nothing itself.
type Server struct {
	options  Options
	build    Build
	logger   *slog.Logger
	settings atomic.Pointer[settings] // replaced whole
	live     *config.Live
	source   Source
	registry *prometheus.Registry
	board    *scaler.Board
	loop     *scaler.Loop
	poller   *scaler.QueuePoller
	dumper   *dumper
	crashes  *crashes
	clock    clockCheck
	ended    endedPods
	scaler   *scaler.Server
}

// New joins a server; Run, or Serve and Step, make it work. The error joins everything that is
// wrong.
func New(o Options) (*Server, error) {
	if o.Config == nil {
		return nil, errors.New("app: no configuration; set Options.Config")
	}
	o = o.withDefaults()
	s := &Server{options: o, build: BuildOf(o.Version), logger: o.Logger, registry: prometheus.NewRegistry()}
	for _, warning := range o.Config.Warnings() {
		s.logger.Warn("configuration warning", "warning", warning)
	}
	s.dumper = newDumper(func() string { return s.settings.Load().config.DumpSnapshot }, o.DumpRequests, s.logger)
	s.crashes = newCrashes(s.registry)
	current, err := newSettings(o.Config, o.Transport, s.logger)
	s.settings.Store(current)
	wrong := []error{err}
	namespace, err := configNamespace(o.Config)
	if err != nil {
		wrong = append(wrong, err)
	}
	s.live = config.NewLive(o.Config, namespace, s.apply)
	if s.source, err = sourceOf(o, namespace, s.registry); err != nil {
		wrong = append(wrong, err)
	}
	if err := errors.Join(append(wrong, s.decide(o.Config), s.answer(o.Config))...); err != nil {
		return nil, err
	}
	return s, nil
}

// decide makes the parts that observe, plan and post.
func (s *Server) decide(c *config.Config) (err error) {
	s.board = scaler.NewBoard(scaler.BoardOptions{MaxAge: c.MaxPlanAge, Clock: s.options.Clock})
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

// answer makes the parts that answer KEDA, operators and Prometheus.
func (s *Server) answer(c *config.Config) error {
	observed := &observedReplicas{tables: s.source.Tables}
	options := scaler.ServerOptions{
		Board: s.board, Observed: observed.of, Logger: s.logger, Registerer: s.registry, Seed: s.options.Seed, MaxStreams: c.GRPC.MaxStreams,
	}
	var err error
	if files := tlsOf(c); !files.IsZero() {
		if options.TLS, err = scaler.NewTLSConfig(files, s.logger); err != nil {
			return err
		}
	}
	if files := operatorsTLSOf(c); !files.IsZero() {
		if options.OperatorsTLS, err = scaler.NewTLSConfig(files, s.logger); err != nil {
			return err
		}
	}
	s.registry.MustRegister(s.build.metric(), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	s.scaler, err = scaler.NewServer(options)
	return err
}

// Board returns the board, which KEDA is answered from.
func (s *Server) Board() *scaler.Board { return s.board }
