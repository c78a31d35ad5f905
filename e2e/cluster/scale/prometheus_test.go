package scale

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/demo/promstore"
)

const (
	scrapeInterval = 15 * time.Second
	history        = 65 * time.Minute
	// The load of a replica.
	perSecond, running, cache         = 2.0, 8.0, 0.4
	promptTokens, outputTokens        = 1000.0, 150.0
	secondsPerToken, secondsToFirstOf = 0.02, 0.3
)

// copies answers queries about many models as Prometheus would if all had the load of one: a query
// is evaluated on the series of one model, and each row of the answer is repeated for every model.
type copies struct {
	store  *promstore.Store
	models int
	sent   time.Time // begin of the load
}

// newCopies serves until the end of the test, and scrapes as time goes by.
func newCopies(t *testing.T, models int) string {
	t.Helper()
	store, err := promstore.New()
	require.NoError(t, err)
	now := time.Now()
	c := &copies{store: store, models: models, sent: now.Add(-history)}
	for at := c.sent; at.Before(now); at = at.Add(scrapeInterval) {
		require.NoError(t, c.scrape(at))
	}
	server := httptest.NewServer(c)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for ticker := time.NewTicker(scrapeInterval); ; {
			select {
			case at := <-ticker.C:
				if err := c.scrape(at); err != nil {
					t.Error(err)
				}
			case <-stop:
				ticker.Stop()
				return
			}
		}
	}()
	t.Cleanup(func() {
		close(stop)
		<-stopped
		server.CloseClientConnections()
		server.Close()
		require.NoError(t, store.Close())
	})
	return server.URL
}

// scrape appends the series of all replicas of the first model.
func (c *copies) scrape(at time.Time) error {
	requests := at.Sub(c.sent).Seconds() * perSecond
	for v := range variantsPerModel {
		for p := range podsPerVariant {
			if err := c.store.Scrape(podOf(0, v, p), at, series(podOf(0, v, p), requests)); err != nil {
				return err
			}
		}
	}
	return nil
}

// series returns the series of one vLLM engine that has served so many requests.
func series(pod string, requests float64) []promstore.Sample {
	own := []string{"namespace", namespaceOf(0), "pod", pod, "job", "vllm", "model_name", modelOf(0), "engine", "0"}
	with := func(more ...string) []promstore.Label {
		return promstore.Labels(append(slices.Clip(own), more...)...)
	}
	samples := []promstore.Sample{
		{Name: "vllm:num_requests_running", Labels: with(), Value: running},
		{Name: "vllm:num_requests_waiting", Labels: with(), Value: 0},
		{Name: "vllm:kv_cache_usage_perc", Labels: with(), Value: cache},
		{Name: "vllm:cache_config_info", Labels: with("block_size", "16", "num_gpu_blocks", "10000", "cache_dtype", "auto"), Value: 1},
		{Name: "vllm:prompt_tokens_total", Labels: with(), Value: requests * promptTokens},
		{Name: "vllm:request_success_total", Labels: with("finished_reason", "stop"), Value: requests},
	}
	for _, h := range []struct {
		name       string
		count, sum float64
		bounds     []string
	}{
		{"request_prompt_tokens", requests, requests * promptTokens, []string{"100.0", "200.0", "500.0", "1000.0", "2000.0", "5000.0", "10000.0", "+Inf"}},
		{"request_generation_tokens", requests, requests * outputTokens, []string{"10.0", "20.0", "50.0", "100.0", "200.0", "500.0", "1000.0", "+Inf"}},
		{"request_prefill_time_seconds", requests, requests * 0.1, nil},
		{"inter_token_latency_seconds", requests * outputTokens, requests * outputTokens * secondsPerToken, []string{"0.01", "0.025", "0.05", "0.1", "+Inf"}},
		{"time_to_first_token_seconds", requests, requests * secondsToFirstOf, []string{"0.1", "0.25", "0.5", "1.0", "2.5", "+Inf"}},
	} {
		samples = append(samples,
			promstore.Sample{Name: "vllm:" + h.name + "_count", Labels: with(), Value: h.count},
			promstore.Sample{Name: "vllm:" + h.name + "_sum", Labels: with(), Value: h.sum})
		for i, bound := range h.bounds {
			samples = append(samples, promstore.Sample{Name: "vllm:" + h.name + "_bucket", Labels: with("le", bound), Value: h.count * float64(i+1) / float64(len(h.bounds))})
		}
	}
	return samples
}

func (c *copies) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := httptest.NewRecorder()
	c.store.Handler().ServeHTTP(answer, r)
	var small struct {
		Data struct {
			ResultType string            `json:"resultType"`
			Result     []json.RawMessage `json:"result"`
		} `json:"data"`
	}
	if err := json.Unmarshal(answer.Body.Bytes(), &small); err != nil || answer.Code != http.StatusOK {
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	var body bytes.Buffer
	body.WriteString(`{"status":"success","data":{"resultType":"` + small.Data.ResultType + `","result":[`)
	for i, row := range small.Data.Result {
		parts := bytes.Split(row, []byte(markOf(0)))
		for m := range c.models {
			if i+m > 0 {
				body.WriteByte(',')
			}
			body.Write(bytes.Join(parts, []byte(markOf(m))))
			if len(parts) == 1 {
				break // it is about no model
			}
		}
		if body.Len() > 1<<20 {
			_, _ = w.Write(body.Bytes())
			body.Reset()
		}
	}
	body.WriteString(`]}}`)
	_, _ = w.Write(body.Bytes())
}
