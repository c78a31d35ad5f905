package cluster

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
	"k8s.io/client-go/util/flowcontrol"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/inventory"
)

// defaultMaxAge is the longest time for which the last state of a failing watch is used.
const defaultMaxAge = 10 * time.Minute

// Options say which cluster is watched, and which part of it.
type Options struct {
	// Config is the address of the API server and the credentials. It is copied. Its requests are
	// limited to 20 a second with bursts of 40 if it sets no QPS and Burst; watches do not count.
	// Required.
	Config *rest.Config
	// Namespaces are watched one by one, so that roles in these namespaces are enough. Default:
	// all, by one watch each.
	Namespaces []string
	// ExcludedNamespaces are left out. Default: none.
	ExcludedNamespaces []string
	// NamespaceSelector leaves out the namespaces whose labels do not match. Default: nil, and
	// namespaces are not watched.
	NamespaceSelector labels.Selector
	// DryRun watches Deployments, StatefulSets and LeaderWorkerSets whether a ScaledObject names
	// them or not, so that their WVA annotations are seen. A kind of these that is not served or
	// may not be read blocks nothing. Default: off.
	DryRun bool
	// ConfigNamespace is the namespace whose ConfigMaps with the label of configuration are
	// watched, and with TenantConfig those of the other namespaces too. Default: none are.
	ConfigNamespace string
	TenantConfig    bool
	// Tables are the options for reading objects. Default: the zero value.
	Tables inventory.Options
	// Logger gets a warning for each problem, once, and a line when it is solved. Default: nothing
	// is logged.
	Logger *slog.Logger
	// Registerer gets the metrics. Default: they are not registered.
	Registerer prometheus.Registerer
	// MaxAge is how long the last state of a failing watch is used. After that, the variants that
	// depend on it are marked as hidden. Default: 10 min.
	MaxAge time.Duration
}

// Cluster is the state of a fleet at an API server: ScaledObjects, their scale targets, pods, nodes
// and HPAs.
//
// It reads them by watches, one per resource and, with Namespaces, namespace. A kind of scale
// target is watched while a variant names it; with DryRun, the kinds that may be annotated are
// watched always. Tables are rebuilt when an object that they depend on has changed, once for a
// burst of changes.
//
// A watch that fails removes nothing: its last state is used, and a problem says so. A variant is
// marked as hidden, and then held, if the objects of its target's kind, the pods or the
// ScaledObjects of its namespace were not listed completely, have failed for longer than MaxAge, or
// have failed for a minute while others of these changed. After an outage the tables stay as they
// are until all watches have recovered, for 10 s at most.
// Pools are shown only if nodes and the pods of all namespaces were listed; they stay while their
// watches fail.
//
// Pods of excluded namespaces count for the accelerators that they have allocated, and for nothing
// else.
type Cluster struct {
	options      Options
	clients      *clients
	metrics      *metrics
	tables       atomic.Pointer[inventory.Tables]
	synced       chan struct{}
	started      atomic.Bool
	changes      *changes
	scaleLookups *lookupQueue
	arrange      chan struct{} // buffer of one: watches are to be started or stopped

	mu       sync.Mutex
	watches  map[watchID]*resourceWatch
	wanted   wantedKinds
	kinds    map[schema.GroupKind]kind
	noPods   bool // pods of all namespaces may not be read: those of Namespaces are
	arranged bool // the watches that no target needs are there

	discovered time.Time               // last reset of the known kinds; the supervisor's
	probes     flowcontrol.RateLimiter // of the requests that look for unknown kinds
	// unfollowed are the numbers that no HPA follows; the rebuild's.
	unfollowed map[fleet.VariantID]unfollowed
	// withheld is since when tables have not been replaced, after an outage; the rebuild's.
	withheld time.Time
}

// Open makes the clients. It sends nothing to the API server; Run does. Its error has every
// validation error.
func Open(options Options) (*Cluster, error) {
	errs := options.validate()
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
		probes: flowcontrol.NewTokenBucketRateLimiter(probeQPS, probeBurst),
	}
	c.tables.Store(&inventory.Tables{})
	if options.Config == nil {
		errs = append(errs, errors.New("cluster: no configuration of a client; give one from a kubeconfig or the pod's service account"))
	} else if made, err := newClients(options.Config); err != nil {
		errs = append(errs, fmt.Errorf("cluster: %w; correct the kubeconfig", err))
	} else {
		c.clients = made
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	var err error
	if c.metrics, err = newMetrics(options.Registerer, c.watchStates); err != nil {
		return nil, fmt.Errorf("cluster: %w; give each cluster a registerer of its own", err)
	}
	return c, nil
}

// validate returns the validation errors of the options themselves.
func (o Options) validate() []error {
	var errs []error
	for _, namespace := range slices.Concat(o.Namespaces, o.ExcludedNamespaces) {
		if len(validation.IsDNS1123Label(namespace)) > 0 {
			errs = append(errs, fmt.Errorf("cluster: %q is not the name of a namespace; write it as the cluster has it", namespace))
		}
	}
	for _, namespace := range o.Namespaces {
		if slices.Contains(o.ExcludedNamespaces, namespace) {
			errs = append(errs, fmt.Errorf("cluster: namespace %s is both watched and excluded; remove it from one of the two", namespace))
		}
	}
	if o.MaxAge < 0 {
		errs = append(errs, fmt.Errorf("cluster: maximum age %s is negative; set it to a time such as %s", o.MaxAge, defaultMaxAge))
	}
	return errs
}

// Tables returns the tables of the last rebuild, from memory. It never waits. Before Synced is
// closed the tables have problems only.
func (c *Cluster) Tables() inventory.Tables { return *c.tables.Load() }

// Synced returns a channel that is closed once every resource was listed, or is known not to be
// readable, and Tables shows it. Nothing may be decided before. A kind of scale target that fails
// for another cause, and resources that no workload depends on, are waited for for a minute; a kind
// that no variant names, until it first fails.
func (c *Cluster) Synced() <-chan struct{} { return c.synced }

// Run watches until the context ends, and returns nil once everything that it started has ended. It
// may run once.
//
// It calls changed, unless that is nil, when Synced is closed, with "watch". After that it calls it
// once for each rebuild that changed the tables, with the cause: "scaledobject", "workload", "hpa",
// "node", "pod", "namespace", "config" or "watch", the first in this order if there are several.
// changed must not block for long.
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

// includes reports whether objects of a namespace are in the tables. selected are the namespaces
// that match the selector; nil if there is no selector.
func (c *Cluster) includes(namespace string, selected map[string]bool) bool {
	switch {
	case slices.Contains(c.options.ExcludedNamespaces, namespace):
		return false
	case len(c.options.Namespaces) > 0 && !slices.Contains(c.options.Namespaces, namespace):
		return false
	}
	return selected == nil || selected[namespace]
}
