package collector_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/collector"
	"github.com/wva-project/wva/demo/promstore"
	"github.com/wva-project/wva/fleet"
)

// transport answers a query by its text.
type transport func(r *http.Request, text string) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	return f(r, string(body))
}

func respond(code int, body string) (*http.Response, error) {
	return &http.Response{StatusCode: code, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
}

// nothing is the answer to a query that finds nothing.
func nothing(query string) string {
	resultType := "vector"
	if strings.Contains(query, "arrival_rate") {
		resultType = "matrix"
	}
	return fmt.Sprintf(`{"status":"success","data":{"resultType":%q,"result":[]}}`, resultType)
}

func newCollector(t *testing.T, rt http.RoundTripper, change ...func(*collector.Options)) *collector.Collector {
	t.Helper()
	options := collector.Options{Address: "http://prometheus.invalid", RoundTripper: rt, Logger: quiet()}
	for _, f := range change {
		f(&options)
	}
	c, err := collector.New(options)
	require.NoError(t, err)
	return c
}

// mostQueries is the number of queries in a cycle, that for scrape intervals included, if all
// models are scraped at one interval. The first cycle has queriesBefore more, about the instants of
// turns before it: five of the means, five of the mix and one of older lengths.
const mostQueries, queriesBefore = 14, 11

func TestQueriesPerCycleAreAsManyWhateverTheFleet(t *testing.T) {
	few, many := newWorld(t), newWorld(t)
	few.scrape("pod-a", 0, steady("pod-a", 1)(0)...)
	for i := range 50 {
		pod := "pod-" + string(rune('A'+i))
		many.scrape(pod, 0, steady(pod, 1)(0)...)
	}
	few.collect()
	require.Len(t, many.collect().Usages, 50)
	require.LessOrEqual(t, few.requests.Load(), int64(mostQueries+queriesBefore))
	require.Equal(t, few.requests.Load(), many.requests.Load())
	for second := interval; second < 600; second += interval {
		before := many.requests.Load()
		many.scrape("pod-A", second, steady("pod-A", 1)(second)...)
		many.collect()
		require.LessOrEqual(t, many.requests.Load()-before, int64(mostQueries))
	}
}

// TestQueriesWithObjectivesAreFewAsWell covers the queries that not every fleet has: for the short
// scale-down window and for the error budget. The first cycle has all at once. A second window, of
// an engine and of a gateway that are scraped each minute beside others, has all but the one for
// scrape intervals once more.
func TestQueriesWithObjectivesAreFewAsWell(t *testing.T) {
	const all = mostQueries + 2
	windows := collector.Windows{ScaleDown: 15 * time.Minute, ShortScaleDown: 6 * time.Minute, TTFT: objectives.TTFT, ITL: objectives.ITL}
	w := newWorld(t)
	w.scrapes("pod-a", 0, 1200, steady("pod-a", 1))
	w.collector.Collect(t.Context(), at(1200), windows)
	require.EqualValues(t, all+queriesBefore, w.requests.Load())

	two := newWorld(t)
	two.scrapes("pod-a", 0, 1200, steady("pod-a", 1))
	two.every(60, "pod-b", "slow", 1200, 1, nil)
	two.scrapes("epp", 0, 1200, func(second int) []promstore.Sample {
		return []promstore.Sample{gatewayRequests("llm_d_epp_request_total", "epp-0", "chat", llama, float64(second))}
	})
	for second := 0; second <= 1200; second += 60 {
		two.scrape("slow-epp", second, gatewayRequests("llm_d_epp_request_total", "slow-epp-0", "slow", "slow", float64(second)))
	}
	two.collector.Collect(t.Context(), at(1200), windows)
	require.EqualValues(t, all+all-1+2*queriesBefore, two.requests.Load())
}

func TestBurstOfCollectsMakesOneSetOfQueries(t *testing.T) {
	w := newWorld(t, func(o *collector.Options) { o.Lag = 2 * time.Second })
	w.scrapes("pod-a", 0, 600, steady("pod-a", 1))
	first := w.collector.Collect(t.Context(), at(602), collector.Windows{})
	require.Equal(t, at(600), first.Time)
	asked := w.requests.Load()

	var burst sync.WaitGroup
	var observations [20]collector.Observation
	for i := range observations {
		burst.Go(func() {
			observations[i] = w.collector.Collect(t.Context(), at(602).Add(time.Duration(i)*700*time.Millisecond), collector.Windows{})
		})
	}
	burst.Wait()
	for _, observation := range observations {
		require.Equal(t, first, observation)
	}
	require.Equal(t, asked, w.requests.Load())

	require.Equal(t, at(615), w.collector.Collect(t.Context(), at(617), collector.Windows{}).Time)
	require.Greater(t, w.requests.Load(), asked)
}

func TestConcurrentCollectsShareTheirQueries(t *testing.T) {
	w := newWorld(t)
	w.scrapes("pod-a", 0, 60, steady("pod-a", 1))
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() { w.collector.Collect(t.Context(), at(60), collector.Windows{}) })
	}
	all.Wait()
	require.LessOrEqual(t, w.requests.Load(), int64(mostQueries+queriesBefore))
}

func TestReplicasAskAboutTheSameInstant(t *testing.T) {
	for second, want := range map[int]int{602: 600, 609: 600, 616: 600, 617: 615} {
		var times sync.Map
		c := newCollector(t, transport(func(_ *http.Request, text string) (*http.Response, error) {
			form, err := url.ParseQuery(text)
			times.Store(form.Get("time"), err)
			return respond(http.StatusOK, nothing(text))
		}))
		require.Equal(t, at(want), c.Collect(t.Context(), at(second).Add(300*time.Millisecond), collector.Windows{}).Time)
		var asked []string
		times.Range(func(key, _ any) bool {
			asked = append(asked, key.(string))
			return true
		})
		slices.Sort(asked)
		// The queries over the long window are asked about whole minutes, since their steps are,
		// and that for lengths about every sixth. So are those of turns before.
		instants := []int{0, 300, 360, 420, 480, 540, 600}
		if want == 615 {
			instants = append(instants, 615)
		}
		var wanted []string
		for _, second := range instants {
			wanted = append(wanted, strconv.FormatInt(at(second).Unix(), 10))
		}
		require.Equal(t, wanted, asked)
	}
}

func TestUnreachablePrometheusIsOneRowForEachSource(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close()) // nobody listens there any more

	c := newCollector(t, http.DefaultTransport, func(o *collector.Options) {
		o.Address = "http://user:" + secret + "@" + address + "/?token=" + secret
	})
	observation := c.Collect(t.Context(), at(600), collector.Windows{})
	require.Empty(t, observation.Usages)
	require.Empty(t, observation.Loads)
	reason := "http://" + address + " unreachable: connection refused; check the address, that Prometheus runs, and network policies"
	require.Equal(t, []fleet.Missing{
		{Source: "prometheus", Reason: reason, Hides: fleet.SourceEngine},
		{Source: "prometheus", Reason: reason, Hides: fleet.SourceGateway},
	}, observation.Missing)
	_, err = c.Queues(t.Context(), at(600))
	require.EqualError(t, err, "asking Prometheus for the queues of the gateways: "+reason)
}

func TestQueriesThatFailAlikeAreOneRow(t *testing.T) {
	w := newWorld(t)
	w.scrapes("pod-a", 0, 600, steady("pod-a", 2))
	c := newCollector(t, transport(func(r *http.Request, text string) (*http.Response, error) {
		switch {
		case strings.Contains(text, "first_rate"), strings.Contains(text, "prompt_buckets"):
			return respond(http.StatusServiceUnavailable, "")
		case strings.Contains(text, "gateway_rate"), strings.Contains(text, "gateway_peak"):
			return respond(http.StatusUnauthorized, "")
		}
		return w.RoundTrip(r)
	}), func(o *collector.Options) { o.Lag = -1 })
	missing := c.Collect(t.Context(), at(600), collector.Windows{}).Missing
	require.Len(t, missing, 2)
	require.Equal(t, "prometheus queries gateway, gateway history", missing[0].Source)
	require.Equal(t, fleet.SourceGateway, missing[0].Hides)
	require.Equal(t, "prometheus queries window, mix, lengths", missing[1].Source)
	require.Equal(t, fleet.SourceEngine, missing[1].Hides)
}

// The lengths of the last half hour are asked for every six minutes. Their answer from memory does
// not hide that Prometheus answers nothing now.
func TestAnswersFromMemoryDoNotHideAnOutage(t *testing.T) {
	w := newWorld(t)
	w.scrapes("pod-a", 0, 630, steady("pod-a", 2))
	down := false
	c := newCollector(t, transport(func(r *http.Request, _ string) (*http.Response, error) {
		if down {
			return respond(http.StatusBadGateway, "")
		}
		return w.RoundTrip(r)
	}), func(o *collector.Options) { o.Lag = -1 })
	require.Empty(t, c.Collect(t.Context(), at(615), collector.Windows{}).Missing)
	down = true
	missing := c.Collect(t.Context(), at(630), collector.Windows{}).Missing
	require.Len(t, missing, 2)
	for _, row := range missing {
		require.Equal(t, "prometheus", row.Source)
	}
}

func TestSlowPrometheusIsGivenUpAtTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCollector(t, transport(func(r *http.Request, _ string) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}), func(o *collector.Options) { o.Timeout, o.QueueTimeout = 7*time.Second, 800*time.Millisecond })
		begun := time.Now()
		observation := c.Collect(t.Context(), at(600), collector.Windows{})
		require.Equal(t, 7*time.Second*5/4, time.Since(begun), "a quarter for the scrape intervals; the others run side by side")
		require.NotEmpty(t, observation.Missing)
		require.Contains(t, observation.Missing[0].Reason, "http://prometheus.invalid sent no answer within 7s")

		begun = time.Now()
		_, err := c.Queues(t.Context(), at(600))
		require.ErrorContains(t, err, "sent no answer within 800ms")
		require.Equal(t, 800*time.Millisecond, time.Since(begun))
	})
}

func TestWrongAnswersAreMissingWithRemedy(t *testing.T) {
	for _, c := range []struct {
		name string
		code int
		body string
		want string
	}{
		{"garbage", 200, `<html>Welcome to nginx</html>`, "check that the address is that of Prometheus' HTTP API"},
		{"half an answer", 200, `{"status":"success","data":{"resultType":"vec`, "check that the address is that of Prometheus' HTTP API"},
		{"no data", 200, `{"status":"success"}`, "check that the address is that of Prometheus' HTTP API"},
		{"a matrix", 200, `{"status":"success","data":{"resultType":"matrix","result":[]}}`, "the answer is not a vector"},
		{"503 of a proxy", 503, `no healthy upstream`, "check that Prometheus is ready"},
		{"503 of Prometheus", 503, `{"status":"error","errorType":"timeout","error":"query timed out"}`, "check that Prometheus is ready"},
		{"500", 500, strings.Repeat("stack trace ", 100), "check that Prometheus is ready"},
		{"401", 401, `Unauthorized`, "credentials"},
		{"a rejected query", 400, `{"status":"error","errorType":"bad_data","error":"unknown modifier"}`, "2.42"},
		{"an impossible query", 422, `{"status":"error","errorType":"execution","error":"many-to-many"}`, "2.42"},
	} {
		t.Run(c.name, func(t *testing.T) {
			observation := newCollector(t, transport(func(*http.Request, string) (*http.Response, error) {
				return respond(c.code, c.body)
			})).Collect(t.Context(), at(600), collector.Windows{})
			require.Empty(t, observation.Usages)
			var hidden []fleet.LoadSource
			for _, missing := range observation.Missing {
				hidden = append(hidden, missing.Hides)
			}
			require.ElementsMatch(t, []fleet.LoadSource{fleet.SourceEngine, fleet.SourceGateway}, slices.Compact(hidden))
			require.Contains(t, observation.Missing[0].Reason, c.want)
			require.Less(t, len(observation.Missing[0].Reason), 400)
		})
	}
}

func TestFailedQueryLosesNothingOfTheOthers(t *testing.T) {
	w := newWorld(t)
	w.scrapes("pod-a", 0, 600, steady("pod-a", 2))
	broken := func(mark string) collector.Observation {
		c := newCollector(t, transport(func(r *http.Request, text string) (*http.Response, error) {
			if strings.Contains(text, mark) {
				return respond(http.StatusServiceUnavailable, "")
			}
			return w.RoundTrip(r)
		}), func(o *collector.Options) { o.Lag = -1 })
		return c.Collect(t.Context(), at(600), collector.Windows{})
	}

	observation := broken("first_rate")
	require.Len(t, observation.Missing, 1)
	require.Equal(t, "prometheus query window", observation.Missing[0].Source)
	usage := observation.Usages[0]
	present(t, 4, usage.Running)
	require.Equal(t, fleet.Reading{}, usage.FirstTokens, "unknown is not zero")
	require.Equal(t, fleet.Reading{}, usage.WaitingGrowth)
	present(t, 2, loadOf(t, observation, fleet.SourceEngine).PeakArrivals)

	observation = broken("idle_known")
	load := loadOf(t, observation, fleet.SourceEngine)
	require.Zero(t, load.LastActive)
	require.Zero(t, load.IdleCovered, "not knowing when it was used does not prove that it is idle")
	present(t, 2, observation.Usages[0].FirstTokens)
}

func TestFailedQueryIsTriedAgainButNotInABurst(t *testing.T) {
	var sent atomic.Int64
	var broken atomic.Bool
	c := newCollector(t, transport(func(_ *http.Request, text string) (*http.Response, error) {
		if !strings.Contains(text, "%22running%22") {
			return respond(http.StatusOK, nothing(text))
		}
		sent.Add(1)
		if broken.Load() {
			return respond(http.StatusServiceUnavailable, "")
		}
		return respond(http.StatusOK, nothing(text))
	}), func(o *collector.Options) { o.Lag = -1 })

	broken.Store(true)
	for i := range 49 {
		require.Len(t, c.Collect(t.Context(), at(600).Add(time.Duration(i)*100*time.Millisecond), collector.Windows{}).Missing, 1)
	}
	require.EqualValues(t, 1, sent.Load())
	require.Len(t, c.Collect(t.Context(), at(605), collector.Windows{}).Missing, 1)
	require.EqualValues(t, 2, sent.Load())
	broken.Store(false)
	require.Empty(t, c.Collect(t.Context(), at(610), collector.Windows{}).Missing)
	require.EqualValues(t, 3, sent.Load())
	require.Empty(t, c.Collect(t.Context(), at(614), collector.Windows{}).Missing)
	require.EqualValues(t, 3, sent.Load(), "a good answer is kept for its interval")
	broken.Store(true)
	require.Len(t, c.Collect(t.Context(), at(615), collector.Windows{}).Missing, 1, "an answer about another instant is never used again")
}

func TestCallerThatLeavesSaysNothingAboutPrometheus(t *testing.T) {
	w := newWorld(t)
	w.scrapes("pod-a", 0, 600, steady("pod-a", 2))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	observation := w.collector.Collect(ctx, at(600), collector.Windows{})
	require.NotEmpty(t, observation.Missing)
	require.Empty(t, observation.Usages)
	require.Len(t, w.collect().Usages, 1, "the next caller asks at once")
}

func TestCallerDoesNotWaitForAnotherLongerThanItMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCollector(t, transport(func(r *http.Request, _ string) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}))
		var first sync.WaitGroup
		first.Go(func() { c.Collect(t.Context(), at(600), collector.Windows{}) })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun := time.Now()
		require.NotEmpty(t, c.Collect(ctx, at(600), collector.Windows{}).Missing)
		require.Equal(t, time.Second, time.Since(begun))
		first.Wait()
	})
}

func TestWarningsAreKept(t *testing.T) {
	const warned = `{"status":"success","data":{"resultType":"vector","result":[]},"warnings":["partial response: store 7 is away"]}`
	c := newCollector(t, transport(func(_ *http.Request, text string) (*http.Response, error) {
		if strings.Contains(text, "%22running%22") {
			return respond(http.StatusOK, warned)
		}
		return respond(http.StatusOK, nothing(text))
	}))
	for range 2 { // the second is answered from memory
		observation := c.Collect(t.Context(), at(600), collector.Windows{})
		require.Len(t, observation.Missing, 1)
		require.Equal(t, "prometheus query gauges", observation.Missing[0].Source)
		require.Contains(t, observation.Missing[0].Reason, "store 7 is away")
	}
}

func TestRealQueriesCauseNoWarnings(t *testing.T) {
	w := newWorld(t)
	w.scrapes("pod-a", 0, 600, steady("pod-a", 2))
	w.scrapes("pod-b", 0, 600, steady("pod-b", 2))
	require.Empty(t, w.collect().Missing)
}

func TestOwnMetricsAreRegistered(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	w := newWorld(t, func(o *collector.Options) { o.Registerer, o.Lag = registry, 2*time.Second })
	w.scrapes("pod-a", 0, 600, steady("pod-a", 2))
	w.collector.Collect(t.Context(), at(609), collector.Windows{ScaleDown: 7 * time.Minute})
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP wva_collector_newest_sample_age_seconds Age of the newest sample of any engine when it was last collected.
# TYPE wva_collector_newest_sample_age_seconds gauge
wva_collector_newest_sample_age_seconds 9
# HELP wva_collector_scale_down_window_seconds Scale-down window of the last cycle: the peak window, or twice the longest start-up of a target.
# TYPE wva_collector_scale_down_window_seconds gauge
wva_collector_scale_down_window_seconds 420
`), "wva_collector_newest_sample_age_seconds", "wva_collector_scale_down_window_seconds"))
	count, err := testutil.GatherAndCount(registry, "wva_collector_queries_total", "wva_collector_query_duration_seconds")
	require.NoError(t, err)
	require.EqualValues(t, 2*(w.requests.Load()-queriesBefore), count)

	_, err = collector.New(collector.Options{Address: "http://x", Registerer: registry})
	require.ErrorContains(t, err, "registering the collector's metrics")
}

func TestEveryInvalidOptionIsReported(t *testing.T) {
	_, err := collector.New(collector.Options{
		Interval: 15 * time.Second, Timeout: 15 * time.Second, Window: 2 * time.Second, PeakWindow: time.Second,
		PodLabel: "a-b", NamespaceLabel: "model_name",
	})
	for _, want := range []string{"address", "query timeout 15s", "latest window 2s", "peak window 1s", `"a-b"`, `"model_name"`} {
		require.ErrorContains(t, err, want)
	}
	_, err = collector.New(collector.Options{Address: "://"})
	require.ErrorContains(t, err, "address of Prometheus")
	_, err = collector.New(collector.Options{Address: "http://x", Interval: time.Millisecond})
	require.ErrorContains(t, err, "interval 1ms")
}

func TestLabelNamesAreOptions(t *testing.T) {
	w := newWorld(t, func(o *collector.Options) {
		o.NamespaceLabel, o.PodLabel, o.ModelLabel = "kubernetes_namespace", "kubernetes_pod", "model"
	})
	names := strings.NewReplacer("namespace", "kubernetes_namespace", "pod", "kubernetes_pod", "model_name", "model")
	w.scrapes("pod-a", 0, 600, func(second int) []promstore.Sample {
		samples := steady("pod-a", 2)(second)
		for i := range samples {
			// several samples share their labels
			renamed := make([]promstore.Label, len(samples[i].Labels))
			for j, label := range samples[i].Labels {
				renamed[j] = promstore.Label{Name: names.Replace(label.Name), Value: label.Value}
			}
			samples[i].Labels = renamed
		}
		return samples
	})
	usage := w.usage("pod-a")
	present(t, 4, usage.Running)
	present(t, 16000, usage.KVTokens)
}
