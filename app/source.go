package app

import (
	"context"
	"errors"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/wva-project/wva/config"
	"github.com/wva-project/wva/inventory"
)

// Source is the place of the variants and workloads: a cluster, a directory of manifests, or the
// tables that a program keeps itself.
type Source struct {
	// Tables returns the latest tables, from memory; any goroutine may call it. A table is never
	// changed, only replaced. Required.
	Tables func() inventory.Tables

	// watch keeps the tables up to date until the context ends. The cause of a change is a label of
	// a metric.
	watch func(ctx context.Context, changed func(cause string)) error
	// complete is closed once the tables are complete. Nothing may be decided before.
	complete <-chan struct{}
	// events writes Kubernetes events; nil if none are written.
	events *eventPublisher
}

// sourceOf returns the source of the options, or else opens that of the configuration.
func sourceOf(o Options, registry prometheus.Registerer) (Source, error) {
	switch {
	case o.Source != nil:
		return o.Source.withDefaults()
	case o.Config.Manifests != "":
		return openManifests(o.Config.Manifests, o.Logger)
	}
	return openCluster(o.Config.Kubernetes, o.Logger, registry)
}

// withDefaults returns a source whose tables are complete, and of whose changes nobody is notified.
func (s Source) withDefaults() (Source, error) {
	if s.Tables == nil {
		return Source{}, errors.New("app: the source has no tables; set Source.Tables")
	}
	complete := make(chan struct{})
	close(complete)
	s.complete = complete
	s.watch = func(ctx context.Context, _ func(string)) error {
		<-ctx.Done()
		return nil
	}
	return s, nil
}

func openManifests(path string, logger *slog.Logger) (Source, error) {
	directory, err := inventory.OpenDirectory(inventory.DirectoryOptions{Path: path, Logger: logger})
	if err != nil {
		return Source{}, err
	}
	s, err := Source{Tables: directory.Tables}.withDefaults()
	s.watch = func(ctx context.Context, changed func(string)) error {
		return directory.Watch(ctx, func() { changed("manifests") })
	}
	return s, err
}

func openCluster(k config.Kubernetes, logger *slog.Logger, registry prometheus.Registerer) (Source, error) {
	client, clientErr := inventory.ClientConfig(clientOf(k))
	selector, selectorErr := inventory.ParseSelector(k.NamespaceSelector)
	if err := errors.Join(clientErr, selectorErr); err != nil {
		return Source{}, err
	}
	cluster, err := inventory.OpenCluster(inventory.ClusterOptions{
		Config: client, Namespaces: k.WatchNamespaces, ExcludedNamespaces: k.ExcludedNamespaces, NamespaceSelector: selector,
		DryRun: k.DryRunVariants == config.On, MaxAge: k.MaxCacheAge, Logger: logger, Registerer: registry,
	})
	if err != nil {
		return Source{}, err
	}
	s := Source{Tables: cluster.Tables, watch: cluster.Run, complete: cluster.Synced()}
	switch {
	case k.Events == config.Off:
	case k.Kubeconfig != "" && k.LeaseNamespace == "":
		logger.Info("events are not written", "reason", "a server outside the cluster would repeat those of a deployed one",
			"remedy", "set kubernetes.leaseNamespace to the namespace of its lease")
	default:
		s.events, err = newEventPublisher(k, cluster, logger, registry)
	}
	return s, err
}

func clientOf(k config.Kubernetes) inventory.ClientOptions {
	return inventory.ClientOptions{Kubeconfig: k.Kubeconfig, Context: k.Context, QPS: k.QPS, Burst: k.Burst}
}
