package app

import (
	"context"
	"errors"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/wva-project/wva/config"
	"github.com/wva-project/wva/inventory"
	"github.com/wva-project/wva/inventory/cluster"
	"github.com/wva-project/wva/inventory/manifests"
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
	// behind returns a line for each resource of the tables that cannot be read now.
	behind func() []string
	// events writes Kubernetes events; nil if none are written.
	events *eventPublisher
}

// sourceOf returns the source of the options, or else opens that of the configuration.
func sourceOf(o Options, configNamespace string, registry prometheus.Registerer) (Source, error) {
	switch {
	case o.Source != nil:
		return o.Source.withDefaults()
	case o.Config.Manifests != "":
		return openManifests(o.Config.Manifests, o.Logger)
	}
	watched := cluster.Options{ConfigNamespace: configNamespace, Logger: o.Logger, Registerer: registry}
	return openCluster(o.Config.Kubernetes, watched)
}

// withDefaults returns a source whose tables are complete, and of whose changes nobody is notified.
func (s Source) withDefaults() (Source, error) {
	if s.Tables == nil {
		return Source{}, errors.New("app: the source has no tables; set Source.Tables")
	}
	complete := make(chan struct{})
	close(complete)
	s.complete, s.behind = complete, func() []string { return nil }
	s.watch = func(ctx context.Context, _ func(string)) error {
		<-ctx.Done()
		return nil
	}
	return s, nil
}

func openManifests(path string, logger *slog.Logger) (Source, error) {
	directory, err := manifests.Open(manifests.Options{Path: path, Logger: logger})
	if err != nil {
		return Source{}, err
	}
	s, err := Source{Tables: directory.Tables}.withDefaults()
	s.watch = func(ctx context.Context, changed func(string)) error {
		return directory.Watch(ctx, func() { changed("manifests") })
	}
	return s, err
}

// clusterOptions adds the settings of the configuration to options.
func clusterOptions(k config.Kubernetes, options cluster.Options) (cluster.Options, error) {
	client, clientErr := cluster.ClientConfig(clientOf(k))
	selector, selectorErr := cluster.ParseSelector(k.NamespaceSelector)
	options.Config, options.Namespaces, options.ExcludedNamespaces = client, k.WatchNamespaces, k.ExcludedNamespaces
	options.NamespaceSelector, options.MaxAge = selector, k.MaxCacheAge
	options.DryRun, options.TenantConfig = k.DryRunVariants == config.On, k.ConfigMaps == config.ConfigMapsAll
	return options, errors.Join(clientErr, selectorErr)
}

// openCluster opens the cluster of the configuration; options has the rest.
func openCluster(k config.Kubernetes, options cluster.Options) (Source, error) {
	options, err := clusterOptions(k, options)
	if err != nil {
		return Source{}, err
	}
	watched, err := cluster.Open(options)
	if err != nil {
		return Source{}, err
	}
	s := Source{Tables: watched.Tables, watch: watched.Run, complete: watched.Synced(), behind: watched.Behind}
	switch {
	case k.Events == config.Off:
	case k.Kubeconfig != "" && k.LeaseNamespace == "":
		options.Logger.Info("events are not written", "reason", "a server outside the cluster would repeat those of a deployed one",
			"remedy", "set kubernetes.leaseNamespace to the namespace of its lease")
	default:
		s.events, err = newEventPublisher(k, watched, options)
	}
	return s, err
}

func clientOf(k config.Kubernetes) cluster.ClientOptions {
	return cluster.ClientOptions{Kubeconfig: k.Kubeconfig, Context: k.Context, QPS: k.QPS, Burst: k.Burst}
}
