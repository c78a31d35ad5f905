package main

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

// source is the place of the variants and workloads: a cluster, or a directory of manifests.
type source struct {
	// tables returns the latest tables, from memory.
	tables func() inventory.Tables
	// watch keeps the tables up to date until the context ends. The cause of a change is a label of
	// a metric.
	watch func(ctx context.Context, changed func(cause string)) error
	// complete is closed once the tables are complete. Nothing may be decided before.
	complete <-chan struct{}
	// events writes Kubernetes events; nil if none are written.
	events *eventPublisher
}

func openSource(c *config.Config, logger *slog.Logger, registry prometheus.Registerer) (source, error) {
	if c.Manifests != "" {
		return openManifests(c.Manifests, logger)
	}
	return openCluster(c.Kubernetes, logger, registry)
}

func openManifests(path string, logger *slog.Logger) (source, error) {
	directory, err := manifests.Open(manifests.Options{Path: path, Logger: logger})
	if err != nil {
		return source{}, err
	}
	complete := make(chan struct{})
	close(complete)
	watch := func(ctx context.Context, changed func(string)) error {
		return directory.Watch(ctx, func() { changed("manifests") })
	}
	return source{tables: directory.Tables, watch: watch, complete: complete}, nil
}

func openCluster(k config.Kubernetes, logger *slog.Logger, registry prometheus.Registerer) (source, error) {
	client, clientErr := cluster.ClientConfig(clientOf(k))
	selector, selectorErr := cluster.ParseSelector(k.NamespaceSelector)
	if err := errors.Join(clientErr, selectorErr); err != nil {
		return source{}, err
	}
	watched, err := cluster.Open(cluster.Options{
		Config: client, Namespaces: k.WatchNamespaces, ExcludedNamespaces: k.ExcludedNamespaces, NamespaceSelector: selector,
		DryRun: k.DryRunVariants == config.On, MaxAge: k.MaxCacheAge, Logger: logger, Registerer: registry,
	})
	if err != nil {
		return source{}, err
	}
	s := source{tables: watched.Tables, watch: watched.Run, complete: watched.Synced()}
	switch {
	case k.Events == config.Off:
	case k.Kubeconfig != "" && k.LeaseNamespace == "":
		logger.Info("events are not written", "reason", "a server outside the cluster would repeat those of a deployed one",
			"remedy", "set kubernetes.leaseNamespace to the namespace of its lease")
	default:
		s.events, err = newEventPublisher(k, watched, logger, registry)
	}
	return s, err
}

func clientOf(k config.Kubernetes) cluster.ClientOptions {
	return cluster.ClientOptions{Kubeconfig: k.Kubeconfig, Context: k.Context, QPS: k.QPS, Burst: k.Burst}
}
