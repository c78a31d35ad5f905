package inventory

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
)

// defaultMaxAge is how old what a failing watch showed may become.
const defaultMaxAge = 10 * time.Minute

// ClusterOptions say which cluster is watched, and which part of it.
type ClusterOptions struct {
	// Config says where the API server is, and who asks. It is copied. Its requests are limited to 20 a second with bursts
	// of 40 where it sets no QPS and Burst; watches do not count. Required.
	Config *rest.Config
	// Namespaces are watched one by one, so that roles in these namespaces are enough. Default: all, by one watch each.
	Namespaces []string
	// ExcludedNamespaces are left out. Default: none.
	ExcludedNamespaces []string
	// NamespaceSelector leaves out the namespaces whose labels do not match. Default: nil, and namespaces are not watched.
	NamespaceSelector labels.Selector
	// DryRun has Deployments, StatefulSets and LeaderWorkerSets watched whether a ScaledObject names them or not, so that
	// those with our annotations are seen. What of them is not served or may not be read blocks nothing. Default: off.
	DryRun bool
	// Tables say how objects are read. Default: as its zero value has it.
	Tables Options
	// Logger takes a warning for each problem, once, and a line when it is solved. Default: nothing is logged.
	Logger *slog.Logger
	// Registerer takes the metrics. Default: they are not registered.
	Registerer prometheus.Registerer
	// MaxAge is how old what a failing watch last showed may become before the variants that rest on it are marked as hidden.
	// Default: 10 min.
	MaxAge time.Duration
}

// Cluster is what an API server shows: ScaledObjects, what they scale, pods, nodes and HPAs.
//
// It learns of them by watches, one per kind and, with Namespaces, namespace. A kind of scale target is watched while a
// variant names it, with Advisory those that may be annotated always. Tables are made anew when something changed that they rest on; a burst of changes makes them once.
//
// What cannot be read takes nothing away that was there: while a watch fails, what it last showed stays in force, and a
// problem says so. A variant is marked as hidden where its target's kind, the pods or the ScaledObjects of its namespace were
// not listed whole, or have failed for longer than MaxAge; it is then held. Pools are shown only
// where nodes and the pods of all namespaces were listed; they stay while their watches fail.
//
// Pods of left out namespaces count as holders of accelerators, and for nothing else.
type Cluster struct {
	options ClusterOptions
	clients *clients
	metrics *clusterMetrics
	tables  atomic.Pointer[Tables]
	synced  chan struct{}
	started atomic.Bool
	changes *changes
	scaleLookups    *lookupQueue
	arrange chan struct{} // holds one: feeds are to be started or stopped

	mu       sync.Mutex
	watches    map[watchID]*resourceWatch
	wanted   wantedKinds
	kinds    map[schema.GroupKind]kind
	noPods   bool // pods of all namespaces may not be read: those of Namespaces are
	arranged bool // the feeds that are not of targets are there

	discovered time.Time // when the API server was asked which kinds there are; the supervisor's
}

// OpenCluster makes the clients. It asks nothing of the API server; Run does. Its error names every fault.
func OpenCluster(options ClusterOptions) (*Cluster, error) {
	faults := options.validate()
	options.Namespaces = slices.Compact(slices.Sorted(slices.Values(options.Namespaces)))
	if options.MaxAge == 0 {
		options.MaxAge = defaultMaxAge
	}
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	c := &Cluster{
		options: options, synced: make(chan struct{}), changes: newChanges(), scaleLookups: newLookupQueue(), arrange: make(chan struct{}, 1),
		watches: map[watchID]*resourceWatch{}, wanted: wantedKinds{}, kinds: map[schema.GroupKind]kind{},
	}
	c.tables.Store(&Tables{})
	if options.Config == nil {
		faults = append(faults, errors.New("cluster: no configuration of a client; give one from a kubeconfig or the pod's service account"))
	} else if made, err := newClients(options.Config); err != nil {
		faults = append(faults, fmt.Errorf("cluster: %w; correct the kubeconfig", err))
	} else {
		c.clients = made
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	var err error
	if c.metrics, err = newClusterMetrics(options.Registerer, c.watchStates); err != nil {
		return nil, fmt.Errorf("cluster: %w; give each cluster a registerer of its own", err)
	}
	return c, nil
}

// validate returns what is wrong with the options themselves.
func (o ClusterOptions) validate() []error {
	var faults []error
	for _, namespace := range slices.Concat(o.Namespaces, o.ExcludedNamespaces) {
		if len(validation.IsDNS1123Label(namespace)) > 0 {
			faults = append(faults, fmt.Errorf("cluster: %q is not the name of a namespace; write it as the cluster has it", namespace))
		}
	}
	for _, namespace := range o.Namespaces {
		if slices.Contains(o.ExcludedNamespaces, namespace) {
			faults = append(faults, fmt.Errorf("cluster: namespace %s is both watched and excluded; remove it from one of the two", namespace))
		}
	}
	if o.MaxAge < 0 {
		faults = append(faults, fmt.Errorf("cluster: maximum age %s is negative; set it to a time such as %s", o.MaxAge, defaultMaxAge))
	}
	return faults
}

// Tables returns what the cluster shows, from memory. It never waits. Before Synced is closed the tables hold problems only.
func (c *Cluster) Tables() Tables { return *c.tables.Load() }

// Synced returns a channel that is closed once every kind was listed, or is known not to be readable, and Tables shows it.
// Nothing may be decided before. A kind of scale target that fails otherwise, and what no workload rests on, is waited for
// for a minute; a kind that no variant names until it first fails.
func (c *Cluster) Synced() <-chan struct{} { return c.synced }

// Run watches until the context ends, and returns nil once everything that it started has ended. It may run once.
//
// It calls changed, where that is not nil, when Synced is closed, with "watch", and from then on once for each making of
// the tables that changed them, with what changed: "scaledobject", "workload", "hpa", "node", "pod", "namespace" or "watch",
// the first in this order where several did. changed must not block for long.
func (c *Cluster) Run(ctx context.Context, changed func(cause string)) error {
	if c.started.Swap(true) {
		return errors.New("cluster: it was run before; open another one")
	}
	ctx = quiet(ctx)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return c.supervise(ctx) })
	group.Go(func() error { return c.rebuild(ctx, changed) })
	group.Go(func() error { return c.lookUpScales(ctx) })
	err := group.Wait()
	c.clients.close()
	return err
}

// includes reports whether objects of a namespace are in the tables. The namespaces of the selector's choice are given, nil
// where there is no selector.
func (c *Cluster) includes(namespace string, selected map[string]bool) bool {
	switch {
	case slices.Contains(c.options.ExcludedNamespaces, namespace):
		return false
	case len(c.options.Namespaces) > 0 && !slices.Contains(c.options.Namespaces, namespace):
		return false
	}
	return selected == nil || selected[namespace]
}
