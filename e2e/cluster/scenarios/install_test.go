package scenarios

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wva-project/wva/e2e/cluster"
	"github.com/wva-project/wva/e2e/cluster/play"
)

// The sample of two GPU types.
const (
	sampleNamespace = "llm"
	sampleModel     = "meta-llama/Llama-3.1-8B-Instruct"
	cheap           = "llama-8b-l40s"
	expensive       = "llama-8b-h100"
)

// installation is a play whose steps are timed.
type installation struct {
	*testing.T
	*play.Play
	began time.Time
}

func newInstallation(t *testing.T) *installation {
	t.Helper()
	begun := time.Now()
	c := cluster.Start(t, play.Options())
	p, err := play.Start(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(p.Close)
	i := &installation{T: t, Play: p, began: begun}
	i.done("a cluster with KEDA")
	return i
}

// done logs the time of a step, and begins the next one.
func (i *installation) done(step string) {
	i.Helper()
	i.Logf("%5.1f s  %s", time.Since(i.began).Seconds(), step)
	i.began = time.Now()
}

// replicas returns the number of replicas in a Deployment's spec.
func (i *installation) replicas(name string) int {
	seen, err := i.Client.AppsV1().Deployments(sampleNamespace).Get(i.Context(), name, metav1.GetOptions{})
	require.NoError(i, err)
	return int(*seen.Spec.Replicas)
}

// number is that of KEDA's metrics API, as the HPA reads it.
func (i *installation) number(name string) (string, error) {
	return i.Kubectl(i.Context(), nil, "get", "--raw", "/apis/external.metrics.k8s.io/v1beta1/namespaces/"+sampleNamespace+
		"/s0-wva-desired-replicas?labelSelector=scaledobject.keda.sh/name%3D"+name)
}

func (i *installation) eventually(condition string, holds func() bool) {
	i.Helper()
	eventually(i, deadline, condition, holds)
	i.done(condition)
}

func TestInstalledByItsChartItScalesTwoVariantsAndBackToZero(t *testing.T) {
	i := newInstallation(t)
	ctx := t.Context()
	require.NoError(t, i.AwaitPrometheus(ctx))
	i.done("Prometheus")
	require.NoError(t, i.Install(ctx))
	i.done("the chart: both servers are ready")
	require.NoError(t, i.Apply(ctx, "two-gpu-types", sampleNamespace))
	i.eventually("the sample has a number through KEDA", func() bool {
		text, err := i.number(cheap)
		return err == nil && strings.Contains(text, `"value":"1"`)
	})
	require.NoError(t, i.SetLoad(ctx, sampleModel, 120))
	i.eventually("load: both variants run", func() bool { return i.replicas(cheap) > 1 && i.replicas(expensive) > 0 })
	t.Log(i.replicas(cheap), i.replicas(expensive))
	require.NoError(t, i.SetLoad(ctx, sampleModel, 0))
	i.eventually("no load: the expensive variant is at zero", func() bool { return i.replicas(cheap) == 1 && i.replicas(expensive) == 0 })
	_ = corev1.EventTypeNormal
}
