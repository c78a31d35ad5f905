package app

import (
	"log/slog"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/config"
	"github.com/wva-project/wva/demo/promstore"
	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/inventory"
)

// scrapedFleet is ready replicas of one variant in virtual time, with a Prometheus that scrapes
// them and a server with the default configuration. All replicas are alike.
type scrapedFleet struct {
	testing.TB
	store    *promstore.Store
	every    int       // seconds between two scrapes
	created  time.Time // of the pods
	started  float64   // process_start_time_seconds; 0: none is exposed
	job      string    // a label of the scrape
	engine   fleet.Engine
	replicas int
	now      int // seconds since the epoch of the fleet
	// the state of a replica at a second
	running, waiting, kv float64
	counted              func(second int) float64   // requests with a first token
	missed               func(pod, second int) bool // scrapes that fail
	objective            fleet.Objective
	// the requests up to a second that met the objective
	met    func(second int) float64
	server *Server
	logger *slog.Logger
}

var fleetEpoch = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

func fleetTime(second int) time.Time { return fleetEpoch.Add(time.Duration(second) * time.Second) }

func newScrapedFleet(t testing.TB, every, replicas int) *scrapedFleet {
	t.Helper()
	store, err := promstore.New()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	f := &scrapedFleet{
		TB: t, store: store, every: every, replicas: replicas, created: fleetTime(-86400), job: "engines", engine: fleet.EngineVLLM,
		running: 4, kv: 0.1, counted: func(second int) float64 { return 1e6 + 2*float64(second) },
		missed: func(int, int) bool { return false }, logger: slog.New(slog.DiscardHandler),
	}
	f.restart()
	return f
}

// restart replaces the server by one that knows nothing.
func (f *scrapedFleet) restart() {
	f.Helper()
	f.server = f.newServer()
}

func (f *scrapedFleet) newServer() *Server {
	f.Helper()
	c, err := config.Default()
	require.NoError(f, err)
	c.Prometheus.URL = "http://prometheus.invalid"
	server, err := New(Options{Config: c, Source: &Source{Tables: f.tables}, Transport: f.store.Transport(), Seed: 1, Logger: f.logger})
	require.NoError(f, err)
	return server
}

var scraped = fleet.VariantID{Namespace: "llm", Name: "chat"}

func (f *scrapedFleet) tables() inventory.Tables {
	target := fleet.TargetID{Namespace: "llm", APIVersion: "apps/v1", Kind: "Deployment", Name: "chat"}
	v := fleet.Variant{
		ID: scraped, Model: fleet.ModelID{Namespace: "llm", Name: model}, Target: target, Accelerator: "H100", GPUsPerReplica: 1, Cost: 1,
		Objective: f.objective, Role: fleet.RoleBoth, Engine: f.engine, Range: fleet.Range{Min: 1, Max: 100}, Created: fleetTime(-86400),
	}
	workload := fleet.Workload{ID: target, Replicas: f.replicas, Startup: 2 * time.Minute, MaxSequences: 256, KVTokens: 400_000}
	for i := range f.replicas {
		workload.Pods = append(workload.Pods, fleet.Pod{
			Name: podName(i), Created: f.created, Ready: true, ReadyAt: f.created.Add(30 * time.Second), Nodes: []string{"node-" + strconv.Itoa(i)},
		})
	}
	return inventory.Tables{Variants: []fleet.Variant{v}, Workloads: []fleet.Workload{workload}}
}

func podName(i int) string { return "chat-" + strconv.Itoa(i) }

// runTo lets the time pass to a second: Prometheus scrapes, the server decides every 15 seconds.
func (f *scrapedFleet) runTo(last int) {
	f.Helper()
	for f.now <= last {
		now := fleetTime(f.now)
		f.scrapeTo(f.now)
		_, err := f.server.Step(f.Context(), now)
		require.NoError(f, err)
	}
}

// scrapeTo lets the time pass without decisions. The targets are scraped at different times.
func (f *scrapedFleet) scrapeTo(last int) {
	f.Helper()
	for ; f.now <= last; f.now++ {
		for i := range f.replicas {
			if (f.now-i)%f.every != 0 {
				continue
			}
			var samples []promstore.Sample
			if !f.missed(i, f.now) {
				samples = f.expose(i, f.now)
			}
			require.NoError(f, f.store.Scrape(podName(i), fleetTime(f.now), samples))
		}
	}
}

func (f *scrapedFleet) expose(i, second int) []promstore.Sample {
	own := promstore.Labels("namespace", "llm", "pod", podName(i), "job", f.job, "model_name", model)
	total := f.counted(second)
	names := map[string]float64{
		"vllm:num_requests_running": f.running, "vllm:num_requests_waiting": f.waiting, "vllm:kv_cache_usage_perc": f.kv,
		"vllm:time_to_first_token_seconds_count": total, "vllm:time_to_first_token_seconds_sum": total * 0.2,
		"vllm:inter_token_latency_seconds_count": 200 * total, "vllm:inter_token_latency_seconds_sum": 4 * total,
		"vllm:request_prompt_tokens_count": total, "vllm:request_prompt_tokens_sum": 1000 * total,
		"vllm:request_generation_tokens_count": total, "vllm:request_generation_tokens_sum": 200 * total,
	}
	if f.engine == fleet.EngineSGLang {
		names = map[string]float64{
			"sglang:num_running_reqs": f.running, "sglang:num_queue_reqs": f.waiting, "sglang:token_usage": f.kv, "sglang:max_total_num_tokens": 400_000,
			"sglang:time_to_first_token_seconds_count": total, "sglang:time_to_first_token_seconds_sum": total * 0.2,
			"sglang:inter_token_latency_seconds_count": 200 * total, "sglang:inter_token_latency_seconds_sum": 4 * total,
			"sglang:prompt_tokens_total": 1000 * total, "sglang:generation_tokens_total": 200 * total, "sglang:num_requests_total": total,
		}
	}
	var samples []promstore.Sample
	for name, value := range names {
		samples = append(samples, promstore.Sample{Name: name, Labels: own, Value: value})
	}
	if f.met != nil {
		for bound, below := range map[string]float64{"0.05": f.met(second), "+Inf": total} {
			labels := append(slices.Clip(own), promstore.Label{Name: "le", Value: bound})
			samples = append(samples, promstore.Sample{Name: "vllm:request_time_per_output_token_seconds_bucket", Labels: labels, Value: below})
		}
		samples = append(samples, promstore.Sample{Name: "vllm:request_time_per_output_token_seconds_count", Labels: own, Value: total})
	}
	if f.started != 0 {
		samples = append(samples, promstore.Sample{Name: "process_start_time_seconds", Labels: own[:3], Value: f.started})
	}
	return samples
}

// gone removes all targets.
func (f *scrapedFleet) gone() {
	f.Helper()
	for i := range f.replicas {
		require.NoError(f, f.store.Gone(podName(i), fleetTime(f.now)))
	}
}

// decided returns the latest decision.
func (f *scrapedFleet) decided() fleet.Decision {
	f.Helper()
	d, found := f.server.Board().Lookup(scraped)
	require.True(f, found)
	return d
}

// most returns the highest number of the decisions up to a second.
func (f *scrapedFleet) most(last int) int {
	f.Helper()
	highest := 0
	for f.now <= last {
		f.runTo(f.now)
		if d, found := f.server.Board().Lookup(scraped); found {
			highest = max(highest, d.Replicas)
		}
	}
	return highest
}
