package cluster_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/wva-project/wva/e2e/cluster"
)

func TestMain(m *testing.M) {
	cluster.Enter(cluster.Options{KEDA: true, LeaderWorkerSetCRD: true})
	goleak.VerifyTestMain(m)
}
