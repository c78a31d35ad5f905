package collector_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/collector"
	"github.com/wva-project/wva/demo/promstore"
)

// inCluster gives every series the label of a cluster.
func inCluster(cluster string, expose func(int) []promstore.Sample) func(int) []promstore.Sample {
	return func(second int) []promstore.Sample {
		samples := expose(second)
		for i := range samples {
			samples[i].Labels = with(samples[i].Labels, "cluster", cluster)
		}
		return samples
	}
}

// gatewayOf is an endpoint picker that counts requests and has some waiting.
func gatewayOf(pod string, rate float64) func(int) []promstore.Sample {
	return func(second int) []promstore.Sample {
		own := promstore.Labels("namespace", team, "pod", pod, "model_name", llama)
		return []promstore.Sample{
			{Name: "inference_objective_request_total", Labels: own, Value: rate * float64(second)},
			{Name: "inference_extension_flow_control_queue_size", Labels: own, Value: rate},
		}
	}
}

// TestMatchersKeepOtherClustersOut compares a Prometheus of two clusters with one of the first
// only. The clusters have pods of the same names: a StatefulSet in each. The other one has a pod
// that is scraped more rarely.
func TestMatchersKeepOtherClustersOut(t *testing.T) {
	fill := func(w *world, cluster string, rate float64) {
		for _, pod := range []string{"chat-0", "chat-1"} {
			w.scrapes(cluster+pod, 0, 900, func(second int) []promstore.Sample { return inCluster(cluster, steady(pod, rate))(second) })
		}
		w.scrapes(cluster+"gateway", 0, 900, inCluster(cluster, gatewayOf("gateway-0", rate)))
	}
	alone := newWorld(t)
	fill(alone, "eu", 2)
	global := newWorld(t, func(o *collector.Options) { o.Matchers = `cluster="eu", cluster!~"us|asia"` })
	fill(global, "eu", 2)
	fill(global, "us", 7)
	for second := 0; second <= 900; second += 60 {
		global.scrape("us-rare", second, inCluster("us", steady("chat-2", 7))(second)...)
	}
	want := alone.collect()
	require.Len(t, want.Usages, 2)
	require.Len(t, want.Loads, 2)
	require.Equal(t, want, global.collect())

	queues, err := alone.collector.Queues(t.Context(), at(900))
	require.NoError(t, err)
	restricted, err := global.collector.Queues(t.Context(), at(900))
	require.NoError(t, err)
	require.Equal(t, queues, restricted)
}

func TestInvalidMatchersAreRejected(t *testing.T) {
	for text, cause := range map[string]string{
		`cluster`:               "unexpected",
		`{cluster="eu"}`:        "unexpected",
		`cluster=eu`:            "expected string",
		`cluster=~"("`:          "missing closing",
		`cluster="eu"} or up{`:  "unexpected",
		`__name__="up"`:         "metric names of its own",
		`cluster="eu"}[5m] # "`: "unexpected",
	} {
		_, err := collector.New(collector.Options{Address: "http://prometheus.invalid", Matchers: text})
		require.ErrorContains(t, err, cause, text)
		require.ErrorContains(t, err, `write label matchers as in PromQL without braces, such as cluster="eu-1"`)
		require.Less(t, strings.Count(err.Error(), "\n"), 1)
	}
	for _, text := range []string{"", `cluster="eu"`, `cluster="eu",env!="test"`, `cluster=""`, `a=~"b.*", `} {
		_, err := collector.New(collector.Options{Address: "http://prometheus.invalid", Matchers: text})
		require.NoError(t, err, text)
	}
}
