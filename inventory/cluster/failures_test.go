package cluster

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/inventory/manifesttest"
)

// connectionRefused is the error of a dead API server.
func connectionRefused() error {
	return &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
}

func TestForbiddenKindIsNamedAndTheRestGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.api.deny("list deployments.apps", 403)
		w.api.deny("watch deployments.apps", 403)
		w.api.apply(append(chat(2), strings.Replace(manifesttest.Deployment("set", 3, "image: vllm"), "kind: Deployment", "kind: StatefulSet", 1),
			manifesttest.ScaledTo("set", "{kind: StatefulSet, name: set}"))...)
		w.run()
		w.settle()
		require.True(t, w.isSynced())
		require.Equal(t, "llm/chat llm/set", w.variants())
		require.Equal(t, "set=3/0", w.workloads())
		require.Equal(t, "watch of deployments.apps: list on deployments.apps is forbidden since 2000-01-01 00:00 UTC; "+
			"variants that need it are held; allow list and watch on deployments.apps in the role of the service account", w.problems())
		w.api.deny("list deployments.apps", 0)
		w.api.deny("watch deployments.apps", 0)
		w.pass(time.Minute)
		require.Equal(t, "chat=2/2 set=3/0", w.workloads())
		require.Empty(t, w.problems())
	})
}

func TestForbiddenPodsHideTheirWorkloadsAndShowNoPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.api.deny("list pods", 403)
		w.api.deny("watch pods", 403)
		w.api.apply(chat(2)...)
		w.run()
		w.settle()
		require.True(t, w.isSynced())
		require.Equal(t, "llm/chat", w.variants())
		require.Equal(t, "llm/chat", w.hidden(), "pods that are not seen are not pods that are not there")
		require.Equal(t, "chat=2/0", w.workloads(), "the replicas of the spec are known all the same")
		require.Empty(t, w.Tables().Pools)
		require.Contains(t, w.problems(), "list on pods is forbidden")
	})
}

func TestForbiddenWatchIsNamedAndListsKeepTheTablesFresh(t *testing.T) {
	inCluster(t, Options{MaxAge: 5 * time.Minute}, chat(2), func(w *world) {
		w.api.deny("watch pods", 403)
		w.api.apply(chatPod(3))
		w.pass(time.Hour)
		require.Equal(t, "chat=2/3", w.workloads(), "each attempt lists")
		require.Contains(t, w.problems(), "watch on pods is forbidden")
	})
}

func TestKEDAThatIsInstalledLaterIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		all := w.api.kinds
		w.api.kinds = all[:6]
		w.run()
		w.settle()
		require.True(t, w.isSynced())
		require.Contains(t, w.problems(), "watch of scaledobjects.keda.sh: the API server does not serve it since")
		w.api.mu.Lock()
		w.api.kinds = all
		w.api.mu.Unlock()
		w.api.apply(chat(2)...)
		w.pass(time.Minute)
		require.Equal(t, "chat=2/2", w.workloads())
		require.Empty(t, w.problems())
	})
}

func TestTablesStayWhileTheAPIServerIsGone(t *testing.T) {
	for name, err := range map[string]error{"connection refused": connectionRefused(), "unreachable": fmt.Errorf("no route to host"), "timeout": &net.DNSError{IsTimeout: true}} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			inCluster(t, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}, chat(2), func(w *world) {
				before := w.Tables()
				w.causes()
				w.api.fail(err)
				w.pass(5 * time.Minute)
				tables := w.Tables()
				require.Len(t, tables.Problems, 14, "one per resource")
				require.Contains(t, w.problems(), "watch of pods: fails since 2000-01-01 00:00 UTC: ")
				require.Contains(t, w.problems(), "its last state is used; check that the API server can be reached")
				require.Equal(t, "the watch of deployments.apps fails", tables.Workloads[0].Stale)
				require.WithinDuration(t, time.Now().Add(-5*time.Minute), tables.Workloads[0].KnownAt, 15*time.Second)
				tables.Problems, tables.Workloads[0].Stale, tables.Workloads[0].KnownAt = nil, "", time.Time{}
				require.Equal(t, before, tables)
				require.Empty(t, w.hidden())
				require.Equal(t, 14, strings.Count(log.String(), "level=WARN"), "one line per resource, not per attempt:\n%s", log.String())
				told := len(strings.Fields(w.causes()))
				require.LessOrEqual(t, told, 6)
				w.api.fail(nil)
				w.pass(2 * time.Minute)
				require.Empty(t, w.problems())
				require.Equal(t, before, w.Tables())
				require.Equal(t, 14, strings.Count(log.String(), "is solved"))
			})
		})
	}
}

func TestWorkloadsAreNotTrustedLongerThanMaxAge(t *testing.T) {
	inCluster(t, Options{MaxAge: 10 * time.Minute}, chat(2), func(w *world) {
		w.causes()
		w.api.fail(connectionRefused())
		w.pass(9 * time.Minute)
		require.Equal(t, "chat=2/2", w.workloads())
		w.causes()
		w.pass(2 * time.Minute)
		require.Equal(t, "llm/chat", w.hidden(), "the variant stays, to be held")
		require.Len(t, w.Tables().Pools, 1)
		require.NotEmpty(t, w.causes(), "the end of trust is told")
		require.Contains(t, w.problems(), "too old to be used")
		require.NotContains(t, w.problems(), "was not found")
		w.api.fail(nil)
		w.pass(2 * time.Minute)
		require.Equal(t, "chat=2/2", w.workloads())
		require.Empty(t, w.problems())
	})
}

func TestOneKindThatFailsTooLongHidesItsWorkloadsOnly(t *testing.T) {
	set := strings.Replace(manifesttest.Deployment("set", 3, "image: vllm"), "kind: Deployment", "kind: StatefulSet", 1)
	manifests := append(chat(2), set, manifesttest.ScaledTo("set", "{kind: StatefulSet, name: set}"))
	inCluster(t, Options{MaxAge: time.Minute}, manifests, func(w *world) {
		w.api.deny("list statefulsets.apps", 500)
		w.api.deny("watch statefulsets.apps", 500)
		w.pass(5 * time.Minute)
		require.Equal(t, "llm/set", w.hidden())
		require.Contains(t, w.problems(), "watch of statefulsets.apps: fails since")
	})
}

func TestEmptyListAfterAnOutageIsUsed(t *testing.T) {
	inCluster(t, Options{}, chat(2), func(w *world) {
		w.api.fail(connectionRefused())
		w.api.remove("deployments.apps llm/chat")
		w.pass(time.Minute)
		require.Equal(t, "chat=2/2", w.workloads())
		w.api.fail(nil)
		w.pass(time.Minute)
		require.Empty(t, w.workloads())
		require.Contains(t, w.problems(), "was not found")
	})
}

func TestAPIServerThatNeverAnswersIsNoticed(t *testing.T) {
	inCluster(t, Options{}, chat(2), func(w *world) {
		w.api.hang(true)
		w.pass(time.Minute)
		require.Contains(t, w.problems(), "watch of pods: fails since 2000-01-01 00:00 UTC: there is no answer within 30s")
		require.Equal(t, "chat=2/2", w.workloads())
		w.api.hang(false)
		w.pass(time.Minute)
		require.Empty(t, w.problems())
	})
}

func TestRejectedCredentialsAreNamed(t *testing.T) {
	inCluster(t, Options{}, chat(2), func(w *world) {
		w.api.deny("list pods", 401)
		w.api.deny("watch pods", 401)
		w.pass(time.Minute)
		require.Contains(t, w.problems(), "watch of pods: the credentials are not accepted since")
		require.Equal(t, "chat=2/2", w.workloads())
	})
}

func TestRecoveryTakesHalfAMinuteAtMost(t *testing.T) {
	inCluster(t, Options{}, chat(2), func(w *world) {
		w.api.fail(connectionRefused())
		w.pass(time.Hour)
		w.api.fail(nil)
		w.pass(31 * time.Second)
		require.Empty(t, w.problems())
	})
}

func TestExpiredWatchListsAnewAndIsNoFailure(t *testing.T) {
	inCluster(t, Options{}, chat(2), func(w *world) {
		w.causes()
		w.api.deny("watch pods", 410)
		w.api.apply(chatPod(3))
		w.pass(10 * time.Second)
		w.api.deny("watch pods", 0)
		w.pass(time.Minute)
		require.Equal(t, "chat=2/3", w.workloads())
		require.Empty(t, w.problems())
		require.Equal(t, "pod", w.causes())
	})
}

func TestNothingIsNotifiedBeforeAllIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.api.apply(chat(2)...)
		w.api.fail(connectionRefused())
		w.run()
		w.pass(time.Hour)
		require.False(t, w.isSynced())
		require.Empty(t, w.variants())
		require.Contains(t, w.problems(), "watch of pods: fails since")
		w.api.deny("list deployments.apps", 500)
		w.api.deny("watch deployments.apps", 500)
		w.api.fail(nil)
		// Attempts are at most 30 s apart: all others are made by then, and the next one of
		// Deployments is made within firstReadLimit.
		w.pass(31 * time.Second)
		require.False(t, w.isSynced(), "the kind of a target may be readable yet")
		require.Empty(t, w.variants())
		require.Empty(t, w.causes())
		w.api.deny("list deployments.apps", 0)
		w.api.deny("watch deployments.apps", 0)
		w.pass(2 * time.Minute)
		require.True(t, w.isSynced())
		require.Equal(t, "chat=2/2", w.workloads())
		require.Equal(t, "watch", w.causes())
	})
}

func TestKindThatFailsIsNotWaitedForForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.api.deny("list statefulsets.apps", 500) // as if a conversion webhook were gone
		w.api.deny("watch statefulsets.apps", 500)
		w.api.deny("list nodes", 500)
		w.api.deny("watch nodes", 500)
		w.api.apply(append(chat(2), manifesttest.ScaledTo("set", "{kind: StatefulSet, name: set}"))...)
		w.run()
		w.pass(30 * time.Second)
		require.False(t, w.isSynced())
		w.pass(40 * time.Second)
		require.True(t, w.isSynced())
		require.Equal(t, "chat=2/2", w.workloads())
		require.Equal(t, "llm/chat llm/set", w.variants())
		require.Nil(t, w.Tables().Pools)
		require.Contains(t, w.problems(), "variants that need it are held")
		require.NotContains(t, w.problems(), "was not found")
	})
}

func TestPodsAreNotWaitedForForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.api.deny("list pods", 500)
		w.api.deny("watch pods", 500)
		w.api.apply(chat(2)...)
		w.run()
		w.pass(firstReadLimit - 10*time.Second)
		require.False(t, w.isSynced())
		w.pass(time.Minute)
		require.True(t, w.isSynced(), "current replicas are answered, and nothing is decided")
		require.Equal(t, "llm/chat", w.hidden())
	})
}

func TestRunEndsAtOnceThoughTheAPIServerIsGone(t *testing.T) {
	for name, err := range map[string]error{"reached": nil, "gone": connectionRefused()} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, Options{}, chat(2), func(w *world) {
				w.api.fail(err)
				w.pass(3 * time.Minute)
				w.cancel()
				synctest.Wait()
				require.Empty(t, w.watchStates())
			})
		})
	}
}
