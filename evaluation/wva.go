package evaluation

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/wva-project/wva/app"
	"github.com/wva-project/wva/config"
	"github.com/wva-project/wva/demo/promstore"
	"github.com/wva-project/wva/demo/standin"
	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/inventory"
	"github.com/wva-project/wva/scaledobject"
	"github.com/wva-project/wva/simulation"
)

const (
	// cycle is the time between two cycles of the product, and lag how long after an instant its
	// samples are queried.
	cycle = 15 * time.Second
	lag   = 2 * time.Second
	// retention is how long the in-process Prometheus keeps samples, longer than any window of the
	// product's queries.
	retention = 2 * time.Hour
)

// The names of WVA's policies, against which others are compared.
const (
	wvaName           = "wva"
	wvaPercentileName = "wva-percentile"
)

// wva is the product: collector, planner and answers as in production, on an in-process Prometheus
// that scrapes the fleet, with KEDA and an HPA for each variant.
func wva() Policy {
	return Policy{
		Name:    wvaName,
		Summary: "WVA as in production, with the objective of the manifests",
		Start: func(c Case, _ Setting, f *simulation.Fleet) (Controller, error) {
			return startProduct(c, f, productOptions{objects: c.Setup.Objects, variants: c.Setup.Variants})
		},
	}
}

// wvaPercentile is WVA with another percentile than that of the objective, as the curve of WVA
// itself.
func wvaPercentile() Policy {
	return Policy{
		Name:    wvaPercentileName,
		Summary: "WVA that sizes for another percentile than that of the objective",
		Knob: Knob{
			Name:    "percentile",
			Default: func(c Case, _ Choice) float64 { return c.Setup.Objective().Percentile },
			Values:  fixed(0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995),
		},
		Start: func(c Case, s Setting, f *simulation.Fleet) (Controller, error) {
			o := productOptions{objects: withObjective(c.Setup.Objects, fleet.Objective{Percentile: s.Knob})}
			for _, object := range o.objects {
				v, err := scaledobject.Read(object)
				if err != nil {
					return nil, err
				}
				o.variants = append(o.variants, v)
			}
			return startProduct(c, f, o)
		},
	}
}

// productOptions are the inputs of a product beside the fleet.
type productOptions struct {
	objects  []scaledobject.Object
	variants []fleet.Variant // of the objects, in their order
	// configure changes the configuration. Nil: it stays.
	configure func(*config.Config)
}

// product is a controller of WVA: once a second Prometheus scrapes the endpoints that are due, the
// server decides if a cycle is due, and KEDA and the HPAs act.
type product struct {
	fleet       *simulation.Fleet
	store       *promstore.Store
	scraper     *standin.Scraper
	clock       *clocktesting.FakeClock
	server      *app.Server
	variants    []fleet.Variant
	autoscalers []autoscaler
	tables      inventory.Tables
	tablesAt    float64 // when they were read
}

// autoscaler is KEDA and the HPA of a variant.
type autoscaler struct {
	*standin.Autoscaler
	id       fleet.VariantID
	metadata map[string]string
}

func startProduct(c Case, f *simulation.Fleet, o productOptions) (Controller, error) {
	configuration, err := productConfig(o.configure)
	if err != nil {
		return nil, err
	}
	p := &product{fleet: f, clock: clocktesting.NewFakeClock(epoch), variants: o.variants, tablesAt: -1}
	if p.store, err = promstore.New(); err != nil {
		return nil, err
	}
	p.store.Keep(retention)
	p.scraper = standin.NewScraper(p.store)
	for i, object := range o.objects {
		a, err := standin.NewAutoscaler(object)
		if err != nil {
			return nil, errors.Join(err, p.store.Close())
		}
		p.autoscalers = append(p.autoscalers, autoscaler{a, o.variants[i].ID, object.Spec.Triggers[0].Metadata})
	}
	p.server, err = app.New(app.Options{
		Config: configuration, Source: &app.Source{Tables: p.watched}, Transport: p.store.Transport(), Clock: p.clock,
		Logger: slog.New(slog.DiscardHandler), Seed: c.Seed + 1,
	})
	if err != nil {
		return nil, errors.Join(err, p.store.Close())
	}
	return p, nil
}

// productConfig returns the configuration of the product: the defaults.
func productConfig(configure func(*config.Config)) (*config.Config, error) {
	c, err := config.Default()
	if err != nil {
		return nil, err
	}
	c.Prometheus.URL = "http://prometheus.evaluation"
	c.Interval, c.Prometheus.QueryOffset = cycle, lag
	// Throughput of one GPU for models of this size, relative to an L40S.
	c.Accelerators = []fleet.AcceleratorSpec{{Name: "A100", Speed: 2}, {Name: "H100", Speed: 3.5}, {Name: "L40S", Speed: 1}}
	if configure != nil {
		configure(c)
	}
	return c, nil
}

// watched returns the fleet of this instant as a watch of its cluster would.
func (p *product) watched() inventory.Tables {
	if p.tablesAt != p.fleet.Now() {
		p.tables = inventory.Tables{Variants: p.variants, Workloads: p.fleet.Workloads(), Pools: p.fleet.Pools()}
		p.tablesAt = p.fleet.Now()
	}
	return p.tables
}

// Step implements [Controller]: one second.
func (p *product) Step(ctx context.Context, f *simulation.Fleet) (float64, error) {
	second := int(math.Round(f.Now()))
	now := f.Time(f.Now())
	p.clock.SetTime(now)
	if err := p.scraper.Scrape(f, second, false); err != nil {
		return 0, err
	}
	if _, err := p.server.Step(ctx, now); err != nil {
		return 0, err
	}
	for i, a := range p.autoscalers {
		calls := p.calls(ctx, a)
		if p.pushes(a.id) {
			a.Push(second, calls)
		}
		a.Tick(second, i, calls)
	}
	return float64(second + 1), nil
}

// pushes reports whether the server pushes a variant: its decision is above zero while its workload
// has no replicas. KEDA acts on a push at once.
func (p *product) pushes(id fleet.VariantID) bool {
	if stateOf(p.fleet, id).Replicas > 0 {
		return false
	}
	decision, _ := p.server.Board().Lookup(id)
	return decision.Known && decision.Replicas > 0
}

// calls returns the calls of an autoscaler, without a network.
func (p *product) calls(ctx context.Context, a autoscaler) standin.Calls {
	return standin.Calls{
		Metric: func() (float64, error) {
			replicas, err := p.server.Replicas(ctx, a.id, a.metadata)
			return float64(replicas), err
		},
		Active: func() (bool, error) {
			replicas, err := p.server.Replicas(ctx, a.id, a.metadata)
			return replicas > 0, err
		},
		Replicas: func() int { return stateOf(p.fleet, a.id).Replicas },
		// It fails for unknown variants only.
		Scale: func(replicas int) { _ = p.fleet.Scale(a.id, replicas) },
	}
}

// Close implements [Controller].
func (p *product) Close() error { return p.store.Close() }
