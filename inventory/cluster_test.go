package inventory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

// clusterWorld is a cluster that is watched in a bubble.
type clusterWorld struct {
	*testing.T
	*Cluster
	api    *apiServer
	cancel context.CancelFunc

	mu   sync.Mutex
	told []string
}

// inCluster runs a story with an API server that holds the manifests at first, and a cluster that is being watched.
func inCluster(t *testing.T, options ClusterOptions, manifests []string, story func(w *clusterWorld)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newClusterWorld(t, options)
		w.api.apply(manifests...)
		w.run()
		w.settle()
		story(w)
	})
}

func newClusterWorld(t *testing.T, options ClusterOptions) *clusterWorld {
	w := &clusterWorld{T: t, api: newAPIServer(t)}
	options.Config = &rest.Config{Host: "http://api.test", Transport: w.api}
	cluster, err := OpenCluster(options)
	require.NoError(t, err)
	w.Cluster = cluster
	return w
}

func (w *clusterWorld) run() {
	ctx, cancel := context.WithCancel(w.Context())
	w.cancel = cancel
	ended := make(chan error, 1)
	go func() {
		ended <- w.Cluster.Run(ctx, func(cause string) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.told = append(w.told, cause)
		})
	}()
	w.Cleanup(func() {
		cancel()
		require.NoError(w, <-ended)
	})
}

// settle waits until all that was told to the API server is in the tables.
func (w *clusterWorld) settle() { w.pass(time.Second) }

func (w *clusterWorld) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (w *clusterWorld) isSynced() bool { return w.Cluster.isSynced() }

// causes returns what changed was told since the last time.
func (w *clusterWorld) causes() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	told := strings.Join(w.told, " ")
	w.told = nil
	return told
}

// workloads returns the workloads as "name=replicas/pods".
func (w *clusterWorld) workloads() string {
	var rows []string
	for _, row := range w.Tables().Workloads {
		rows = append(rows, fmt.Sprintf("%s=%d/%d", row.ID.Name, row.Replicas, len(row.Pods)))
	}
	return strings.Join(rows, " ")
}

func (w *clusterWorld) variants() string {
	var rows []string
	for _, row := range w.Tables().Variants {
		rows = append(rows, row.ID.String())
	}
	return strings.Join(rows, " ")
}

// problems returns the problems, a line each.
func (w *clusterWorld) problems() string {
	var rows []string
	for _, row := range w.Tables().Problems {
		rows = append(rows, row.String())
	}
	return strings.Join(rows, "\n")
}

func chatPod(n int) string {
	return pod{name: fmt.Sprint("chat-5f-", n), owner: "ReplicaSet chat-5f", labels: "pod-template-hash: 5f", readyAt: "00:02:00"}.String()
}

func chat(replicas int) []string {
	return []string{scaled("chat"), deployment("chat", replicas, "image: vllm"), chatPod(1), chatPod(2), l4("node-a")}
}

func TestListedObjectsMakeTables(t *testing.T) {
	for name, oldServer := range map[string]bool{"initial events": false, "a list, then a watch": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newClusterWorld(t, ClusterOptions{})
				w.api.noEvents = oldServer
				w.api.apply(chat(2)...)
				require.Empty(t, w.variants())
				require.False(t, w.isSynced())
				w.run()
				w.settle()
				require.True(t, w.isSynced())
				require.Equal(t, "llm/chat", w.variants())
				require.Equal(t, "chat=2/2", w.workloads())
				require.Len(t, w.Tables().Pools, 1)
				require.Empty(t, w.problems())
				require.Equal(t, "watch", w.causes(), "told once, at the end")
			})
		})
	}
}

func TestSamplesGiveTheSameTablesAsTheirDirectory(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(samples, "*.yaml"))
	require.NoError(t, err)
	var manifests []string
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		manifests = append(manifests, string(data))
	}
	directory, err := OpenDirectory(DirectoryOptions{Path: samples})
	require.NoError(t, err)
	inCluster(t, ClusterOptions{}, manifests, func(w *clusterWorld) {
		require.Equal(t, asJSON(t, directory.Tables()), asJSON(t, w.Tables()))
	})
}

func asJSON(t *testing.T, tables Tables) string {
	t.Helper()
	data, err := json.MarshalIndent(tables, "", " ")
	require.NoError(t, err)
	return string(data)
}

func TestChangeIsToldOnceWithItsKind(t *testing.T) {
	inCluster(t, ClusterOptions{}, chat(2), func(w *clusterWorld) {
		require.Equal(t, "watch", w.causes())
		w.api.apply(deployment("chat", 5, "image: vllm"))
		w.settle()
		require.Equal(t, "chat=5/2", w.workloads())
		require.Equal(t, "workload", w.causes())
		w.api.apply(chatPod(3))
		w.settle()
		require.Equal(t, "chat=5/3", w.workloads())
		require.Equal(t, "pod", w.causes())
		w.api.apply(l4("node-b"))
		w.settle()
		require.Equal(t, "node", w.causes())
		w.api.apply(scaled("chat", `variantCost: "7"`), chatPod(4))
		w.settle()
		require.InDelta(t, 7, w.Tables().Variants[0].Cost, 0)
		require.Equal(t, "scaledobject", w.causes())
	})
}

func TestChangeOfWhatIsNotReadIsNotTold(t *testing.T) {
	inCluster(t, ClusterOptions{}, chat(2), func(w *clusterWorld) {
		w.causes()
		w.api.apply(deployment("chat", 2, "image: another"), deployment("other", 2, "image: vllm"), chatPod(1))
		w.settle()
		require.Empty(t, w.causes())
	})
}

func TestBurstMakesOneTable(t *testing.T) {
	inCluster(t, ClusterOptions{}, chat(2), func(w *clusterWorld) {
		w.causes()
		before := w.Tables()
		for i := range 500 {
			w.api.apply(scaled(fmt.Sprint("v", i)), deployment(fmt.Sprint("v", i), 1, "image: vllm"))
		}
		require.Equal(t, before, w.Tables())
		w.settle()
		require.Len(t, w.Tables().Workloads, 501)
		require.Equal(t, "scaledobject", w.causes())
	})
}

func TestDeletedObjectsVanish(t *testing.T) {
	inCluster(t, ClusterOptions{}, chat(2), func(w *clusterWorld) {
		w.api.remove("pods llm/chat-5f-1")
		w.settle()
		require.Equal(t, "chat=2/1", w.workloads())
		w.api.remove("deployments.apps llm/chat")
		w.settle()
		require.Empty(t, w.workloads())
		require.Contains(t, w.problems(), "its scale target Deployment llm/chat (apps/v1) was not found")
		w.api.remove("scaledobjects.keda.sh llm/chat")
		w.settle()
		require.Empty(t, w.variants())
		require.Empty(t, w.problems())
	})
}

func TestObjectDeletedDuringAnOutageVanishesAfterIt(t *testing.T) {
	inCluster(t, ClusterOptions{}, chat(2), func(w *clusterWorld) {
		w.api.fail(errors.New("no route to host"))
		w.api.remove("pods llm/chat-5f-1")
		w.pass(time.Minute)
		require.Equal(t, "chat=2/2", w.workloads())
		w.api.fail(nil)
		w.pass(time.Minute)
		require.Equal(t, "chat=2/1", w.workloads())
	})
}

func TestKindIsWatchedWhileAVariantNamesIt(t *testing.T) {
	inCluster(t, ClusterOptions{}, chat(2), func(w *clusterWorld) {
		require.Zero(t, w.api.asked("watch statefulsets.apps"))
		w.api.apply(strings.Replace(deployment("set", 3, "image: vllm"), "kind: Deployment", "kind: StatefulSet", 1),
			scaledTo("set", "{kind: StatefulSet, name: set}"))
		w.settle()
		require.Equal(t, "chat=2/2 set=3/0", w.workloads())
		require.Equal(t, 1, w.api.asked("watch statefulsets.apps"))
		w.api.remove("scaledobjects.keda.sh llm/set")
		w.settle()
		require.Equal(t, "chat=2/2", w.workloads())
		for _, state := range w.states() {
			require.NotEqual(t, "statefulsets.apps", state.id.name())
		}
	})
}

func TestRunMayBeCalledOnce(t *testing.T) {
	inCluster(t, ClusterOptions{}, nil, func(w *clusterWorld) {
		require.ErrorContains(t, w.Cluster.Run(t.Context(), nil), "run before")
	})
}

func TestOptionsAreRefusedAllAtOnce(t *testing.T) {
	_, err := OpenCluster(ClusterOptions{Namespaces: []string{"a", "B"}, ExcludedNamespaces: []string{"a"}, MaxAge: -1})
	for _, fault := range []string{"no configuration", `"B" is not the name`, "namespace a is both", "is negative"} {
		require.ErrorContains(t, err, fault)
	}
}
