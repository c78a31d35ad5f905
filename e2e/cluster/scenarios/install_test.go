package scenarios

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
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

// The sample of a model at zero, with a gateway.
const (
	zeroNamespace = "llm-zero"
	zeroModel     = "ibm-granite/granite-3.3-8b-instruct"
	zero          = "granite-8b-l40s"
)

// installation is a play whose steps are timed.
type installation struct {
	*testing.T
	*play.Play
	began time.Time
}

func newInstallation(t *testing.T) *installation {
	t.Helper()
	return newInstallationIn(t, cluster.Start(t, play.Options()))
}

// newInstallationIn is newInstallation in a cluster that has play.Options.
func newInstallationIn(t *testing.T, c *cluster.Cluster) *installation {
	t.Helper()
	began := time.Now()
	p, err := play.Start(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(p.Close)
	i := &installation{T: t, Play: p, began: began}
	i.done("nodes and Prometheus")
	return i
}

// done logs the time of a step, and begins the next one.
func (i *installation) done(step string) {
	i.Helper()
	i.Logf("%5.1f s  %s", time.Since(i.began).Seconds(), step)
	i.began = time.Now()
}

// namespaceOf returns the namespace of a variant.
func namespaceOf(name string) string {
	if name == zero {
		return zeroNamespace
	}
	return sampleNamespace
}

// replicas returns the number of replicas in a Deployment's spec.
func (i *installation) replicas(name string) int {
	seen, err := i.Client.AppsV1().Deployments(namespaceOf(name)).Get(i.Context(), name, metav1.GetOptions{})
	require.NoError(i, err)
	return int(*seen.Spec.Replicas)
}

// hasNumber reports whether the HPA would read a number from KEDA's metrics API.
func (i *installation) hasNumber(name string, replicas int) bool {
	text, err := i.Kubectl(i.Context(), nil, "get", "--raw", "/apis/external.metrics.k8s.io/v1beta1/namespaces/"+sampleNamespace+
		"/s0-wva-desired-replicas?labelSelector=scaledobject.keda.sh/name%3D"+name)
	return err == nil && strings.Contains(text, fmt.Sprintf(`"value":"%d"`, replicas))
}

func (i *installation) eventually(condition string, holds func() bool) {
	i.Helper()
	eventually(i, patienceForSteps, condition, holds)
	i.done(condition)
}

// patienceForSteps bounds each step: a rollout, or a scale-down after all windows.
const patienceForSteps = 3 * time.Minute

// steadily runs an action, and requires that no replica of the sample is taken away meanwhile.
func (i *installation) steadily(step string, action func()) {
	i.Helper()
	cheapBefore, expensiveBefore := i.replicas(cheap), i.replicas(expensive)
	ctx, cancel := context.WithCancel(i.Context())
	lowest := make(chan [2]int)
	go func() {
		low := [2]int{cheapBefore, expensiveBefore}
		for ctx.Err() == nil {
			for at, name := range []string{cheap, expensive} {
				seen, err := i.Client.AppsV1().Deployments(sampleNamespace).Get(ctx, name, metav1.GetOptions{})
				if err == nil {
					low[at] = min(low[at], int(*seen.Spec.Replicas))
				}
			}
			time.Sleep(tick)
		}
		lowest <- low
	}()
	defer func() { // also if the action fails
		cancel()
		low := <-lowest
		require.Equal(i, cheapBefore, low[0], "%s: no replica on L40S is taken away", step)
		require.Positive(i, low[1], "%s: H100 keeps a replica", step)
		i.done(step)
	}()
	action()
}

func TestInstalledByItsChartItScalesTwoVariantsAndBackToZero(t *testing.T) {
	i := newInstallation(t)
	ctx := t.Context()
	require.NoError(t, i.AwaitPrometheus(ctx))
	i.done("Prometheus finds its pods through the API server")
	require.NoError(t, i.Install(ctx))
	i.done("chart: both servers are ready")
	require.NoError(t, i.Apply(ctx, "two-gpu-types", sampleNamespace))
	// without an answer KEDA 2.21 may take a variant for inactive: the outage is shorter than this
	i.change(expensive, `{"spec": {"cooldownPeriod": 300}}`)
	i.eventually("sample: a number through KEDA", func() bool { return i.hasNumber(cheap, 1) })
	require.NoError(t, i.Apply(ctx, "scale-to-zero", zeroNamespace))
	require.NoError(t, i.SetLoad(ctx, sampleModel, 100))
	// from its first request on, its gateway reports the model
	require.NoError(t, i.SetLoad(ctx, zeroModel, 1))
	i.eventually("load: two variants", func() bool { return i.replicas(cheap) == 8 && i.replicas(expensive) > 0 })

	i.steadily("upgrade to mTLS under load", func() { i.upgradeToMTLS() })
	i.steadily("rotation of all certificates under load", func() { i.rotateCertificates() })
	i.reload()
	require.NoError(t, i.SetLoad(ctx, zeroModel, 0))
	i.eventually("a model without load: zero", func() bool { return i.replicas(zero) == 0 })
	require.NoError(t, i.SetLoad(ctx, zeroModel, 2))
	i.eventually("its first request starts it", func() bool { return i.replicas(zero) > 0 })
	i.steadily("uninstalled for 10 s: the workloads stay", func() {
		_, err := i.Helm(ctx, "uninstall", "wva", "--namespace", "keda", "--wait")
		require.NoError(t, err)
		require.Empty(t, i.pods(), "nothing of it stays") //nolint:contextcheck // it is the test's
		time.Sleep(10 * time.Second)
		require.NoError(t, i.Install(ctx, "--set", "tls.mode=generate"))
	})

	i.change(expensive, `{"spec": {"cooldownPeriod": 5}}`)
	i.change(cheap, `{"spec": {"minReplicaCount": 0, "fallback": null}}`)
	require.NoError(t, i.SetLoad(ctx, sampleModel, 0))
	require.NoError(t, i.SetLoad(ctx, zeroModel, 0))
	i.eventually("no load: zero with a gateway, else the last replica on the cheaper variant", func() bool {
		return i.replicas(zero) == 0 && i.replicas(expensive) == 0 && i.replicas(cheap) == 1
	})
}

// upgradeToMTLS makes the servers demand certificates, and the sample name those of KEDA.
func (i *installation) upgradeToMTLS() {
	i.Helper()
	require.NoError(i, i.Install(i.Context(), "--set", "tls.mode=generate"))
	connection, err := grpc.NewClient("wva.keda.svc:9090", grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(i, err)
	defer connection.Close()
	_, err = externalscaler.NewExternalScalerClient(connection).IsActive(i.Context(), &externalscaler.ScaledObjectRef{Namespace: sampleNamespace, Name: cheap})
	require.Equal(i, codes.Unavailable, status.Code(err), "a client without a certificate: %v", err)
	for _, name := range []string{cheap, expensive, zero} {
		object, err := i.Kubectl(i.Context(), nil, "get", "scaledobject", name, "--namespace", namespaceOf(name), "--output", "jsonpath={.spec.triggers[0].metadata}")
		require.NoError(i, err)
		i.change(name, fmt.Sprintf(`{"spec": {"triggers": [{"type": "external-push", "metadata": %s,
			"authenticationRef": {"kind": "ClusterTriggerAuthentication", "name": "wva"}}]}}`, object))
	}
	eventually(i, patienceForSteps, "a number over mTLS", func() bool { return i.hasNumber(cheap, 8) })
}

// rotateCertificates makes a new authority, and waits until the servers show its certificates to
// new clients, while KEDA reads numbers.
func (i *installation) rotateCertificates() {
	i.Helper()
	before := i.shown()
	require.NoError(i, i.Install(i.Context(), "--set", "tls.mode=generate,tls.generate.rotation=one"))
	eventually(i, patienceForSteps, "both servers show the new certificate", func() bool {
		now := i.shown()
		for pod, certificate := range before {
			if now[pod] == certificate {
				return false
			}
		}
		return len(now) == len(before)
	})
	eventually(i, patienceForSteps, "a number after the rotation", func() bool { return i.hasNumber(cheap, 8) })
}

// shown returns the serial number of the certificate that each pod of wva shows.
func (i *installation) shown() map[string]string {
	i.Helper()
	found := map[string]string{}
	for _, pod := range i.pods() {
		//nolint:gosec // the certificate is read, not trusted
		connection, err := tls.Dial("tcp", net.JoinHostPort(pod.Status.PodIP, "9090"), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
		if err != nil {
			i.Log(err)
			continue
		}
		found[pod.Name] = connection.ConnectionState().PeerCertificates[0].SerialNumber.String()
		_ = connection.Close() // nothing is written
	}
	return found
}

// reload changes a setting that the servers read without a restart.
func (i *installation) reload() {
	i.Helper()
	before := i.pods()
	require.NoError(i, i.Install(i.Context(), "--set", "tls.mode=generate,tls.generate.rotation=one", "--set", "config.log.level=debug"))
	for _, pod := range before {
		eventually(i, patience, pod.Name+" reads the new configuration", func() bool {
			log, err := i.Kubectl(i.Context(), nil, "logs", pod.Name, "--namespace", "keda")
			return err == nil && strings.Contains(log, "configuration reloaded")
		})
	}
	i.done("a setting without a restart")
}

// change patches a ScaledObject of the sample.
func (i *installation) change(name, patch string) {
	i.Helper()
	_, err := i.Kubectl(i.Context(), nil, "patch", "scaledobject", name, "--namespace", namespaceOf(name), "--type", "merge", "--patch", patch)
	require.NoError(i, err)
}

// pods returns the pods of wva that are not about to end.
func (i *installation) pods() []corev1.Pod {
	i.Helper()
	list, err := i.Client.CoreV1().Pods("keda").List(i.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=wva"})
	require.NoError(i, err)
	return slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil })
}
