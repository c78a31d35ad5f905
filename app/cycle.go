package app

import (
	"context"
	"slices"
	"time"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/planner"
)

// observe fills the tables of a snapshot.
func (s *Server) observe(ctx context.Context, now time.Time, previous []fleet.PreviousDecision) (fleet.Snapshot, error) {
	declared := s.source.Tables()
	s.useConfigMaps(declared)
	current := s.settings.Load()
	c := current.config
	declared.Variants = c.Declare(declared.Variants)
	declared.Workloads = s.ended.mark(declared.Workloads, now)
	windows := windowsOf(c, declared)
	windows.Began = youngPods(c, declared.Workloads, now)
	seen := current.collector.Collect(ctx, now, windows)
	missing := slices.Concat(seen.Missing, s.clock.missing(seen, s.logger))
	for _, problem := range declared.Problems {
		missing = append(missing, problem.Missing())
	}
	supply := fleet.Supply{Fixed: c.FixedAccelerators, Elastic: c.ElasticAccelerators}
	return fleet.Snapshot{
		Time: now, Models: c.ModelsOf(declared.Variants), Classes: c.ServiceClasses,
		Limits: c.LimitsOf(declared.Variants), Accelerators: fleet.NameAsObserved(c.Accelerators, declared.Pools), Profiles: c.EngineProfiles(),
		Variants: declared.Variants, Workloads: declared.Workloads, Pools: supply.Declare(declared.Pools, declared.Variants), Quotas: declared.Quotas,
		Usages: seen.Usages, Loads: append(seen.Loads, s.poller.Queued(now)...), Previous: previous, Missing: missing,
	}, nil
}

func (s *Server) plan(snapshot fleet.Snapshot) fleet.Plan {
	current := s.settings.Load()
	plan := s.dumper.plan(planner.Input{Snapshot: snapshot, Policy: current.policy})
	s.crashes.report(plan, s.logger)
	current.warnUnmatched(snapshot, s.logger)
	return plan
}

// posted passes on a plan that is on the board.
func (s *Server) posted(before, after fleet.Plan) {
	s.dumper.posted()
	if s.source.events != nil {
		s.source.events.posted(before, after)
	}
}

func (s *Server) queues(ctx context.Context, now time.Time) ([]fleet.Load, error) {
	return s.settings.Load().collector.Queues(ctx, now)
}

func (s *Server) variants() []fleet.Variant { return s.source.Tables().Variants }
