package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/wva-project/wva/e2e/cluster"
	"github.com/wva-project/wva/e2e/cluster/play"
)

// The samples that --play applies, and the load that the first begins with. The model of the other
// goes to zero.
const (
	sample, sampleNamespace = "two-gpu-types", "llm"
	sampleModel             = "meta-llama/Llama-3.1-8B-Instruct"
	zeroModel               = "ibm-granite/granite-3.3-8b-instruct"
	zero, zeroNamespace     = "scale-to-zero", "llm-zero"
	firstLoad               = 5 // requests a second
)

// furnish installs Prometheus, wva and the sample, and tells each step.
func furnish(ctx context.Context, c *cluster.Cluster) (*play.Play, error) {
	var p *play.Play
	steps := []struct {
		name string
		run  func() error
	}{
		{"GPU nodes, Prometheus and engines", func() (err error) {
			if p, err = play.Start(ctx, c); err != nil {
				return err
			}
			return p.AwaitPrometheus(ctx)
		}},
		{"wva, by helm upgrade --install wva deploy/chart/wva", func() error { return p.Install(ctx) }},
		{"kubectl apply -f deploy/samples/" + sample, func() error { return p.Apply(ctx, sample, sampleNamespace) }},
		{"kubectl apply -f deploy/samples/" + zero, func() error { return p.Apply(ctx, zero, zeroNamespace) }},
		{"requests to the second model for a moment: its gateway reports it from the first one on", func() error {
			if err := p.SetLoad(ctx, zeroModel, 1); err != nil {
				return err
			}
			time.Sleep(5 * time.Second)
			return p.SetLoad(ctx, zeroModel, 0)
		}},
		{fmt.Sprintf("load: %d requests a second", firstLoad), func() error { return p.SetLoad(ctx, sampleModel, firstLoad) }},
	}
	for _, step := range steps {
		started := time.Now()
		if err := step.run(); err != nil {
			if p != nil {
				p.Close()
			}
			return nil, fmt.Errorf("%s: %w", step.name, err)
		}
		progress(step.name, started)
	}
	return p, nil
}

// progress tells a step that is done.
func progress(step string, started time.Time) {
	fmt.Printf("%6.1f s  %s\n", time.Since(started).Seconds(), step)
}

// playText is how to use the cluster of --play. Windows are seconds instead of minutes there.
const playText = `
wva scales %[3]s on L40S and H100, by deploy/samples/%[4]s,
and a model that goes to zero, by deploy/samples/scale-to-zero. Its windows are seconds instead of
minutes: e2e/cluster/play/values.yaml. The engines are simulated.

Watch the replicas:
  kubectl get deployments --all-namespaces --watch
Raise the load to 60 requests a second, later lower it to 0:
  kubectl patch configmap load --namespace play --type merge --patch '{"data": {"%[6]s": "60"}}'
Send requests to the model at zero:
  kubectl patch configmap load --namespace play --type merge --patch '{"data": {"granite-3.3-8b-instruct": "2"}}'
See the decisions and their reasons:
  kubectl describe scaledobject llama-8b-h100 --namespace %[5]s
  kubectl logs deployment/wva --namespace keda --follow
  kubectl port-forward service/wva 9091 --namespace keda
  bin/grpcurl -plaintext 127.0.0.1:9091 wva.v1alpha1.OperatorService/ListVariants   (after make bin/grpcurl)
Ask Prometheus:
  kubectl port-forward service/prometheus-operated 9099:9090 --namespace monitoring
  curl 'http://127.0.0.1:9099/api/v1/query?query=wva_desired_replicas'
`

// instructions returns the text for --play.
func instructions(kubeconfig string) (string, error) {
	var tools []string
	for _, name := range []string{"kubectl", "helm"} {
		path, err := cluster.Path(name)
		if err != nil {
			return "", err
		}
		tools = append(tools, name+"="+path)
	}
	text := "\nIn another terminal:\n  export KUBECONFIG=%[1]s\n  alias %[2]s\n" + playText
	base := sampleModel[strings.LastIndexByte(sampleModel, '/')+1:]
	return fmt.Sprintf(text, kubeconfig, strings.Join(tools, " "), sampleModel, sample, sampleNamespace, base), nil
}
