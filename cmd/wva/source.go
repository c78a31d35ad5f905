package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/wva-project/wva/config"
	"github.com/wva-project/wva/inventory"
)

// source says what there is to scale: a cluster, or a directory of manifests.
type source struct {
	// tables returns what was last seen, from memory.
	tables func() inventory.Tables
	// watch keeps the tables as they are out there until the context ends, and tells what kind of thing changed them.
	watch func(ctx context.Context, changed func(cause string)) error
	// complete is closed once the tables hold all that can be seen. Nothing may be decided on less.
	complete <-chan struct{}
	// announcer tells people of plans; nil where there is nobody to tell.
	announcer *announcer
}

func openSource(c *config.Config, logger *slog.Logger, registry prometheus.Registerer) (source, error) {
	if c.Manifests != "" {
		return openManifests(c.Manifests, logger)
	}
	return openCluster(c.Kubernetes, logger, registry)
}

func openManifests(path string, logger *slog.Logger) (source, error) {
	directory, err := inventory.OpenDirectory(inventory.DirectoryOptions{Path: path, Logger: logger})
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
	client, clientErr := inventory.ClientConfig(clientOf(k))
	selector, selectorErr := inventory.ParseSelector(k.NamespaceSelector)
	if err := errors.Join(clientErr, selectorErr); err != nil {
		return source{}, err
	}
	cluster, err := inventory.OpenCluster(inventory.ClusterOptions{
		Config: client, Namespaces: k.WatchNamespaces, ExcludedNamespaces: k.ExcludedNamespaces, NamespaceSelector: selector,
		Advisory: k.Advisory == config.On, MaxAge: k.MaxCacheAge, Logger: logger, Registerer: registry,
	})
	if err != nil {
		return source{}, err
	}
	s := source{tables: cluster.Tables, watch: cluster.Run, complete: cluster.Synced()}
	switch {
	case k.Events == config.Off:
	case k.Kubeconfig != "" && k.LeaseNamespace == "":
		logger.Info("no Kubernetes events are written: beside a deployed server both would; set kubernetes.leaseNamespace to that of its lease to compete for it")
	default:
		s.announcer, err = newAnnouncer(k, cluster, logger, registry)
	}
	return s, err
}

func clientOf(k config.Kubernetes) inventory.ClientOptions {
	return inventory.ClientOptions{Kubeconfig: k.Kubeconfig, Context: k.Context, QPS: k.QPS, Burst: k.Burst}
}
