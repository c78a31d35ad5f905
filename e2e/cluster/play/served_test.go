package play

import (
	"bytes"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/wva-project/wva/fleet"
)

// sum adds the values of a metric that a pod answers.
func sum(t *testing.T, s *served, pod, metric string) float64 {
	t.Helper()
	var text bytes.Buffer
	s.writeEngine(&text, pod)
	total := 0.0
	for line := range strings.Lines(text.String()) {
		if name, rest, _ := strings.Cut(line, "{"); name == metric {
			value, err := strconv.ParseFloat(strings.TrimSpace(rest[strings.LastIndexByte(rest, ' '):]), 64)
			require.NoError(t, err)
			total += value
		}
	}
	return total
}

func TestPodsShareTheLoadAndKeepTheirOwnCounters(t *testing.T) {
	s := &served{model: fleet.ModelID{Namespace: "llm", Name: "org/chat"}}
	now := time.Unix(1_700_000_000, 0)
	l40s := variant{namespace: "llm", name: "chat", accelerator: "L40S"}
	run := func(seconds int, rate float64, pods ...string) {
		for range 2 * seconds {
			now = now.Add(tick)
			l40s.pods = pods
			s.advance(now, []variant{l40s}, rate)
		}
	}
	const served = "vllm:request_success_total"
	run(60, 4, "a", "b")
	require.InDelta(t, 120, sum(t, s, "a", served), 40)
	require.InDelta(t, 120, sum(t, s, "b", served), 40)
	require.Zero(t, sum(t, s, "c", served), "a pod that does not run answers nothing")

	before := sum(t, s, "a", served)
	run(10, 4, "a")
	after := sum(t, s, "a", served)
	require.Less(t, after, before+100, "what the other pod has served is not added")

	run(60, 0, "a")
	require.Zero(t, sum(t, s, "a", "vllm:num_requests_running"))
}

func TestRequestsQueueAtTheGatewayWithoutAPod(t *testing.T) {
	s := &served{model: fleet.ModelID{Namespace: "llm", Name: "org/chat"}}
	now := time.Unix(1_700_000_000, 0)
	for range 20 {
		now = now.Add(tick)
		s.advance(now, []variant{{namespace: "llm", name: "chat", accelerator: "H100"}}, 2)
	}
	var text bytes.Buffer
	s.writeGateway(&text)
	require.Regexp(t, `inference_extension_flow_control_queue_size\{.*model_name="org/chat".*\} [1-9]`, text.String())
}

func TestArgumentsOfAnEngineAreReadAsItReadsThem(t *testing.T) {
	spec := func(arguments ...string) *corev1.PodSpec {
		return &corev1.PodSpec{Containers: []corev1.Container{{Args: arguments}}}
	}
	for _, arguments := range [][]string{{"--model=org/chat", "--max-num-seqs=64"}, {"serve org/chat --max-num-seqs 64"}} {
		model, found := modelOf(spec(arguments...))
		require.True(t, found)
		require.Equal(t, "org/chat", model)
		require.Equal(t, 64, sequencesOf(spec(arguments...)))
	}
	for _, text := range []string{"", "many", "-1", "1000000"} {
		require.Zero(t, sequencesOf(spec("--max-num-seqs", text)), text)
	}
}

func TestLoadsThatAreNoRatesAreIgnored(t *testing.T) {
	require.Equal(t, map[string]float64{"a": 2.5, "b": maxLoad}, loads(map[string]string{"a": " 2.5 ", "b": "1e9", "c": "-1", "d": "many", "e": "NaN"}))
}
