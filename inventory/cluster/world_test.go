package cluster

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"

	"github.com/wva-project/wva/inventory"
	"github.com/wva-project/wva/inventory/manifesttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a cluster that is watched in a bubble.
type world struct {
	*testing.T
	*Cluster
	api    *apiServer
	cancel context.CancelFunc

	mu   sync.Mutex
	told []string
}

// inCluster runs a scenario with an API server that has the manifests at first, and a cluster that
// is being watched.
func inCluster(t *testing.T, options Options, manifests []string, scenario func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, options)
		w.api.apply(manifests...)
		w.run()
		w.settle()
		scenario(w)
	})
}

func newWorld(t *testing.T, options Options) *world {
	// one of them waits for the time of the last error, which is not the bubble's
	utilruntime.ErrorHandlers = nil
	w := &world{T: t, api: newAPIServer(t)}
	options.Config = &rest.Config{Host: "http://api.test", Transport: w.api}
	cluster, err := Open(options)
	require.NoError(t, err)
	w.Cluster = cluster
	return w
}

func (w *world) run() {
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

// settle waits until all changes at the API server are in the tables.
func (w *world) settle() { w.pass(time.Second) }

func (w *world) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (w *world) isSynced() bool { return w.Cluster.isSynced() }

// causes returns the causes of the calls of changed since the last time.
func (w *world) causes() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	told := strings.Join(w.told, " ")
	w.told = nil
	return told
}

// workloads returns the workloads as "name=replicas/pods".
func (w *world) workloads() string {
	var rows []string
	for _, row := range w.Tables().Workloads {
		rows = append(rows, fmt.Sprintf("%s=%d/%d", row.ID.Name, row.Replicas, len(row.Pods)))
	}
	return strings.Join(rows, " ")
}

func (w *world) variants() string {
	var rows []string
	for _, row := range w.Tables().Variants {
		rows = append(rows, row.ID.String())
	}
	return strings.Join(rows, " ")
}

// hidden returns the variants whose workloads cannot be read.
func (w *world) hidden() string {
	var rows []string
	for _, row := range w.Tables().Variants {
		if row.Hidden != "" {
			rows = append(rows, row.ID.String())
		}
	}
	return strings.Join(rows, " ")
}

// problems returns the problems, a line each.
func (w *world) problems() string {
	var rows []string
	for _, row := range w.Tables().Problems {
		rows = append(rows, row.String())
	}
	return strings.Join(rows, "\n")
}

// objectsOf reads manifests without a cluster.
func objectsOf(t *testing.T, texts ...string) inventory.Objects {
	t.Helper()
	var objects inventory.Objects
	for _, u := range manifesttest.Decode(texts...) {
		object, err := inventory.Decode(u)
		require.NoError(t, err)
		objects.Append(object)
	}
	return objects
}
