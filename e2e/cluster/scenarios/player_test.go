package scenarios

import (
	"context"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/wva-project/wva/demo/promstore"
	"github.com/wva-project/wva/e2e/cluster"
)

// The capacity of a simulated engine.
const (
	// capacity is the rate that one replica can serve without a queue, in requests a second.
	capacity = 2.5
	// inFlight is the number of running requests per request a second: the duration of one, in
	// seconds.
	inFlight = 4
	// Lengths of each request, tokens.
	promptTokens, outputTokens = 1000, 150
	// itl is the time between two tokens, in seconds.
	itl = 0.02
)

// player is a Prometheus that has scraped, every second, the engines of all pods that are ready,
// and a gateway. The load of a model is spread evenly over its ready pods; without one it queues at
// the gateway.
type player struct {
	*testing.T
	server  *httptest.Server
	store   *promstore.Store
	cluster *cluster.Cluster

	mu     sync.Mutex
	loads  map[string]float64 // requests a second, by model
	queues map[string]float64 // requests that wait at the gateway, by model
	totals map[string]*totals // by pod
	silent map[string]bool    // models about which the gateway reports nothing

	sampled chan time.Time // gets the time of the next scrape; nil if nobody waits
}

type totals struct{ requests, waiting float64 }

// modelLabel is the label of pods that names the model.
const modelLabel = "model"

func newPlayer(t *testing.T, c *cluster.Cluster) *player {
	store, err := promstore.New()
	require.NoError(t, err)
	p := &player{T: t, store: store, cluster: c, loads: map[string]float64{}, queues: map[string]float64{}, totals: map[string]*totals{}, silent: map[string]bool{}}
	p.server = httptest.NewServer(store.Handler())
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		p.server.Close()
		require.NoError(t, store.Close())
	})
	return p
}

// ask sets the rate of a model, in requests a second.
func (p *player) ask(model string, perSecond float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.loads[model] = perSecond
	if _, known := p.queues[model]; !known {
		p.queues[model] = 0
	}
}

// withoutGateway takes the metrics of the gateway about a model away.
func (p *player) withoutGateway(model string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silent[model] = true
}

func (p *player) run(ctx context.Context) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case now := <-ticker.C:
			p.scrape(ctx, now)
		case <-ctx.Done():
			return
		}
	}
}

func (p *player) scrape(ctx context.Context, now time.Time) {
	pods, err := p.cluster.Client.CoreV1().Pods("").List(ctx, metav1.ListOptions{LabelSelector: labels.Set{"engine": "played"}.String()})
	if err != nil {
		return // the cluster is going down, or is not there for a moment
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sampled != nil {
		p.sampled <- now
		p.sampled = nil
	}
	ready := map[string][]corev1.Pod{}
	seen := map[string]bool{}
	for _, pod := range pods.Items {
		if isReady(pod) {
			model := pod.Annotations[modelLabel]
			ready[model] = append(ready[model], pod)
			seen[pod.Name] = true
		}
	}
	for model, perSecond := range p.loads {
		p.gateway(now, model, perSecond, len(ready[model]) > 0)
		for _, pod := range ready[model] {
			p.engine(now, pod, model, perSecond/float64(len(ready[model])))
		}
	}
	for name := range p.totals {
		if !seen[name] {
			_ = p.store.Gone(name, now)
			delete(p.totals, name)
		}
	}
}

func isReady(pod corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil
		}
	}
	return false
}

// engine scrapes one pod.
func (p *player) engine(now time.Time, pod corev1.Pod, model string, perSecond float64) {
	t := p.totals[pod.Name]
	if t == nil {
		t = &totals{}
		p.totals[pod.Name] = t
	}
	served := min(t.waiting+perSecond, capacity)
	t.waiting += perSecond - served
	t.requests += served
	own := promstore.Labels("namespace", pod.Namespace, "pod", pod.Name, "job", "vllm", "model_name", model, "engine", "0")
	config := promstore.Labels("namespace", pod.Namespace, "pod", pod.Name, "job", "vllm", "engine", "0",
		"block_size", "16", "num_gpu_blocks", "10000", "cache_dtype", "auto")
	samples := []promstore.Sample{
		{Name: "vllm:num_requests_running", Labels: own, Value: served * inFlight},
		{Name: "vllm:num_requests_waiting", Labels: own, Value: t.waiting},
		{Name: "vllm:kv_cache_usage_perc", Labels: own, Value: 0.75 * served / capacity},
		{Name: "vllm:cache_config_info", Labels: config, Value: 1},
		{Name: "vllm:prompt_tokens_total", Labels: own, Value: t.requests * promptTokens},
		{Name: "vllm:request_prompt_tokens_sum", Labels: own, Value: t.requests * promptTokens},
		{Name: "vllm:request_prompt_tokens_count", Labels: own, Value: t.requests},
		{Name: "vllm:request_generation_tokens_sum", Labels: own, Value: t.requests * outputTokens},
		{Name: "vllm:request_generation_tokens_count", Labels: own, Value: t.requests},
		{Name: "vllm:inter_token_latency_seconds_sum", Labels: own, Value: t.requests * outputTokens * itl},
		{Name: "vllm:inter_token_latency_seconds_count", Labels: own, Value: t.requests * outputTokens},
		{Name: "vllm:time_to_first_token_seconds_sum", Labels: own, Value: t.requests * 0.3},
		{Name: "vllm:time_to_first_token_seconds_count", Labels: own, Value: t.requests},
	}
	for _, bound := range []string{"0.5", "+Inf"} {
		bucket := promstore.Labels("namespace", pod.Namespace, "pod", pod.Name, "job", "vllm", "model_name", model, "engine", "0", "le", bound)
		samples = append(samples, promstore.Sample{Name: "vllm:time_to_first_token_seconds_bucket", Labels: bucket, Value: t.requests})
	}
	for _, reason := range []string{"stop", "length", "abort"} {
		finished := promstore.Labels("namespace", pod.Namespace, "pod", pod.Name, "job", "vllm", "model_name", model, "engine", "0", "finished_reason", reason)
		count := 0.0
		if reason == "stop" {
			count = t.requests
		}
		samples = append(samples, promstore.Sample{Name: "vllm:request_success_total", Labels: finished, Value: count})
	}
	if err := p.store.Scrape(pod.Name, now, samples); err != nil {
		p.Error(err)
	}
}

// gateway scrapes the gateway's metrics of a model.
func (p *player) gateway(now time.Time, model string, perSecond float64, served bool) {
	if served {
		p.queues[model] = 0
	} else {
		p.queues[model] += perSecond
	}
	if p.silent[model] {
		return
	}
	own := promstore.Labels("namespace", namespace, "pod", "epp-0", "model_name", model, "target_model_name", model)
	err := p.store.Append(now, []promstore.Sample{
		{Name: "inference_extension_flow_control_queue_size", Labels: own, Value: p.queues[model]},
	})
	if err != nil {
		p.Error(err)
	}
}

// askAt is ask, and returns the time of its first sample.
func (p *player) askAt(model string, perSecond float64) <-chan time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.loads[model] = perSecond
	p.sampled = make(chan time.Time, 1)
	return p.sampled
}
