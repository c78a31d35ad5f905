package events

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/rest"
)

// competitor is a process that competes for the lease.
type competitor struct {
	*Lease
	log  *logText
	stop func() // ends Run and waits for it
}

// compete lets a replica compete until it is stopped, or the test ends.
func compete(t *testing.T, config *rest.Config, name string) *competitor {
	t.Helper()
	r := &competitor{log: &logText{}}
	var err error
	r.Lease, err = NewLease(LeaseOptions{
		Config: config, Namespace: "keda", Identity: name, Logger: slog.New(slog.NewTextHandler(r.log, nil)),
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	r.stop = func() {
		cancel()
		require.NoError(t, <-ended)
	}
	synctest.Wait()
	return r
}

func holderOf(s *store) string {
	leases := stored[coordinationv1.Lease](s, "leases")
	if len(leases) != 1 || leases[0].Spec.HolderIdentity == nil {
		return ""
	}
	return *leases[0].Spec.HolderIdentity
}

func TestOneOfSeveralReplicasLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		a, b := compete(t, s.config(), "a"), compete(t, s.config(), "b")
		for range 20 {
			require.True(t, a.IsLeader())
			require.False(t, b.IsLeader())
			require.True(t, strings.HasPrefix(holderOf(s), "a_"), holderOf(s))
			time.Sleep(7 * time.Second)
			synctest.Wait()
		}
		a.stop()
		require.False(t, a.IsLeader())
		time.Sleep(3 * leaseRetry)
		synctest.Wait()
		require.True(t, b.IsLeader(), "a released lease need not expire")
		b.stop()
		require.Empty(t, holderOf(s))
		require.Empty(t, append(a.log.lines("WARN"), b.log.lines("WARN")...))
	})
}

// cut is a network of one replica that can be cut.
type cut struct {
	*store
	off atomic.Bool
}

// RoundTrip hands a request on.
func (c *cut) RoundTrip(request *http.Request) (*http.Response, error) {
	if c.off.Load() {
		return nil, gone("", "")
	}
	return c.store.RoundTrip(request)
}

func TestReplicaThatLosesTheAPIServerStopsBeforeAnotherBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		network := &cut{store: s}
		a := compete(t, configOf(network), "a")
		b := compete(t, s.config(), "b")
		require.True(t, a.IsLeader())
		network.off.Store(true)
		for range 60 {
			time.Sleep(time.Second)
			synctest.Wait()
			require.False(t, a.IsLeader() && b.IsLeader())
		}
		require.False(t, a.IsLeader())
		require.True(t, b.IsLeader())
		warnings := a.log.lines("WARN")
		require.Len(t, warnings, 2, "update, then get")
		require.Contains(t, warnings[0], "connection refused")

		network.off.Store(false)
		time.Sleep(time.Minute)
		require.False(t, a.IsLeader(), "it is b's now")
		require.Len(t, a.log.lines("INFO"), 1)
		b.stop()
		time.Sleep(2 * leaseRetry)
		synctest.Wait()
		require.True(t, a.IsLeader())
		a.stop()
	})
}

func TestNobodyLeadsWithoutTheRoleForTheLease(t *testing.T) {
	for _, verb := range []string{"get", "create", "update"} {
		t.Run(verb, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStore()
				if verb == "update" {
					compete(t, s.config(), "before").stop()
				}
				s.fail(func(asked, resource string) error {
					if asked == verb {
						return forbidden(asked, resource)
					}
					return nil
				})
				r := compete(t, s.config(), "a")
				time.Sleep(10 * time.Minute)
				require.False(t, r.IsLeader())
				warnings := r.log.lines("WARN")
				require.Len(t, warnings, 1)
				for _, part := range []string{"verb=" + verb, "resource=leases", "lease=keda/wva-events", "allow get, create and update on leases"} {
					require.Contains(t, warnings[0], part)
				}
				s.fail(nil)
				time.Sleep(time.Minute)
				synctest.Wait()
				require.True(t, r.IsLeader(), "the role may come")
				require.Len(t, r.log.lines("INFO"), 1)
				r.stop()
			})
		})
	}
}

func TestALeaseStopsWhileTheAPIServerHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := hanging{newStore()}
		r := compete(t, configOf(network), "a")
		time.Sleep(time.Minute)
		require.False(t, r.IsLeader())
		require.Len(t, r.log.lines("WARN"), 1)
		began := time.Now()
		r.stop()
		require.LessOrEqual(t, time.Since(began), leaseTimeout)
	})
}

// hanging is a network that answers nothing.
type hanging struct{ *store }

// RoundTrip waits for the end of the request.
func (hanging) RoundTrip(request *http.Request) (*http.Response, error) {
	<-request.Context().Done()
	return nil, request.Context().Err()
}

func TestNewLeaseReturnsErrorsWithRemedies(t *testing.T) {
	_, err := NewLease(LeaseOptions{Config: newStore().config()})
	require.ErrorContains(t, err, "set LeaseOptions.Config and Namespace")
	_, err = NewLease(LeaseOptions{Config: &rest.Config{Host: "http://a\nb"}, Namespace: "keda"})
	require.ErrorContains(t, err, "correct the kubeconfig")
}
