package main

import (
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/wva-project/wva/config"
	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/inventory"
	"github.com/wva-project/wva/planner"
)

// announcer tells people of plans, by events on their ScaledObjects. One of several replicas does.
type announcer struct {
	lease  *inventory.Lease
	writer *inventory.EventWriter
	leads  bool // the lease was held at the plan before; only posted reads and writes it
}

func newAnnouncer(k config.Kubernetes, cluster *inventory.Cluster, logger *slog.Logger, registry prometheus.Registerer) (*announcer, error) {
	client, err := inventory.ClientConfig(clientOf(k))
	if err != nil {
		return nil, err
	}
	namespace := k.LeaseNamespace
	if namespace == "" {
		if namespace, err = inventory.PodNamespace(); err != nil {
			return nil, err
		}
	}
	a := &announcer{}
	if a.lease, err = inventory.NewLease(inventory.LeaseOptions{Config: client, Namespace: namespace, Logger: logger}); err != nil {
		return nil, err
	}
	a.writer, err = inventory.NewEventWriter(inventory.EventOptions{
		Config: client, Leader: a.lease.Held, Object: cluster.EventObject, Logger: logger, Registerer: registry,
	})
	return a, err
}

// posted tells what a plan changes. Whoever begins to lead tells what stands: the one before may not have come to it.
func (a *announcer) posted(before, after fleet.Plan) {
	led := a.leads
	if a.leads = a.lease.Held(); !a.leads {
		return
	}
	if !led {
		before = fleet.Plan{}
	}
	a.writer.Write(planner.Notices(before, after))
}

// run works until the context ends. The lease is given up once nothing is written any more.
func (a *announcer) run(ctx context.Context) error {
	held, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return a.lease.Run(held) })
	group.Go(func() error {
		defer giveUp()
		return a.writer.Run(ctx)
	})
	return group.Wait()
}
