package conformance

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	autoscaling "k8s.io/api/autoscaling/v2"

	"github.com/wva-project/wva/scaledobject"
)

// requireSpec asserts the one metric of every object: KEDA and the HPA want as many replicas as its
// value.
func requireSpec(t *testing.T, k trigger, specs []autoscaling.MetricSpec) {
	t.Helper()
	require.Len(t, specs, 1, "without a metric KEDA makes no HPA: %v", k.logged())
	require.Equal(t, autoscaling.ExternalMetricSourceType, specs[0].Type)
	require.Equal(t, k.metricName(), specs[0].External.Metric.Name)
	target := specs[0].External.Target
	size := target.AverageValue
	if k.metricType == autoscaling.ValueMetricType {
		size = target.Value
	} else {
		require.Equal(t, autoscaling.AverageValueMetricType, target.Type)
	}
	require.NotNil(t, size)
	require.Zero(t, size.CmpInt64(1), "the target is %s, want 1", size.String())
}

func TestMetricSpecIsConstantUnderRandomMetadata(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.post(w.decided("a", 1))
	random := rand.New(rand.NewPCG(3, 4))
	for i := range 500 {
		k := trigger{
			address: w.address, namespace: w.namespace, name: []string{"a", "unknown"}[random.IntN(2)], index: random.IntN(5),
			env:        map[string]string{"SECRET": randomText(random)},
			metadata:   randomMetadata(random),
			metricType: []autoscaling.MetricTargetType{"", autoscaling.AverageValueMetricType, autoscaling.ValueMetricType}[random.IntN(3)],
		}
		if !t.Run(fmt.Sprint(i), func(t *testing.T) { requireSpec(t, k, k.poll(t).GetMetricSpecForScaling(t.Context())) }) {
			t.Fatalf("it was not the metric with %+v", k)
		}
	}
}

func randomMetadata(random *rand.Rand) map[string]string {
	keys := scaledobject.Keys()
	metadata := make(map[string]string)
	for range random.IntN(12) {
		key := keys[random.IntN(len(keys))]
		name, value := key.Name, key.Example
		switch random.IntN(5) {
		case 0:
			name = randomText(random)
		case 1:
			name += "FromEnv"
			value = "SECRET"
		case 2:
			value = randomText(random)
		case 3:
			name = name[:random.IntN(len(name))]
		}
		metadata[name] = value
	}
	for _, own := range []string{"scalerAddress", "enableTLS", "unsafeSsl"} {
		delete(metadata, own) // KEDA's own keys: they would change how it connects
	}
	return metadata
}

// randomText returns any valid UTF-8: KEDA has the texts from JSON.
func randomText(random *rand.Rand) string {
	alphabets := []string{"abcXYZ-_./ ", "0123456789.-+eE", "\x00\n\t\r\"\\'{}%", "äß漢字🚀\u202e\u200b"}
	alphabet := []rune(alphabets[random.IntN(len(alphabets))])
	text := make([]rune, random.IntN(64))
	for i := range text {
		text[i] = alphabet[random.IntN(len(alphabet))]
	}
	return string(text)
}

func TestMetricSpecNeedsNoPlan(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := w.trigger("a")
	requireSpec(t, k, k.poll(t).GetMetricSpecForScaling(t.Context()))
	w.post(w.decided("another", 1))
	requireSpec(t, k, k.poll(t).GetMetricSpecForScaling(t.Context()))
	w.step(time.Hour) // the plan is too old for any number
	requireSpec(t, k, k.poll(t).GetMetricSpecForScaling(t.Context()))
}

func TestStreamOfMetricSpecSendsTheSameAtOnceAndStaysOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := w.trigger("a")
	u := k.subscribe(t)
	requireSpec(t, k, <-u.specs())
	w.post(w.decided("a", 1))
	w.post(w.decided("a", 2))
	w.step(time.Hour)
	require.Equal(t, 1, w.openStreams("StreamMetricSpec"))
	require.Empty(t, u.specs(), "the metric never changes, so that nothing is sent again")
	require.Empty(t, k.logged("StreamMetricSpec"), "KEDA has nothing to say about a stream that stays open")
}
