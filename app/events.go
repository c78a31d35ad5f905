package app

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/wva-project/wva/config"
	"github.com/wva-project/wva/events"
	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/inventory"
	"github.com/wva-project/wva/inventory/cluster"
	"github.com/wva-project/wva/planner"
)

// eventPublisher writes the changes of plans as Kubernetes events on ScaledObjects. Of several
// servers, the one that holds the lease does.
type eventPublisher struct {
	lease  *events.Lease
	writer *events.Writer
	led    bool // the lease was held at the previous plan; only the cycle uses it
	// unusable are the rejected keys of ConfigMaps, for a server that gets the lease later; only
	// the cycle uses it
	unusable []events.ConfigMapEvent
}

func newEventPublisher(k config.Kubernetes, watched *cluster.Cluster, options cluster.Options) (*eventPublisher, error) {
	client, err := cluster.ClientConfig(clientOf(k))
	if err != nil {
		return nil, err
	}
	namespace := k.LeaseNamespace
	if namespace == "" {
		if namespace, err = events.PodNamespace(); err != nil {
			return nil, err
		}
	}
	p := &eventPublisher{}
	if p.lease, err = events.NewLease(events.LeaseOptions{Config: client, Namespace: namespace, Logger: options.Logger}); err != nil {
		return nil, err
	}
	p.writer, err = events.NewWriter(events.WriterOptions{
		Config: client, Leader: p.lease.IsLeader, Object: watched.EventObject, Logger: options.Logger, Registerer: options.Registerer,
	})
	return p, err
}

// posted writes the changes of a plan. A server that has just got the lease writes the whole plan:
// the previous holder may not have done so.
func (p *eventPublisher) posted(before, after fleet.Plan) {
	led := p.led
	if p.led = p.lease.IsLeader(); !p.led {
		return
	}
	if !led {
		before = fleet.Plan{}
		p.writer.WriteConfigMaps(p.unusable)
	}
	p.writer.Write(planner.Notices(before, after))
}

// rejected writes an event on each ConfigMap of which a key was rejected now. all are those that
// are rejected.
func (p *eventPublisher) rejected(news, all []config.Rejection, found []inventory.ConfigMap) {
	p.unusable = eventsOf(all, found)
	if p.led {
		p.writer.WriteConfigMaps(eventsOf(news, found))
	}
}

func eventsOf(rejections []config.Rejection, found []inventory.ConfigMap) (rows []events.ConfigMapEvent) {
	byName := make(map[[2]string]inventory.ConfigMap)
	if len(rejections) > 0 {
		for _, m := range found {
			byName[[2]string{m.Namespace, m.Name}] = m
		}
	}
	for _, r := range rejections {
		row := events.ConfigMapEvent{
			Namespace: r.Namespace, Name: r.Name, Text: r.String(),
			UID: string(byName[[2]string{r.Namespace, r.Name}].UID),
		}
		rows = append(rows, row)
	}
	return rows
}

// run writes events until the context ends. The lease is released after the last one.
func (p *eventPublisher) run(ctx context.Context) error {
	held, release := context.WithCancel(context.WithoutCancel(ctx))
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return p.lease.Run(held) })
	group.Go(func() error {
		defer release()
		return p.writer.Run(ctx)
	})
	return group.Wait()
}
