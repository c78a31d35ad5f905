package main

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/demo/promstore"
	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/simulation"
)

// recorded serves a Prometheus that has scraped one engine for 20 minutes until now: 120 requests a
// minute of 1000 and 100 tokens, with five minutes without scrapes.
func recorded(t *testing.T) string {
	t.Helper()
	store, err := promstore.New()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	labels := promstore.Labels("namespace", "llm", "pod", "chat-0", "model_name", "chat", "instance", "a", "job", "b")
	begin := time.Now().Add(-20 * time.Minute)
	for i := range 80 {
		if i > 30 && i <= 70 {
			continue
		}
		n := float64(30 * i)
		var samples []promstore.Sample
		for name, value := range map[string]float64{
			"vllm:num_requests_running": 1, "vllm:num_requests_waiting": 0, "vllm:time_to_first_token_seconds_count": n,
			"vllm:request_prompt_tokens_sum": 1000 * n, "vllm:request_prompt_tokens_count": n,
			"vllm:request_generation_tokens_sum": 100 * n, "vllm:request_generation_tokens_count": n,
		} {
			samples = append(samples, promstore.Sample{Name: name, Labels: labels, Value: value})
		}
		require.NoError(t, store.Append(begin.Add(time.Duration(i)*15*time.Second), samples))
	}
	server := httptest.NewServer(store.Handler())
	t.Cleanup(server.Close)
	return server.URL
}

func TestRecordWritesATraceThatCanBeReplayed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace.csv")
	got := execute(t, "", "record", "--prometheus-url", recorded(t), "--since", "30m", "-o", path)
	require.Zero(t, got.code, got.errs)
	require.Empty(t, got.out)
	require.Regexp(t, `^llm/chat: 1[0-9]{3} requests in \d+m from 20`, got.errs)
	require.Regexp(t, `unknown: \d+ of \d+ steps have no samples, so no requests \(scaled to zero, or not scraped\); the longest time is \d+m from`, got.errs)
	require.Contains(t, got.errs, "no histograms of lengths")
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	trace, err := simulation.ReadTrace(file, fleet.ModelID{Name: "chat"})
	require.NoError(t, err)
	require.InDelta(t, 1180, len(trace), 150)
}

func TestRecordWritesToStandardOutput(t *testing.T) {
	got := execute(t, "", "record", "--prometheus-url", recorded(t), "--since", "10m", "--model", "chat", "--namespace", "llm", "-o", "-")
	require.Zero(t, got.code, got.errs)
	require.Regexp(t, `^TIMESTAMP,ContextTokens,GeneratedTokens\n20\d\d-`, got.out)
}

func TestRecordErrors(t *testing.T) {
	dir := t.TempDir()
	for _, test := range []struct {
		arguments []string
		code      int
		errs      string
	}{
		{nil, 2, "no Prometheus; give its address by --prometheus-url\nno file; name one by --output, or - for standard output\n"},
		{[]string{"--prometheus-url", "http://127.0.0.1:1", "-o", dir}, 2, "is a directory; name a file, such as " + dir + "/trace.csv"},
		{[]string{"--prometheus-url", "localhost:9090", "-o", "-"}, 2, "write it as http://prometheus.monitoring:9090"},
		{[]string{"--prometheus-url", "http://127.0.0.1:1", "-o", "-", "--since", "week", "--step", "0"}, 2, `since "week": write it as 1m, 6h or 7d`},
		{[]string{"--prometheus-url", "http://127.0.0.1:1", "-o", "-", "--step", "2h"}, 1, "step 2h0m0s; set 1s to 1h0m0s"},
		{[]string{"--prometheus-url", "http://127.0.0.1:1", "-o", "-"}, 1, "check the address, the credentials"},
		{[]string{"--prometheus-url", "http://127.0.0.1:1", "-o", "-", "--bearer-token-file", dir + "/none"}, 2, "mount the secret that holds it, or correct the path"},
		{[]string{"--prometheus-url", recorded(t), "-o", "-", "--model", "other"}, 1, "no engine of the model other in the last 168h0m0s"},
	} {
		got := execute(t, "", append([]string{"record"}, test.arguments...)...)
		require.Equal(t, test.code, got.code, "%v: %s", test.arguments, got.errs)
		require.Contains(t, got.errs, test.errs)
		require.Empty(t, got.out)
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}
