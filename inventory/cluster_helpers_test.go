package inventory

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
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

// inCluster runs a scenario with an API server that has the manifests at first, and a cluster that
// is being watched.
func inCluster(t *testing.T, options ClusterOptions, manifests []string, scenario func(w *clusterWorld)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newClusterWorld(t, options)
		w.api.apply(manifests...)
		w.run()
		w.settle()
		scenario(w)
	})
}

func newClusterWorld(t *testing.T, options ClusterOptions) *clusterWorld {
	// one of them waits for the time of the last error, which is not the bubble's
	utilruntime.ErrorHandlers = nil
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

// settle waits until all changes at the API server are in the tables.
func (w *clusterWorld) settle() { w.pass(time.Second) }

func (w *clusterWorld) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (w *clusterWorld) isSynced() bool { return w.Cluster.isSynced() }

// causes returns the causes of the calls of changed since the last time.
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

// hidden returns the variants whose workloads cannot be read.
func (w *clusterWorld) hidden() string {
	var rows []string
	for _, row := range w.Tables().Variants {
		if row.Hidden != "" {
			rows = append(rows, row.ID.String())
		}
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
