package collector_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/demo/promstore"
	"github.com/wva-project/wva/fleet"
)

// scrapedAs returns the samples as another scrape job stores them, with labels of its own.
func scrapedAs(samples []promstore.Sample, instance string, labels ...string) []promstore.Sample {
	var stored []promstore.Sample
	for _, s := range samples {
		more := promstore.Labels(append([]string{"instance", instance}, labels...)...)
		own := slices.DeleteFunc(slices.Clone(s.Labels), func(l promstore.Label) bool {
			return slices.ContainsFunc(more, func(other promstore.Label) bool { return other.Name == l.Name })
		})
		own = append(own, more...)
		stored = append(stored, promstore.Sample{Name: s.Name, Labels: own, Value: s.Value})
	}
	return stored
}

func TestPodThatTwoJobsScrapeCountsOnce(t *testing.T) {
	once, twice := newWorld(t), newWorld(t)
	pod := steady("pod-a", 2)
	once.scrapes("pod-a", 0, 3600, func(second int) []promstore.Sample { return scrapedAs(pod(second), "10.0.0.1:8000") })
	twice.scrapes("pod-a", 0, 3600, func(second int) []promstore.Sample { return scrapedAs(pod(second), "10.0.0.1:8000") })
	twice.scrapes("pod-a-again", 0, 3600, func(second int) []promstore.Sample {
		return scrapedAs(pod(second), "10.0.0.1:8000", "job", "service-monitor", "service", "chat", "app", "chat")
	})
	want := once.usage("pod-a")
	require.False(t, want.ScrapedTwice)
	want.ScrapedTwice = true
	require.Equal(t, want, twice.usage("pod-a"))
	require.Equal(t, once.load(fleet.SourceEngine), twice.load(fleet.SourceEngine))
}

func TestEnginesOnTwoPortsOfAPodCountTwice(t *testing.T) {
	w := newWorld(t)
	pod := steady("pod-a", 2)
	w.scrapes("one", 0, 3600, func(second int) []promstore.Sample { return scrapedAs(pod(second), "10.0.0.1:8000") })
	w.scrapes("two", 0, 3600, func(second int) []promstore.Sample {
		return scrapedAs(pod(second), "10.0.0.1:8001", "job", "second-port")
	})
	usage := w.usage("pod-a")
	present(t, 4, usage.FirstTokens)
	present(t, 8, usage.Running)
	require.False(t, usage.ScrapedTwice)
}

func TestGatewayThatTwoJobsScrapeCountsOnce(t *testing.T) {
	w := newWorld(t)
	for second := 0; second <= 3600; second += interval {
		series := []promstore.Sample{
			gatewayRequests("llm_d_epp_request_total", "epp-0", "chat", llama, float64(second), "priority", "0"),
			gatewayRequests("llm_d_epp_request_total", "epp-0", "chat", llama, float64(second), "priority", "1"),
		}
		w.scrape("epp", second, scrapedAs(series, "10.0.0.9:9090", "job", "pods")...)
		w.scrape("epp-again", second, scrapedAs(series, "10.0.0.9:9090", "job", "services")...)
	}
	load := w.load(fleet.SourceGateway)
	present(t, 2, load.Arrivals)
	present(t, 2, load.PeakArrivals)
}
