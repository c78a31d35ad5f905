package scenarios

import (
	"context"
	"math"
	"net"
	"net/http"
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

const (
	scrapeInterval = time.Second
	// mostLate is how much of a gap is made up for.
	mostLate = 10 * time.Second
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

// player is a Prometheus that has scraped, every second, the engines of all pods of a namespace
// that are ready, and a gateway. The load of a model is spread evenly over its ready pods; without
// one it queues at the gateway. On a machine that is too busy for a scrape, the next one makes up
// for it, so that gaps between the samples do not change the capacities that are measured.
type player struct {
	*testing.T
	server    *httptest.Server
	cluster   *cluster.Cluster
	namespace string
	pods      []corev1.Pod // the last ones that were read
	scraped   time.Time    // time of the last sample

	mu     sync.Mutex
	store  *promstore.Store
	loads  map[string]float64 // requests a second, by model
	queues map[string]float64 // requests that wait at the gateway, by model
	totals map[string]*totals // by pod
	silent map[string]bool    // models about which the gateway reports nothing

	sampled chan time.Time // gets the time of the next scrape; nil if nobody waits
}

type totals struct{ requests, waiting float64 }

// modelLabel is the label of pods that names the model.
const modelLabel = "model"

func newPlayer(t *testing.T, c *cluster.Cluster, namespace string) *player {
	p := &player{
		T: t, cluster: c, namespace: namespace,
		loads: map[string]float64{}, queues: map[string]float64{}, totals: map[string]*totals{}, silent: map[string]bool{},
	}
	p.serve("127.0.0.1:" + freePort(t))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		p.kill()
	})
	return p
}

// serve starts a Prometheus without data at an address.
func (p *player) serve(address string) {
	p.Helper()
	store, err := promstore.New()
	require.NoError(p, err)
	var listener net.Listener
	// A process that starts at this moment has the port's former listener until it runs.
	eventually(p, patience, "the port "+address+" is free", func() bool {
		listener, err = net.Listen("tcp", address)
		return err == nil
	})
	p.server = &httptest.Server{Listener: listener, Config: &http.Server{Handler: store.Handler()}}
	p.server.Start()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.store = store
}

// kill ends Prometheus; its data are lost.
func (p *player) kill() {
	p.Helper()
	p.server.CloseClientConnections()
	p.server.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.store != nil {
		require.NoError(p, p.store.Close())
	}
	p.store = nil
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
	p.scraped = time.Now()
	ticker := time.NewTicker(scrapeInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			p.scrape(ctx)
		case <-ctx.Done():
			return
		}
	}
}

func (p *player) scrape(ctx context.Context) {
	// Prometheus goes on with the pods that it knows if the API server does not answer, without
	// waiting for it.
	asking, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	pods, err := p.cluster.Client.CoreV1().Pods(p.namespace).List(asking, metav1.ListOptions{LabelSelector: labels.Set{"engine": "played"}.String()})
	if err == nil {
		p.pods = pods.Items
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	ready := map[string][]corev1.Pod{}
	seen := map[string]bool{}
	for _, pod := range p.pods {
		if isReady(pod) {
			model := pod.Annotations[modelLabel]
			ready[model] = append(ready[model], pod)
			seen[pod.Name] = true
		}
	}
	now := time.Now()
	if late := now.Add(-mostLate); p.scraped.Before(late) {
		p.scraped = late
	}
	for due := p.scraped.Add(scrapeInterval); !due.After(now); due = due.Add(scrapeInterval) {
		p.scraped = due
		p.sample(due, ready)
	}
	for name := range p.totals {
		if !seen[name] {
			if p.store != nil {
				_ = p.store.Gone(name, now)
			}
			delete(p.totals, name)
		}
	}
}

// sample adds one sample of each gateway and of each ready pod, by model.
func (p *player) sample(at time.Time, ready map[string][]corev1.Pod) {
	if p.sampled != nil {
		p.sampled <- at
		p.sampled = nil
	}
	for model, perSecond := range p.loads {
		requests := perSecond * scrapeInterval.Seconds()
		p.gateway(at, model, requests, len(ready[model]) > 0)
		for _, pod := range ready[model] {
			p.engine(at, pod, model, requests/float64(len(ready[model])))
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

// engine scrapes one pod, which has got some requests since its last scrape.
func (p *player) engine(now time.Time, pod corev1.Pod, model string, requests float64) {
	t := p.totals[pod.Name]
	if t == nil {
		t = &totals{}
		p.totals[pod.Name] = t
	}
	done := min(t.waiting+requests, capacity*scrapeInterval.Seconds())
	t.waiting += requests - done
	t.requests += done
	if p.store == nil {
		return
	}
	served := done / scrapeInterval.Seconds()
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

// gateway scrapes the gateway's metrics of a model, which has got some requests since.
func (p *player) gateway(now time.Time, model string, requests float64, served bool) {
	if served {
		p.queues[model] = 0
	} else {
		p.queues[model] += requests
	}
	if p.silent[model] || p.store == nil {
		return
	}
	own := promstore.Labels("namespace", p.namespace, "pod", "epp-0", "model_name", model, "target_model_name", model)
	err := p.store.Append(now, []promstore.Sample{
		{Name: "inference_extension_flow_control_queue_size", Labels: own, Value: math.Ceil(p.queues[model])},
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
