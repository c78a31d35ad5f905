package play

import (
	"context"
	_ "embed" // the manifests and values
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/wva-project/wva/e2e/cluster"
)

// Options is the cluster's part of a play.
func Options() cluster.Options {
	return cluster.Options{KEDA: true, LeaderWorkerSetCRD: true, WVA: true, Prometheus: true, Helm: true}
}

//go:embed monitoring.yaml
var monitoring []byte

// Namespace has the ConfigMap load.
const Namespace = "play"

// Play is a furnished cluster.
type Play struct {
	*cluster.Cluster
	engines *engines
}

// Start adds nodes and Prometheus, and starts the engines. The cluster has to have Options.
func Start(ctx context.Context, c *cluster.Cluster) (*Play, error) {
	for _, node := range nodes() {
		if err := c.AddNode(ctx, node); err != nil {
			return nil, err
		}
	}
	if err := c.Apply(ctx, monitoring); err != nil {
		return nil, err
	}
	return &Play{Cluster: c, engines: startEngines(ctx, c.Client)}, nil
}

func nodes() []cluster.Node {
	gpus := []corev1.Taint{{Key: "nvidia.com/gpu", Value: "present", Effect: corev1.TaintEffectNoSchedule}}
	return []cluster.Node{
		{Name: "h100-0", Product: "NVIDIA-H100-80GB-HBM3", GPUs: 8, Taints: gpus},
		{Name: "l40s-0", Product: "NVIDIA-L40S", GPUs: 8, Taints: gpus},
		{Name: "l40s-1", Product: "NVIDIA-L40S", GPUs: 8, Taints: gpus},
	}
}

// Close ends the engines. The cluster stays.
func (p *Play) Close() { p.engines.close() }

// Repository is the root of the repository, from which the chart and the samples are taken.
func Repository() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..", "..")
}

// Values is the path of values for the chart that shorten windows to seconds.
func Values() string { return filepath.Join(Repository(), "e2e", "cluster", "play", "values.yaml") }

// AwaitPrometheus returns once Prometheus is ready.
func (p *Play) AwaitPrometheus(ctx context.Context) error {
	_, err := p.Kubectl(ctx, nil, "rollout", "status", "deployment/prometheus", "--namespace", "monitoring", "--timeout", "60s")
	return err
}

// Install installs or upgrades the chart, with more arguments of helm, and waits until its pods are
// ready.
func (p *Play) Install(ctx context.Context, arguments ...string) error {
	_, err := p.Helm(ctx, slices.Concat([]string{
		"upgrade", "--install", "wva", filepath.Join(Repository(), "deploy", "chart", "wva"), "--namespace", "keda",
		"--values", Values(), "--wait", "--timeout", "90s",
	}, arguments)...)
	return err
}

// Apply applies a directory of samples, and shortens KEDA's cool-down of its ScaledObjects from
// minutes to seconds.
func (p *Play) Apply(ctx context.Context, sample, namespace string) error {
	if _, err := p.Kubectl(ctx, nil, "apply", "-f", filepath.Join(Repository(), "deploy", "samples", sample)); err != nil {
		return err
	}
	names, err := p.Kubectl(ctx, nil, "get", "scaledobjects", "--namespace", namespace, "--output", "name")
	if err != nil {
		return err
	}
	for name := range strings.FieldsSeq(names) {
		_, err := p.Kubectl(ctx, nil, "patch", name, "--namespace", namespace, "--type", "merge", "--patch",
			`{"spec": {"cooldownPeriod": 5, "pollingInterval": 2}}`)
		if err != nil {
			return err
		}
	}
	return nil
}

// SetLoad sets the rate of a model, in requests a second.
func (p *Play) SetLoad(ctx context.Context, model string, perSecond float64) error {
	patch := fmt.Sprintf(`{"data": {%q: %q}}`, loadKey(model), strconv.FormatFloat(perSecond, 'g', -1, 64))
	_, err := p.Kubectl(ctx, nil, "patch", "configmap", loadName, "--namespace", Namespace, "--type", "merge", "--patch", patch)
	return err
}

// loadName is the ConfigMap with the loads.
const loadName = "load"

// loadKey is the key of a model: its name without the organization, since a key has no slash.
func loadKey(model string) string { return path.Base(model) }

// loads reads the rates. A value that is no rate counts as 0.
func loads(data map[string]string) map[string]float64 {
	rates := map[string]float64{}
	for key := range maps.Keys(data) {
		if rate, err := strconv.ParseFloat(strings.TrimSpace(data[key]), 64); err == nil && rate >= 0 {
			rates[key] = min(rate, maxLoad)
		}
	}
	return rates
}

// maxLoad is the highest rate that the simulation is asked to follow in wall time.
const maxLoad = 1000
