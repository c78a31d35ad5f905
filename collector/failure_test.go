package collector_test

import (
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/wva-project/wva/collector"
	"github.com/wva-project/wva/demo/promstore"
	"github.com/wva-project/wva/fleet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// reach returns a collector that asks an address as the product does: over a network, through its
// own transport.
func reach(t *testing.T, address string, options collector.TransportOptions, change ...func(*collector.Options)) *collector.Collector {
	t.Helper()
	return newCollector(t, newTransport(t, options), append(change, func(o *collector.Options) { o.Address, o.Lag = address, -1 })...)
}

// requireAllMissing asserts that one row with the reason stands for all queries of each source, and
// that nothing was made up instead.
func requireAllMissing(t *testing.T, o collector.Observation, reason string) {
	t.Helper()
	require.Empty(t, o.Usages)
	require.Empty(t, o.Loads)
	var hidden []fleet.LoadSource
	for _, missing := range o.Missing {
		require.Equal(t, "prometheus", missing.Source)
		require.Contains(t, missing.Reason, reason)
		require.Less(t, len(missing.Reason), 400)
		hidden = append(hidden, missing.Hides)
	}
	require.Equal(t, []fleet.LoadSource{fleet.SourceEngine, fleet.SourceGateway}, hidden)
}

func TestPrometheusThatIsDownIsFoundOnceItIsUp(t *testing.T) {
	w := newWorld(t)
	w.scrapes("pod-a", 0, 630, steady("pod-a", 2))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	c := reach(t, "http://"+address, collector.TransportOptions{})
	const remedy = "unreachable: connection refused; check the address, that Prometheus runs, and network policies"
	requireAllMissing(t, c.Collect(t.Context(), at(600), collector.Windows{}), remedy)

	up := func() *httptest.Server {
		return listen(t, w.store.Handler().ServeHTTP, func(server *httptest.Server) {
			require.NoError(t, server.Listener.Close())
			server.Listener, err = net.Listen("tcp", address)
			require.NoError(t, err)
		})
	}
	server := up()
	observation := c.Collect(t.Context(), at(605), collector.Windows{})
	require.Empty(t, observation.Missing)
	present(t, 4, usagesOf(observation, "pod-a")[0].Running)

	server.CloseClientConnections()
	server.Close()
	observation = c.Collect(t.Context(), at(615), collector.Windows{})
	require.Empty(t, observation.Usages)
	require.Len(t, observation.Missing, 2)
	// of the last hour: asked about the minute, as the mix is, and answered from memory
	lengths := loadOf(t, observation, fleet.SourceEngine)
	present(t, 1000, lengths.PromptTokens)
	require.Equal(t, fleet.Load{Namespace: team, Model: llama, Source: fleet.SourceEngine, Time: at(615),
		PromptTokens: lengths.PromptTokens, OutputTokens: lengths.OutputTokens,
		PastPromptTokens: lengths.PastPromptTokens, PastOutputTokens: lengths.PastOutputTokens}, lengths)

	up()
	require.Empty(t, c.Collect(t.Context(), at(630), collector.Windows{}).Missing, "connections that broke are not used again")
}

func TestSlowAnswerIsGivenUpAtTheDeadline(t *testing.T) {
	for name, begin := range map[string]string{"before it begins": "", "in its middle": nothing("")[:20]} {
		t.Run(name, func(t *testing.T) {
			left := make(chan struct{}, 16)
			server := listen(t, func(w http.ResponseWriter, r *http.Request) {
				// only then the server sees that the client leaves
				_, _ = io.Copy(io.Discard, r.Body)
				if begin != "" {
					_, _ = io.WriteString(w, begin)
					_ = http.NewResponseController(w).Flush()
				}
				<-r.Context().Done()
				left <- struct{}{}
			})
			c := reach(t, server.URL, collector.TransportOptions{}, func(o *collector.Options) {
				o.Timeout, o.QueueTimeout = 100*time.Millisecond, 100*time.Millisecond
			})
			requireAllMissing(t, c.Collect(t.Context(), at(600), collector.Windows{}), server.URL+" sent no answer within 100ms")
			_, err := c.Queues(t.Context(), at(600))
			require.ErrorContains(t, err, "sent no answer within 100ms")
			<-left // Prometheus is told that nobody waits any more
		})
	}
}

// hijacked hears the request out and answers with bytes that are no HTTP.
func hijacked(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_, _ = io.WriteString(conn, text)
			_ = conn.Close()
		}
	}
}

func says(code int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = io.WriteString(w, text)
	}
}

// oneValue is a good answer except for the number of running requests.
func oneValue(value string) string {
	return fmt.Sprintf(`{"status":"success","data":{"resultType":"vector","result":[{"metric":{"wva_part":"running","namespace":%q,"pod":"pod-a",`+
		`"model_name":%q},"value":[1,%s]}]}}`, team, llama, value)
}

func TestWrongServerIsMissingWithRemedy(t *testing.T) {
	const apiRemedy = "check that the address is that of Prometheus' HTTP API"
	var leaked atomic.Int64
	elsewhere := listen(t, func(http.ResponseWriter, *http.Request) { leaked.Add(1) })
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   []string
	}{
		"a login page": {says(200, `<!doctype html><title>Sign in</title><form action="/login">`), []string{apiRemedy}},
		"nothing":      {says(200, ""), []string{apiRemedy}},
		"half JSON":    {says(200, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"pod"`), []string{apiRemedy}},
		"an answer that is cut off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100000")
			_, _ = io.WriteString(w, oneValue(`"4"`))
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, []string{"unexpected EOF", "check the address of Prometheus"}},
		"a value that is no number": {says(200, oneValue(`"four"`)), []string{apiRemedy}},
		"a value of another type":   {says(200, oneValue(`{}`)), []string{apiRemedy}},
		"another protocol":          {hijacked("SSH-2.0-OpenSSH_9.9\r\n"), []string{"malformed HTTP", "check the address of Prometheus"}},
		"a server that hangs up":    {hijacked(""), []string{"check the address of Prometheus"}},
		"a redirect to another host": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL+"/login", http.StatusTemporaryRedirect)
		}, []string{"a redirect to " + elsewhere.URL + "/login is not followed", "set the address of Prometheus to that of its API"}},
		"401":                      {says(401, "Unauthorized"), []string{"check the address and the credentials for Prometheus"}},
		"403":                      {says(403, "Forbidden"), []string{"check the address and the credentials for Prometheus"}},
		"an endless answer":        {says(200, strings.Repeat(" ", 5<<20)), []string{"larger than", "raise the limit", "check the address of Prometheus"}},
		"an endless error":         {says(500, strings.Repeat("stack trace ", 1<<20)), []string{"stack trace", "check that Prometheus is ready"}},
		"an error with status 200": {says(200, `{"status":"error","errorType":"execution","error":"out of memory"}`), []string{"out of memory"}},
	} {
		t.Run(name, func(t *testing.T) {
			site := reach(t, listen(t, c.answer).URL, collector.TransportOptions{BearerToken: secret, MaxAnswer: 1 << 20})
			observation := site.Collect(t.Context(), at(600), collector.Windows{})
			_, err := site.Queues(t.Context(), at(600))
			for _, want := range c.want {
				requireAllMissing(t, observation, want)
				require.ErrorContains(t, err, want)
			}
			require.NotContains(t, fmt.Sprint(observation, err), secret)
		})
	}
	require.Zero(t, leaked.Load())
}

func TestTrustThatFailsIsMissingWithRemedy(t *testing.T) {
	files, own, other := newDrawer(t), newAuthority(t), newAuthority(t)
	identity, _, _ := own.issue(time.Now().Add(time.Hour))
	trusting := collector.TransportOptions{CAFile: files.put("own", own.pem), ServerName: "prometheus.test"}
	mistrusting := collector.TransportOptions{CAFile: files.put("other", other.pem), ServerName: "prometheus.test"}
	empty := func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, nothing(r.FormValue("query"))) }
	secured, asking := listen(t, empty, withTLS(identity, nil)), listen(t, empty, withTLS(identity, own))
	plain := listen(t, empty)
	other443 := strings.Replace(plain.URL, "http:", "https:", 1)

	require.Empty(t, reach(t, secured.URL, trusting).Collect(t.Context(), at(600), collector.Windows{}).Missing)
	requireAllMissing(t, reach(t, secured.URL, mistrusting).Collect(t.Context(), at(600), collector.Windows{}), "set the CA file to the authority that signed")
	requireAllMissing(t, reach(t, asking.URL, trusting).Collect(t.Context(), at(600), collector.Windows{}), "set a certificate and key of an authority that it trusts")
	requireAllMissing(t, reach(t, other443, trusting).Collect(t.Context(), at(600), collector.Windows{}), "server gave HTTP response to HTTPS client")
	// The server answers and closes at once: some queries read its answer, others a connection
	// reset.
	mistaken := reach(t, strings.Replace(secured.URL, "https:", "http:", 1), trusting).Collect(t.Context(), at(600), collector.Windows{})
	require.Empty(t, mistaken.Usages)
	require.Empty(t, mistaken.Loads)
	hidden := make(map[fleet.LoadSource]bool)
	for _, missing := range mistaken.Missing {
		require.Contains(t, missing.Reason, "check the address")
		hidden[missing.Hides] = true
	}
	require.True(t, hidden[fleet.SourceEngine] && hidden[fleet.SourceGateway])
}

// mistral gives samples the model of another pod.
func mistral(samples []promstore.Sample) []promstore.Sample {
	for i := range samples {
		labels := with(samples[i].Labels)
		for j := range labels {
			if labels[j].Name == "model_name" {
				labels[j].Value = "mistral"
			}
		}
		samples[i].Labels = labels
	}
	return samples
}

// TestBrokenModelLeavesTheOthersAsTheyAre breaks the metrics of one model in the last minute, and
// compares the readings of the other with those that it has alone.
func TestBrokenModelLeavesTheOthersAsTheyAre(t *testing.T) {
	const broken = 585 // the second from which on
	observe := func(t *testing.T, expose func(second int) []promstore.Sample) collector.Observation {
		w := newWorld(t)
		w.scrapes("pod-a", 0, 600, steady("pod-a", 2))
		w.scrapes("pod-b", 0, 600, func(second int) []promstore.Sample {
			if expose == nil {
				return nil
			}
			if second < broken {
				return mistral(steady("pod-b", 3)(second))
			}
			return mistral(expose(second))
		})
		o := reach(t, listen(t, w.store.Handler().ServeHTTP).URL, collector.TransportOptions{}).Collect(t.Context(), at(600), collector.Windows{})
		require.Empty(t, o.Missing)
		return o
	}
	healthy := func(o collector.Observation) (usage fleet.Usage, load fleet.Load) {
		for _, load = range o.Loads {
			if load.Model == llama {
				break
			}
		}
		return usagesOf(o, "pod-a")[0], load
	}
	wantUsage, wantLoad := healthy(observe(t, nil))
	for name, c := range map[string]struct {
		expose func(second int) []promstore.Sample
		check  func(t *testing.T, usage fleet.Usage)
	}{
		"scrapes fail": {func(int) []promstore.Sample { return []promstore.Sample{} }, func(t *testing.T, usage fleet.Usage) {
			usage.FirstTokens = fleet.Reading{} // those before were asked for
			require.Equal(t, fleet.Usage{Namespace: team, Pod: "pod-b", Model: "mistral", Time: at(600)}, usage)
		}},
		"gauges are not numbers": {func(second int) []promstore.Sample {
			nan, total := math.NaN(), float64(3*second)
			return vllm("pod-b", 0, report{running: nan, waiting: nan, kv: nan, firstTokens: total, finished: total})
		}, func(t *testing.T, usage fleet.Usage) {
			for _, reading := range []fleet.Reading{usage.Running, usage.Waiting, usage.KV, usage.WaitingGrowth} {
				require.Equal(t, fleet.Reading{State: fleet.NaN}, reading)
			}
			present(t, 3, usage.FirstTokens)
		}},
		"counters are not numbers": {func(int) []promstore.Sample {
			nan := math.NaN()
			return vllm("pod-b", 0, report{running: 4, firstTokens: nan, finished: nan, prompt: nan, output: nan, tokenSeconds: nan, tokenGaps: nan})
		}, func(t *testing.T, usage fleet.Usage) {
			require.Equal(t, fleet.NaN, usage.FirstTokens.State)
			require.Equal(t, fleet.Reading{}, usage.ITL)
			present(t, 4, usage.Running)
		}},
		"counters begin anew": {func(second int) []promstore.Sample {
			return vllm("pod-b", 0, report{running: 4, firstTokens: float64(3 * (second - broken))})
		}, func(t *testing.T, usage fleet.Usage) {
			require.Equal(t, fleet.Reset, usage.FirstTokens.State)
			require.InDelta(t, 3, usage.FirstTokens.Value, 1.1)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			o := observe(t, c.expose)
			usage, load := healthy(o)
			require.Equal(t, wantUsage, usage)
			require.Equal(t, wantLoad, load)
			rows := usagesOf(o, "pod-b")
			require.Len(t, rows, 1)
			c.check(t, rows[0])
		})
	}
}

// TestUnknownScrapeIntervalsAreMissing has answers about the engines over a window that may be too
// short for them.
func TestUnknownScrapeIntervalsAreMissing(t *testing.T) {
	for name, c := range map[string]struct {
		failing []string // parts of the queries that fail
		want    string   // the source that hides the engines
	}{
		"alone":                          {[]string{"engine_intervals"}, "prometheus query scrape intervals"},
		"and only the gateway's queries": {[]string{"engine_intervals", "gateway_idle_known"}, "prometheus query scrape intervals"},
		"and one about the engines":      {[]string{"engine_intervals", "running"}, "prometheus query gauges"},
	} {
		t.Run(name, func(t *testing.T) {
			collect := newCollector(t, transport(func(_ *http.Request, text string) (*http.Response, error) {
				for _, part := range c.failing {
					if strings.Contains(text, "%22"+part+"%22") {
						return respond(http.StatusServiceUnavailable, "overloaded")
					}
				}
				return respond(http.StatusOK, nothing(text))
			}))
			var hiding []string
			for _, row := range collect.Collect(t.Context(), at(600), collector.Windows{}).Missing {
				if row.Hides == fleet.SourceEngine {
					hiding = append(hiding, row.Source)
				}
			}
			require.Equal(t, []string{c.want}, hiding)
		})
	}
}

func TestPrometheusWhoseClockIsBehindIsNotIdle(t *testing.T) {
	for name, c := range map[string]struct {
		behind int // seconds
		check  func(t *testing.T, o collector.Observation)
	}{
		"by two minutes": {120, func(t *testing.T, o collector.Observation) {
			usage := usagesOf(o, "pod-a")[0]
			for _, reading := range []fleet.Reading{usage.Running, usage.Waiting, usage.KV, usage.WaitingGrowth} {
				require.Equal(t, fleet.Reading{State: fleet.Stale}, reading)
			}
			require.Equal(t, fleet.Reading{}, usage.FirstTokens)
			require.Zero(t, usage.Scrapes)
		}},
		"by six minutes": {360, func(t *testing.T, o collector.Observation) {
			require.Equal(t, []fleet.Usage{{Namespace: team, Pod: "pod-a", Model: llama, Time: o.Time}}, o.Usages)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for second := 0; second <= 1200-c.behind; second += interval {
				require.NoError(t, w.store.Append(at(second), steady("pod-a", 2)(second)))
			}
			o := reach(t, listen(t, w.store.Handler().ServeHTTP).URL, collector.TransportOptions{}).Collect(t.Context(), at(1200), collector.Windows{})
			c.check(t, o)
			load := loadOf(t, o, fleet.SourceEngine)
			require.False(t, load.PeakCovered)
			require.Zero(t, load.IdleCovered)
		})
	}
}

func TestSamplesFromTheFutureAreNotSeen(t *testing.T) {
	past, ahead := newWorld(t), newWorld(t)
	past.scrapes("pod-a", 0, 600, steady("pod-a", 2))
	ahead.scrapes("pod-a", 0, 600, steady("pod-a", 2))
	ahead.scrapes("pod-a", 615, 900, steady("pod-a", 50))
	ahead.scrapes("pod-b", 615, 900, steady("pod-b", 1)) // all that it has is of the future
	o := reach(t, listen(t, ahead.store.Handler().ServeHTTP).URL, collector.TransportOptions{}).Collect(t.Context(), at(600), collector.Windows{})
	require.Equal(t, 300*time.Second, o.Behind)
	o.Behind = 0
	require.Equal(t, past.collect(), o)
}

func TestClockThatIsSetBackAsksAgain(t *testing.T) {
	var sent atomic.Int64
	server := listen(t, func(w http.ResponseWriter, r *http.Request) {
		sent.Add(1)
		says(503, "")(w, r)
	})
	c := reach(t, server.URL, collector.TransportOptions{})
	for i, second := range []int{612, 603, 585} { // twice about 600, then about an earlier instant
		require.NotEmpty(t, c.Collect(t.Context(), at(second), collector.Windows{}).Missing)
		require.EqualValues(t, mostQueries*(i+1), sent.Load(), "a failure of the future puts nothing off")
	}
}
