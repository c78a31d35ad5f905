package collector_test

import (
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/collector"
	"github.com/wva-project/wva/demo/promstore"
	"github.com/wva-project/wva/fleet"
)

// objectives are windows with the objectives of the tests: both are bounds of vLLM.
var objectives = collector.Windows{TTFT: []time.Duration{250 * time.Millisecond}, ITL: []time.Duration{50 * time.Millisecond}}

// latencies returns those of a source at the last scrape.
func (w *world) latencies(source fleet.LoadSource) fleet.Latencies {
	w.Helper()
	o := w.collector.Collect(w.Context(), at(w.last), objectives)
	require.Empty(w, o.Missing)
	return loadOf(w, o, source).Latencies
}

// latent is steady with the histogram of requests' ITL, of which nine tenths are within 50 ms.
func latent(pod string, rate float64) func(second int) []promstore.Sample {
	return func(second int) []promstore.Sample {
		done := rate * float64(second)
		itl := histogramOf(pod, "vllm:request_time_per_output_token_seconds", []float64{50, inf}, times(done, []float64{0.9, 1}))
		itl[0].Labels[len(itl[0].Labels)-1].Value = "0.05"
		counter := promstore.Sample{Name: "vllm:request_time_per_output_token_seconds_count", Labels: itl[0].Labels[:len(itl[0].Labels)-1], Value: done}
		return slices.Concat(steady(pod, rate)(second), itl, []promstore.Sample{counter})
	}
}

func TestRequestsAreCountedInAlignedParts(t *testing.T) {
	w := newWorld(t)
	w.scrapes("pod-a", 0, 11160, latent("pod-a", 1))
	w.scrapes("pod-b", 0, 11160, latent("pod-b", 2))
	l := w.latencies(fleet.SourceEngine)
	require.Equal(t, fleet.Duration(3*time.Minute), l.Length)
	require.Equal(t, at(10980), l.Until, "the latest part that ended a minute ago")
	require.Len(t, l.Parts, 60)
	for _, p := range l.Parts {
		require.InDelta(t, 540, p.Requests, 1)
		require.Equal(t, 2, p.Replicas)
		require.Zero(t, p.Started)
		wantLengths(t, p.TTFT, []float64{0.25, 0}, []float64{0.5, 0.5})
		wantLengths(t, p.ITL, []float64{0.05, 0}, []float64{0.9, 0.1})
		require.False(t, p.PerToken)
	}
	require.Equal(t, l.Until, l.Parts[59].End)
	w.scrapes("pod-a", 11175, 11205, latent("pod-a", 1))
	w.scrapes("pod-b", 11175, 11205, latent("pod-b", 2))
	require.Equal(t, l, w.latencies(fleet.SourceEngine), "the same throughout a part")
}

func TestPartsWithAStartSayIt(t *testing.T) {
	w := newWorld(t)
	w.scrapes("pod-a", 0, 1800, latent("pod-a", 1))
	w.scrapes("pod-b", 1000, 1800, func(second int) []promstore.Sample { return latent("pod-b", 1)(second - 900) })
	for _, p := range w.latencies(fleet.SourceEngine).Parts[1:] {
		if p.End.Equal(at(1080)) { // it began at 1000 s
			require.Equal(t, 1, p.Started)
		} else {
			require.Zero(t, p.Started, p.End)
		}
	}
}

func TestPartsThatAreKnownInPartHaveNoRow(t *testing.T) {
	ends := func(w *world) (ends []int) {
		for _, p := range w.latencies(fleet.SourceEngine).Parts {
			ends = append(ends, int(p.End.Sub(start).Seconds()))
		}
		return ends
	}
	whole := newWorld(t)
	whole.scrapes("pod-a", 0, 900, latent("pod-a", 1))
	require.Equal(t, []int{180, 360, 540, 720}, ends(whole))

	missed := newWorld(t)
	missed.scrapes("pod-a", 0, 900, func(second int) []promstore.Sample {
		if second > 380 && second < 450 {
			return nil
		}
		return latent("pod-a", 1)(second)
	})
	require.Equal(t, []int{180, 360, 720}, ends(missed), "five of twelve scrapes failed")

	idle := newWorld(t)
	idle.scrapes("pod-a", 0, 900, func(second int) []promstore.Sample { return latent("pod-a", 1)(min(second, 480)) })
	for _, p := range idle.latencies(fleet.SourceEngine).Parts {
		require.True(t, !p.End.After(at(600)) || p.Requests == 0 && p.TTFT == nil, "%+v", p)
	}
}

func TestRestartIsNoNegativeNumberOfRequests(t *testing.T) {
	w := newWorld(t)
	w.scrapes("pod-a", 0, 900, func(second int) []promstore.Sample {
		if second > 500 {
			second -= 500
		}
		return latent("pod-a", 1)(second)
	})
	for _, p := range w.latencies(fleet.SourceEngine).Parts {
		require.InDelta(t, 180, p.Requests, 30)
		wantLengths(t, p.ITL, []float64{0.05, 0}, []float64{0.9, 0.1})
	}
}

func TestBucketOfLatenciesThatIsNotANumberIsUnknown(t *testing.T) {
	for _, value := range []float64{math.NaN(), math.Inf(1)} {
		w := newWorld(t)
		w.scrapes("pod-a", 0, 900, func(second int) []promstore.Sample {
			samples := latent("pod-a", 1)(second)
			for i := range samples {
				if strings.HasPrefix(samples[i].Name, "vllm:request_time_per_output_token_seconds_bucket") {
					samples[i].Value = value
				}
			}
			return samples
		})
		for _, p := range w.latencies(fleet.SourceEngine).Parts {
			require.Empty(t, p.ITL)
		}
	}
}

// withTokens adds the times between tokens of an engine, of which seven tenths are within 50 ms.
func withTokens(pod string, engine func(pod string, rate float64) func(second int) []promstore.Sample) func(second int) []promstore.Sample {
	return func(second int) []promstore.Sample {
		tokens := histogramOf(pod, "vllm:inter_token_latency_seconds", []float64{50, inf}, times(200*float64(second), []float64{0.7, 1}))
		tokens[0].Labels[len(tokens[0].Labels)-1].Value = "0.05"
		return append(engine(pod, 1)(second), tokens...)
	}
}

func TestTokensCountIfTheEngineHasNoMeansOfRequests(t *testing.T) {
	w := newWorld(t)
	w.scrapes("pod-a", 0, 900, withTokens("pod-a", steady))
	for _, p := range w.latencies(fleet.SourceEngine).Parts {
		require.True(t, p.PerToken)
		wantLengths(t, p.ITL, []float64{0.05, 0}, []float64{0.7, 0.3})
	}
}

func TestGatewaysTellTheWait(t *testing.T) {
	w := newWorld(t)
	w.scrapes("pod-a", 0, 900, latent("pod-a", 1))
	w.scrapes("gateway", 0, 900, func(second int) []promstore.Sample {
		own := promstore.Labels("namespace", team, "pod", "epp", "model_name", "chat", "target_model_name", llama)
		samples := []promstore.Sample{{Name: "llm_d_epp_request_total", Labels: own, Value: float64(second)}}
		// both, as the picker has them
		for _, name := range []string{"llm_d_epp", "inference_extension"} {
			for bound, below := range map[string]float64{"0.25": 0.8, "+Inf": 1} {
				for _, tenant := range []string{"a", "b"} {
					samples = append(samples, promstore.Sample{
						Name: name + "_flow_control_request_queue_duration_seconds_bucket", Labels: with(own, "le", bound, "fairness_id", tenant), Value: below * float64(second),
					})
				}
			}
		}
		return samples
	})
	l := w.latencies(fleet.SourceGateway)
	require.Len(t, l.Parts, 4)
	for _, p := range l.Parts {
		wantLengths(t, p.Wait, []float64{0.25, 0}, []float64{0.8, 0.2})
		require.InDelta(t, 360, p.Wait[0].Count+p.Wait[1].Count, 1, "two tenants, each once")
	}
}

// If one engine of a model does not report times of requests, those between tokens count of all.
func TestTokensCountIfAnEngineReportsNoTimesOfRequests(t *testing.T) {
	w := newWorld(t)
	w.scrapes("pod-a", 0, 900, withTokens("pod-a", latent))
	w.scrapes("pod-b", 0, 900, withTokens("pod-b", steady))
	l := w.latencies(fleet.SourceEngine)
	require.Len(t, l.Parts, 4)
	for _, p := range l.Parts {
		require.True(t, p.PerToken)
		wantLengths(t, p.ITL, []float64{0.05, 0}, []float64{0.7, 0.3})
	}
}

// A gateway that is scraped less often than the engines has a longer window, and the parts of both
// are those of that window.
func TestPartsOfASlowGatewayAreThoseOfItsEngines(t *testing.T) {
	for _, target := range []string{llama, "an-adapter"} {
		t.Run(target, func(t *testing.T) { testSlowGateway(t, target) })
	}
}

func testSlowGateway(t *testing.T, target string) {
	t.Helper()
	w := newWorld(t)
	w.scrapes("pod-a", 0, 3600, latent("pod-a", 1))
	for second := 0; second <= 3600; second += 60 {
		own := promstore.Labels("namespace", team, "pod", "epp", "model_name", "chat", "target_model_name", target)
		samples := []promstore.Sample{{Name: "llm_d_epp_request_total", Labels: own, Value: float64(second)}}
		for bound, below := range map[string]float64{"0.25": 0.8, "+Inf": 1} {
			samples = append(samples, promstore.Sample{
				Name: "llm_d_epp_flow_control_request_queue_duration_seconds_bucket", Labels: with(own, "le", bound), Value: below * float64(second),
			})
		}
		w.scrape("gateway", second, samples...)
	}
	o := w.collector.Collect(t.Context(), at(w.last), objectives)
	require.Empty(t, o.Missing)
	engines, gateway := loadOf(t, o, fleet.SourceEngine), loadOf(t, o, fleet.SourceGateway)
	require.Equal(t, fleet.Duration(4*time.Minute), engines.Latencies.Length)
	require.Equal(t, engines.Latencies.Length, gateway.Latencies.Length)
	ends := func(l fleet.Load) (ends []time.Time) {
		for _, part := range l.Latencies.Parts {
			ends = append(ends, part.End)
		}
		return ends
	}
	require.Equal(t, ends(engines), ends(gateway))
	require.Greater(t, len(ends(engines)), 10)
}

// failing is a world whose query for latencies is answered by the function while it is not nil.
type failing struct {
	*world
	asked   int
	respond func(r *http.Request) (*http.Response, error)
}

func (f *failing) RoundTrip(r *http.Request) (*http.Response, error) {
	require.NoError(f, r.ParseForm())
	if !strings.Contains(r.Form.Get("query"), "part_requests") {
		return f.world.RoundTrip(r)
	}
	f.asked++
	if f.respond != nil {
		return f.respond(r)
	}
	return f.world.RoundTrip(r)
}

func TestPartialAnswerAboutLatenciesMovesNothing(t *testing.T) {
	f := &failing{}
	f.world = newWorld(t, func(o *collector.Options) { o.RoundTripper = f })
	f.scrapes("pod-a", 0, 900, latent("pod-a", 1))
	before := f.latencies(fleet.SourceEngine)
	require.NotEmpty(t, before.Parts)
	for name, respond := range map[string]func(*http.Request) (*http.Response, error){
		"fails":   func(*http.Request) (*http.Response, error) { return respond(http.StatusInternalServerError, "{}") },
		"partial": func(*http.Request) (*http.Response, error) { return respond(http.StatusOK, partialMatrix) },
	} {
		f.respond = respond
		f.scrapes("pod-a", f.last+15, f.last+240, latent("pod-a", 1))
		o := f.collector.Collect(t.Context(), at(f.last), objectives)
		require.NotEmpty(t, o.Missing, name)
		require.Equal(t, before, loadOf(t, o, fleet.SourceEngine).Latencies, name)
	}
	f.scrapes("pod-a", f.last+15, f.last+3900, latent("pod-a", 1))
	o := f.collector.Collect(t.Context(), at(f.last), objectives)
	require.Empty(t, loadOf(t, o, fleet.SourceEngine).Latencies.Parts, "too old to know anything by")
	f.respond = nil
	f.scrapes("pod-a", f.last+15, f.last+240, latent("pod-a", 1))
	require.Greater(t, len(f.latencies(fleet.SourceEngine).Parts), 20)
}

const partialMatrix = `{"status":"success","isPartial":true,"data":{"resultType":"matrix","result":[]}}`

func TestLatenciesAreAskedForOnceAPart(t *testing.T) {
	f := &failing{}
	f.world = newWorld(t, func(o *collector.Options) { o.RoundTripper = f })
	f.scrapes("pod-a", 0, 1320, latent("pod-a", 1))
	f.collect()
	require.Zero(t, f.asked, "without objectives")
	for second := 960; second < 1320; second += 15 {
		f.collector.Collect(t.Context(), at(second), objectives)
	}
	require.Equal(t, 2, f.asked, "in two parts of three minutes")
}

func TestObjectivesComeAndGo(t *testing.T) {
	w := newWorld(t)
	w.scrapes("pod-a", 0, 1000, latent("pod-a", 1))
	for i, asked := range []collector.Windows{objectives, {}, objectives} {
		o := w.collector.Collect(t.Context(), at(900+15*i), asked)
		require.Empty(t, o.Missing)
		require.Equal(t, len(asked.TTFT) > 0, len(loadOf(t, o, fleet.SourceEngine).Latencies.Parts) > 0, "cycle %d", i)
	}
}
