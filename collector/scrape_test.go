package collector_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/collector"
	"github.com/wva-project/wva/demo/promstore"
	"github.com/wva-project/wva/engine"
	"github.com/wva-project/wva/engine/exposition"
	"github.com/wva-project/wva/fleet"
)

// scraper is a Prometheus by the Accept header that it sends; see acceptHeader in its
// scrape/scrape.go and TestAcceptHeader beside it. The weights differ between minor versions.
type scraper struct {
	name, accept string
	sglang       string // stored between the engine's name and the metric's
}

var scrapers = []scraper{
	{"2.x", "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2", "_"},
	{"3.x", "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1", ":"},
	{"3.x, metric_name_escaping_scheme: underscores", "application/openmetrics-text;version=1.0.0;escaping=underscores;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=underscores;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1", "_"},
	{"3.x, native histograms", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.6,application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1", ":"},
	{"2.x and 3.x, scrape_protocols: [PrometheusText0.0.4]", "text/plain;version=0.0.4;q=0.5,*/*;q=0.4", ":"},
}

// answer is how the client library of an engine or a gateway answers a scrape.
type answer func(page, accept string) (contentType, body string)

// inGo answers like client_golang's handler in an endpoint picker: protobuf or text, and no
// OpenMetrics.
func inGo(page, accept string) (contentType, body string) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(page))
	if err != nil {
		panic(err) // a golden page
	}
	format := expfmt.NegotiateAccept(http.Header{"Accept": {accept}}, expfmt.DefaultAcceptedFormats()...)
	var out strings.Builder
	encoder := expfmt.NewEncoder(&out, format)
	for _, family := range families {
		if err := encoder.Encode(family); err != nil {
			panic(err) // into a buffer
		}
	}
	return string(format), out.String()
}

// scrapePage serves the page of an engine as it is after so many seconds, and returns the samples
// that a Prometheus with the Accept header stores.
func scrapePage(t *testing.T, pod, page, accept string, as answer) []promstore.Sample {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		contentType, body := as(page, r.Header.Get("Accept"))
		w.Header().Set("Content-Type", contentType)
		_, _ = io.WriteString(w, body)
	}))
	defer server.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	require.NoError(t, err)
	request.Header.Set("Accept", accept)
	response, err := server.Client().Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return parsePage(t, pod, body, response.Header.Get("Content-Type"))
}

// parsePage reads a page as a scrape does, and adds the labels of the target.
func parsePage(t *testing.T, pod string, body []byte, contentType string) []promstore.Sample {
	t.Helper()
	format := expfmt.Format(contentType)
	if format.FormatType() != expfmt.TypeProtoDelim {
		// The series of all text formats look alike, and the comments do not matter.
		body = regexp.MustCompile(`(?m)^#.*\n`).ReplaceAll(body, nil)
		format = expfmt.NewFormat(expfmt.TypeTextPlain)
	}
	decoder := expfmt.NewDecoder(bytes.NewReader(body), format)
	options := &expfmt.DecodeOptions{Timestamp: model.Now()}
	var samples []promstore.Sample
	for {
		vector := model.Vector{}
		err := (&expfmt.SampleDecoder{Dec: decoder, Opts: options}).Decode(&vector)
		if errors.Is(err, io.EOF) {
			return samples
		}
		require.NoError(t, err, "%s\n%s", contentType, body)
		for _, series := range vector {
			sample := promstore.Sample{Value: float64(series.Value), Labels: promstore.Labels("namespace", team, "pod", pod, "job", "engines")}
			for name, value := range series.Metric {
				if name == model.MetricNameLabel {
					sample.Name = string(value)
				} else {
					sample.Labels = append(sample.Labels, promstore.Label{Name: string(name), Value: string(value)})
				}
			}
			samples = append(samples, sample)
		}
	}
}

// goldenPage returns a /metrics page as it is after so many seconds: it was taken after a minute.
func goldenPage(t *testing.T, name string, seconds int) string {
	t.Helper()
	content, err := os.ReadFile("../engine/testdata/" + name + ".metrics")
	require.NoError(t, err)
	var out strings.Builder
	grows := false
	for line := range strings.Lines(string(content)) {
		words := strings.Fields(line)
		if words[0] == "#" {
			grows = words[1] == "TYPE" && (words[3] == "counter" || words[3] == "histogram")
		} else if series, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " "); grows {
			value, err := strconv.ParseFloat(text, 64)
			require.NoError(t, err, line)
			line = series + " " + strconv.FormatFloat(value*float64(seconds)/60, 'f', -1, 64) + "\n"
		}
		out.WriteString(line)
	}
	return out.String()
}

// storedNames returns the names of samples, each once.
func storedNames(samples []promstore.Sample) []string {
	var names []string
	for _, sample := range samples {
		names = append(names, sample.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// scraped is a Prometheus that has scraped a page every fifteen seconds for an hour.
func scraped(t *testing.T, page string, by scraper, as answer) *world {
	t.Helper()
	w := newWorld(t)
	w.scrapes("pod-a", 0, 3600, func(second int) []promstore.Sample {
		return scrapePage(t, "pod-a", goldenPage(t, page, second), by.accept, as)
	})
	return w
}

// answerOf returns how an engine answers a scrape.
func answerOf(e engine.Engine) answer {
	if slices.Contains([]string{"sglang", "trtllm-serve"}, string(e.Name)) {
		return exposition.Python
	}
	return exposition.PlainText
}

func TestEnginesAreReadWhateverNamesPrometheusStores(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: 94 s under the race detector")
	}
	for _, e := range engine.Engines() {
		as := answerOf(e)
		var first collector.Observation
		for i, by := range scrapers {
			separator := ":"
			if e.Name == fleet.EngineSGLang {
				separator = by.sglang
			}
			t.Run(e.Title+" by Prometheus "+by.name, func(t *testing.T) {
				page := goldenPage(t, string(e.Name), 60)
				plain := storedNames(parsePage(t, "", []byte(page), "text/plain; version=0.0.4"))
				for i := range plain {
					plain[i] = strings.Replace(plain[i], ":", separator, 1)
				}
				slices.Sort(plain)
				require.Equal(t, plain, storedNames(scrapePage(t, "pod-a", page, by.accept, as)))

				observation := scraped(t, string(e.Name), by, as).collect()
				if i == 0 {
					first = observation
					requirePage(t, e, observation)
				}
				require.Equal(t, first, observation)
			})
		}
	}
}

// requirePage asserts the readings of an engine's golden page.
func requirePage(t *testing.T, e engine.Engine, o collector.Observation) {
	t.Helper()
	require.Len(t, o.Usages, 1)
	usage, load := o.Usages[0], loadOf(t, o, fleet.SourceEngine)
	present(t, 4, usage.Running)
	present(t, 3, usage.Waiting)
	present(t, 0.25, usage.KV)
	present(t, 432000, usage.KVTokens)
	present(t, 2, usage.FirstTokens)
	present(t, 2, usage.MeanRate)
	present(t, 0, usage.WaitingGrowth)
	require.Equal(t, llama, load.Model)
	present(t, 2, load.PeakArrivals)
	present(t, 7, load.PeakInFlight)
	present(t, 1000, load.PromptTokens)
	present(t, 200, load.OutputTokens)
	require.True(t, load.PeakCovered)
	require.Equal(t, at(3600), load.LastActive)
	for _, reading := range []struct {
		of   engine.Quantity
		want float64
		got  fleet.Reading
	}{
		{engine.InterTokenLatency, 0.02, usage.ITL}, {engine.InterTokenLatency, 0.02, load.ITL},
		{engine.TimeToFirstToken, 0.475, load.TTFT}, {engine.PrefixHits, 0.3, load.PrefixHits},
		{engine.PrefillTime, 0.2, usage.MeanPrefill}, {engine.Progress, usage.Progress.Value, usage.Progress},
	} {
		if len(e.Names(reading.of)) > 0 {
			present(t, reading.want, reading.got)
		} else {
			require.Equal(t, fleet.Absent, reading.got.State, "%s is unknown, not zero", reading.of)
		}
	}
	switch {
	case len(e.Names(engine.PromptLengths)) == 0:
		require.Empty(t, load.PromptLengths)
		require.Empty(t, load.OutputLengths)
	case e.Name == "triton-tensorrt-llm":
		wantLengths(t, load.PromptLengths, []float64{10, 50, 100, 500, 1000, 0}, []float64{0, 0, 0, 0.25, 0.25, 0.5})
		wantLengths(t, load.OutputLengths, []float64{10, 50, 100, 500, 1000, 0}, []float64{0, 0, 0.25, 0.75, 0, 0})
	default:
		wantLengths(t, load.PromptLengths, []float64{100, 1000, 10000, 0}, []float64{0, 0.5, 0.5, 0})
		wantLengths(t, load.OutputLengths, []float64{100, 1000, 10000, 0}, []float64{0.25, 0.75, 0, 0})
	}
}

func TestGatewaysAreReadWhateverPrometheusAsksFor(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: 36 s under the race detector")
	}
	for _, g := range engine.Gateways() {
		for _, by := range scrapers {
			t.Run(g.Title+" by Prometheus "+by.name, func(t *testing.T) {
				load := scraped(t, g.Name, by, inGo).load(fleet.SourceGateway)
				require.Equal(t, llama, load.Model, "the served name")
				present(t, 2, load.Arrivals)
				present(t, 7, load.Queued)
				present(t, 2, load.PeakArrivals)
				require.True(t, load.PeakCovered)
				require.Equal(t, at(3600), load.LastActive)
			})
		}
	}
}

func TestCopiesOfARouterAreNotCounted(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: 38 s under the race detector")
	}
	w := scraped(t, "vllm", scrapers[0], exposition.PlainText)
	alone := w.collect()
	for _, by := range scrapers {
		t.Run(by.name, func(t *testing.T) {
			for name, as := range map[string]answer{"text": exposition.PlainText, "negotiated": exposition.Python} {
				t.Run(name, func(t *testing.T) {
					w := scraped(t, "vllm", scrapers[0], exposition.PlainText)
					w.scrapes("router", 0, 3600, func(second int) []promstore.Sample {
						return scrapePage(t, "router", goldenPage(t, "production-stack-router", second), by.accept, as)
					})
					require.Equal(t, alone, w.collect(), "neither counted nor missing")

					// Its series are in the windows for a while after it is gone.
					require.NoError(t, w.store.Gone("router", at(3601)))
					w.scrapes("pod-a", 3615, 3630, func(second int) []promstore.Sample {
						return scrapePage(t, "pod-a", goldenPage(t, "vllm", second), scrapers[0].accept, exposition.PlainText)
					})
					require.Len(t, w.collect().Usages, 1)
				})
			}
		})
	}
}

func TestEngineWithoutModelIsReportedBesideARouter(t *testing.T) {
	w := newWorld(t)
	w.scrapes("router", 0, 60, func(second int) []promstore.Sample {
		return scrapePage(t, "router", goldenPage(t, "production-stack-router", second), scrapers[0].accept, exposition.PlainText)
	})
	w.scrapes("pod-a", 0, 60, func(second int) []promstore.Sample {
		return renamed(steady("pod-a", 2)(second), "model_name", "")
	})
	missing := w.collector.Collect(t.Context(), at(60), collector.Windows{}).Missing
	require.Len(t, missing, 1)
	require.Equal(t, "prometheus", missing[0].Source)
	require.Empty(t, missing[0].Hides)
	require.Contains(t, missing[0].Reason, "such as those of team/pod-a; add them by relabeling the scrape")
}
