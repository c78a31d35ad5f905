package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/collector"
	"github.com/wva-project/wva/demo/promstore"
	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/planner"
)

// The fleet of the fault matrix: one model on equal replicas behind a gateway. Samples begin warmUp
// before the fault, and go on after it.
const (
	faultTeam    = "llm"
	faultScrape  = 15 * time.Second
	faultWarmUp  = 16 * time.Minute
	faultEnds    = 10 * time.Minute // after it began
	faultWatched = 36 * time.Minute
	mostReplicas = 100
)

var faultBegins = time.Date(2026, 3, 1, 1, 0, 0, 0, time.UTC)

// faultLoad is a load whose number of replicas is known without a fault.
type faultLoad struct {
	name     string
	replicas int
	gateway  bool
	// rate is the requests per second that arrive at a replica so long after the fault began.
	rate func(after time.Duration) float64
}

// lately returns the mean rate of the minute before, which is the rate that a query finds.
func (l faultLoad) lately(after time.Duration) float64 {
	return (l.served(after) - l.served(after-time.Minute)) / time.Minute.Seconds()
}

// served returns the requests that a replica has served since the first sample.
func (l faultLoad) served(after time.Duration) (total float64) {
	total = 5000
	for at := -faultWarmUp - time.Minute; at < after; at += faultScrape {
		total += l.rate(at) * faultScrape.Seconds()
	}
	return total
}

// engineSeries returns the series of a replica's engine.
func engineSeries(pod string, rate, served float64) []promstore.Sample {
	own := promstore.Labels("namespace", faultTeam, "pod", pod, "model_name", model, "engine", "0", "job", "vllm")
	running := 8 * rate
	sample := func(name string, value float64, more ...string) promstore.Sample {
		return promstore.Sample{Name: name, Labels: append(slices.Clone(own), promstore.Labels(more...)...), Value: value}
	}
	series := []promstore.Sample{
		sample("vllm:num_requests_running", running),
		sample("vllm:num_requests_waiting", 0),
		sample("vllm:kv_cache_usage_perc", running/30),
		sample("vllm:cache_config_info", 1, "block_size", "16", "num_gpu_blocks", "1000"),
		sample("vllm:time_to_first_token_seconds_sum", served*0.2),
		sample("vllm:time_to_first_token_seconds_count", served),
		sample("vllm:inter_token_latency_seconds_sum", 4*served),
		sample("vllm:inter_token_latency_seconds_count", 200*served),
		sample("vllm:request_prefill_time_seconds_sum", 0.1*served),
		sample("vllm:request_prefill_time_seconds_count", served),
		sample("vllm:request_prompt_tokens_sum", 1000*served),
		sample("vllm:request_prompt_tokens_count", served),
		sample("vllm:request_generation_tokens_sum", 200*served),
		sample("vllm:request_generation_tokens_count", served),
		sample("vllm:prompt_tokens_total", 1000*served),
		sample("vllm:generation_tokens_total", 200*served),
		sample("vllm:request_success_total", served, "finished_reason", "stop"),
		sample("vllm:prefix_cache_queries_total", 1000*served),
		sample("vllm:prefix_cache_hits_total", 100*served),
	}
	for _, metric := range []string{"vllm:time_to_first_token_seconds", "vllm:request_prompt_tokens", "vllm:request_generation_tokens"} {
		for bound, share := range map[string]float64{"0.1": 0, "0.5": 1, "100": 1, "500": 1, "2000": 1, "+Inf": 1} {
			series = append(series, sample(metric+"_bucket", share*served, "le", bound))
		}
	}
	return series
}

// gatewaySeries returns the series of the gateway.
func gatewaySeries(requests float64) []promstore.Sample {
	own := promstore.Labels("namespace", faultTeam, "pod", "gateway-0", "model_name", model, "job", "gateway")
	return []promstore.Sample{
		{Name: "inference_objective_request_total", Labels: own, Value: requests},
		{Name: "inference_extension_flow_control_queue_size", Labels: own, Value: 0},
	}
}

// faultPod is the name of a replica.
func faultPod(i int) string { return fmt.Sprintf("chat-5f-%d", i) }

// scrapeFunc changes the scrape of a target while a fault lasts. It returns the series, and false
// if Prometheus stores nothing, not even that the target is gone.
type scrapeFunc func(target string, series []promstore.Sample) ([]promstore.Sample, bool)

// stored returns a Prometheus with the load and a fault, which is nothing without one.
func (l faultLoad) stored(t testing.TB, fault faultRow) *promstore.Store {
	t.Helper()
	store, err := promstore.New()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	for after := -faultWarmUp; after <= faultWatched; after += faultScrape {
		rate, served := l.lately(after), l.served(after)
		if fault.restarts && after >= 0 {
			served -= l.served(0)
		}
		targets := make(map[string][]promstore.Sample)
		if l.gateway {
			targets["gateway-0"] = gatewaySeries(float64(l.replicas) * served)
		}
		for i := range l.replicas {
			targets[faultPod(i)] = engineSeries(faultPod(i), rate, served)
		}
		faulty := after >= 0 && after < faultEnds
		for i := range fault.strangers {
			name := fmt.Sprintf("other-%d", i)
			if targets[name] = nil; faulty {
				targets[name] = engineSeries(name, rate, served)
			}
		}
		for target, series := range targets {
			keep := true
			if faulty && fault.scrape != nil {
				series, keep = fault.scrape(target, series)
			}
			if keep {
				require.NoError(t, store.Scrape(target, faultBegins.Add(after), series))
			}
		}
	}
	return store
}

// failingPrometheus answers queries over HTTP: those that a fault is about from the store with it,
// or with a changed answer while the fault lasts, and all others from the healthy one. Answers are
// remembered.
type failingPrometheus struct {
	testing.TB
	healthy http.Handler
	stores  map[string]http.Handler // by the name of the fault

	mu       sync.Mutex
	answered map[string]*remembered
}

func newFailingPrometheus(t testing.TB, l faultLoad) *failingPrometheus {
	p := &failingPrometheus{
		TB: t, healthy: l.stored(t, faultRow{}).Handler(), stores: make(map[string]http.Handler), answered: make(map[string]*remembered),
	}
	for _, fault := range faultRows() {
		if fault.answer == nil {
			p.stores[fault.name] = l.stored(t, fault).Handler()
		}
	}
	return p
}

type remembered struct {
	once sync.Once
	code int
	body []byte
}

// cell is one cell of the matrix: a fault of one query, or of all.
type cell struct {
	fault faultRow
	query string
}

// The queries of a fault that concerns several: all, and those over windows, which reach further
// back and touch more stores than the gauges of now.
const (
	everyQuery   = "all"
	heavyQueries = "all but the gauges"
)

// concerns reports whether the fault concerns a query.
func (c cell) concerns(query string) bool {
	return c.fault.name != "" && (c.query == everyQuery || c.query == query || c.query == heavyQueries && query != "gauges")
}

// listen returns the URL of a server that answers with the fault of a cell.
func (p *failingPrometheus) listen(t testing.TB, c cell) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		affected := c.concerns(queryNamed(p, r.Form.Get("query")))
		store, name := p.healthy, ""
		if other, found := p.stores[c.fault.name]; affected && found {
			store, name = other, c.fault.name
		}
		code, body := p.ask(store, name, r.Form)
		if after := instantOf(p, r.Form).Sub(faultBegins); affected && c.fault.answer != nil && after >= 0 && after < faultEnds {
			code, body = c.fault.answer(p, code, body)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = w.Write(body)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func instantOf(t testing.TB, form url.Values) time.Time {
	var seconds float64
	_, err := fmt.Sscan(form.Get("time"), &seconds)
	require.NoError(t, err)
	return time.UnixMilli(int64(math.Round(seconds * 1e3)))
}

// ask answers a query from a store, or from memory.
func (p *failingPrometheus) ask(store http.Handler, name string, form url.Values) (int, []byte) {
	p.mu.Lock()
	key := name + form.Get("time") + form.Get("query")
	known := p.answered[key]
	if known == nil {
		known = &remembered{}
		p.answered[key] = known
	}
	p.mu.Unlock()
	known.once.Do(func() {
		request := httptest.NewRequest(http.MethodPost, "/api/v1/query", strings.NewReader(form.Encode()))
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		recorder := httptest.NewRecorder()
		store.ServeHTTP(recorder, request)
		known.code, known.body = recorder.Code, recorder.Body.Bytes()
	})
	return known.code, known.body
}

// queryMarks has a part of each query of a cycle that no other has.
var queryMarks = map[string]string{
	"gauges": "running", "capacity": "kv_blocks", "window": "first_rate", "latency": "pod_itl", "peaks": "peak_in_flight", "idle": "idle_known",
	"means": "mean_rate", "mix": "prompt_buckets", "lengths": "long_prompt_buckets", "history": "peak_rate", "arrivals": "arrival_rate",
	"gateway": "gateway_rate", "gateway history": "gateway_peak", "scrape intervals": "engine_intervals",
}

// queryNamed returns the name of a query. A query without one needs a row of queryMarks.
func queryNamed(t testing.TB, text string) (found string) {
	for name, mark := range queryMarks {
		if strings.Contains(text, `"wva_part", "`+mark+`"`) {
			require.Empty(t, found, "the parts of two queries in %s", text)
			found = name
		}
	}
	require.NotEmpty(t, found, "a query without a row in queryMarks: %s", text)
	return found
}

// answerForm is the form of an answer of Prometheus.
type answerForm struct {
	Status    string   `json:"status"`
	IsPartial bool     `json:"isPartial,omitempty"`
	Warnings  []string `json:"warnings,omitempty"`
	Data      struct {
		Type   string      `json:"resultType"`
		Result []rowAnswer `json:"result"`
	} `json:"data"`
}

type rowAnswer struct {
	Metric map[string]string `json:"metric"`
	Value  []any             `json:"value,omitempty"`
	Values [][]any           `json:"values,omitempty"`
}

// changed returns an answer that changes the rows of another.
func changed(change func(*answerForm)) func(testing.TB, int, []byte) (int, []byte) {
	return func(t testing.TB, code int, body []byte) (int, []byte) {
		var form answerForm
		decoder := json.NewDecoder(bytes.NewReader(body))
		decoder.UseNumber()
		require.NoError(t, decoder.Decode(&form))
		change(&form)
		if form.Data.Result == nil {
			form.Data.Result = []rowAnswer{}
		}
		encoded, err := json.Marshal(form)
		require.NoError(t, err)
		return code, encoded
	}
}

// values returns a change that gives every row a value.
func values(text string) func(*answerForm) {
	return func(form *answerForm) {
		for _, row := range form.Data.Result {
			if row.Value != nil {
				row.Value[1] = text
			}
			for _, pair := range row.Values {
				pair[1] = text
			}
		}
	}
}

// decided is the sequence of plans at some instants, with a collector of their own.
type decided struct {
	collector *collector.Collector
	load      faultLoad
	previous  []fleet.PreviousDecision
}

func (l faultLoad) decide(t testing.TB, url string) *decided {
	t.Helper()
	transport, err := collector.NewTransport(collector.TransportOptions{})
	require.NoError(t, err)
	t.Cleanup((&http.Client{Transport: transport}).CloseIdleConnections)
	c, err := collector.New(collector.Options{Address: url, RoundTripper: transport, Lag: -1, Timeout: 14 * time.Second, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	return &decided{collector: c, load: l}
}

// at returns the decision at so long after the fault began.
func (d *decided) at(t testing.TB, after time.Duration) fleet.Decision {
	now := faultBegins.Add(after)
	seen := d.collector.Collect(t.Context(), now, collector.Windows{})
	snapshot := d.load.snapshot(now)
	snapshot.Usages, snapshot.Loads, snapshot.Missing, snapshot.Previous = seen.Usages, seen.Loads, seen.Missing, d.previous
	plan := planner.Plan(snapshot, planner.Policy{})
	require.Len(t, plan.Decisions, 1)
	decision := plan.Decisions[0]
	d.previous = []fleet.PreviousDecision{{Variant: decision.Variant, Replicas: decision.Replicas, Decided: decision.Decided, Changed: decision.Changed, Delta: decision.Delta}}
	return decision
}

// snapshot returns the objects of the fleet. The replicas stay as they are, so that decisions of
// different runs can be compared.
func (l faultLoad) snapshot(now time.Time) fleet.Snapshot {
	target := fleet.TargetID{Namespace: faultTeam, APIVersion: "apps/v1", Kind: "Deployment", Name: "chat"}
	created := faultBegins.Add(-time.Hour)
	workload := fleet.Workload{ID: target, Replicas: l.replicas, Startup: time.Minute, MaxSequences: 128}
	for i := range l.replicas {
		workload.Pods = append(workload.Pods, fleet.Pod{Name: faultPod(i), Created: created, Ready: true, ReadyAt: created.Add(time.Minute), Nodes: []string{"node"}})
	}
	return fleet.Snapshot{
		Time: now, Workloads: []fleet.Workload{workload},
		Variants: []fleet.Variant{{
			ID: fleet.VariantID{Namespace: faultTeam, Name: "chat"}, Model: fleet.ModelID{Namespace: faultTeam, Name: model}, Target: target,
			Accelerator: "L40S", GPUsPerReplica: 1, Cost: 1, Role: fleet.RoleBoth, Engine: fleet.EngineVLLM, Range: fleet.Range{Max: mostReplicas}, Created: created,
		}},
	}
}
