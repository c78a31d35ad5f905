package events

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// The pace of a lease: the API server gets one request every five seconds from each replica. A
// replica that dies is replaced after half a minute, one that stops at once.
const (
	leaseDuration = 30 * time.Second
	leaseDeadline = 20 * time.Second
	leaseRetry    = 5 * time.Second
	leaseTimeout  = 4 * time.Second // of one request
)

// LeaseOptions are the options of a Lease.
type LeaseOptions struct {
	// Config is the configuration of the client; it is copied. Required.
	Config *rest.Config
	// Namespace is that of the lease, usually this process's own. Required.
	Namespace string
	// Name is the lease's. Default: wva-events.
	Name string
	// Identity names this process; a random part is added. Default: the host's name, which is the
	// pod's.
	Identity string
	// Logger gets a warning if the lease cannot be read or written, and a line when it can again.
	// Default: nothing is logged.
	Logger *slog.Logger
}

// Lease elects one of several replicas for work that only one may do. While the API server is gone
// or a role is missing, none is elected. No decision waits for it.
type Lease struct {
	options LeaseOptions
	client  *coordinationclient.CoordinationV1Client
	term    atomic.Pointer[leaderelection.LeaderElector] // nil while this process does not compete
}

// NewLease returns a lease, which Run competes for. It sends nothing to the API server.
func NewLease(options LeaseOptions) (*Lease, error) {
	if options.Config == nil || options.Namespace == "" {
		return nil, errors.New("lease: set LeaseOptions.Config and Namespace")
	}
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	options.Name = cmp.Or(options.Name, "wva-events")
	config := rest.CopyConfig(options.Config)
	config.Timeout = leaseTimeout
	client, err := coordinationclient.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("lease: %w; correct the kubeconfig", err)
	}
	return &Lease{options: options, client: client}, nil
}

// IsLeader reports whether this process owns the lease.
func (l *Lease) IsLeader() bool {
	term := l.term.Load()
	return term != nil && term.IsLeader()
}

// Run competes for the lease until the context ends, then releases it and returns nil. The work
// that it guards should have ended by then.
func (l *Lease) Run(ctx context.Context) error {
	defer utilnet.CloseIdleConnectionsFor(l.client.RESTClient().(*rest.RESTClient).Client.Transport)
	ctx = quiet(ctx)
	failing := make(map[string]bool) // outlives a term, so that each line is logged once
	for ctx.Err() == nil {
		term, err := l.newTerm(failing)
		if err != nil {
			return err
		}
		l.term.Store(term)
		term.Run(ctx) // until the lease is lost
		l.term.Store(nil)
	}
	return nil
}

// newTerm returns a competitor. Each has an identity of its own: one that lost the lease must not
// take the old record in it for its own.
func (l *Lease) newTerm(failing map[string]bool) (*leaderelection.LeaderElector, error) {
	host, _ := os.Hostname() // a random part follows in any case
	identity := cmp.Or(l.options.Identity, host, "wva") + "_" + strings.ToLower(rand.Text()[:10])
	lock := &leaseLock{logger: l.options.Logger, failing: failing, LeaseLock: resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Namespace: l.options.Namespace, Name: l.options.Name}, Client: l.client,
		LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
	}}
	term, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, Name: l.options.Name, ReleaseOnCancel: true,
		LeaseDuration: leaseDuration, RenewDeadline: leaseDeadline, RetryPeriod: leaseRetry,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) {}, OnStoppedLeading: func() {}},
	})
	if err != nil {
		return nil, fmt.Errorf("lease %s: %w", lock.Describe(), err)
	}
	return term, nil
}

// leaseLock is client-go's lock, and logs failures once: the elector only tries again.
type leaseLock struct {
	resourcelock.LeaseLock
	logger  *slog.Logger
	failing map[string]bool // by verb
}

// Get reads the lease.
func (k *leaseLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := k.LeaseLock.Get(ctx)
	if apierrors.IsNotFound(err) {
		k.note("get", nil) // the first replica creates it
	} else {
		k.note("get", err)
	}
	return record, raw, err
}

// Create makes the lease.
func (k *leaseLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	err := k.LeaseLock.Create(ctx, record)
	k.note("create", err)
	return err
}

// Update renews, takes over or releases the lease.
func (k *leaseLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	err := k.LeaseLock.Update(ctx, record)
	k.note("update", err)
	return err
}

// note logs that a verb fails, and that it works again, once each. That another replica was faster
// is no failure.
func (k *leaseLock) note(verb string, err error) {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || verb == "update" && apierrors.IsNotFound(err) {
		err = nil
	}
	switch {
	case errors.Is(err, context.Canceled):
	case err == nil && k.failing[verb]:
		delete(k.failing, verb)
		k.logger.Info("lease available again", "lease", k.Describe(), "verb", verb)
	case err != nil && !k.failing[verb]:
		k.failing[verb] = true
		k.logger.Warn("lease not available, so no replica writes events", "verb", verb, "resource", "leases", "lease", k.Describe(),
			"error", err, "remedy", leaseRemedy(err))
	}
}

func leaseRemedy(err error) string {
	if apierrors.IsForbidden(err) {
		return "allow get, create and update on leases in the role of the service account"
	}
	return "check that the API server can be reached and the namespace exists"
}
