package promstore_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/demo/promstore"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func open(t testing.TB) *promstore.Store {
	t.Helper()
	store, err := promstore.New()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store
}

func at(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

func gauge(pod string, value float64) promstore.Sample {
	return promstore.Sample{Name: "load", Labels: promstore.Labels("pod", pod, "namespace", "team"), Value: value}
}

func TestVanishedSeriesIsStaleAtOnce(t *testing.T) {
	store := open(t)
	require.NoError(t, store.Scrape("a", at(0), []promstore.Sample{gauge("a-0", 1), gauge("a-1", 2)}))
	require.NoError(t, store.Scrape("b", at(0), []promstore.Sample{gauge("b-0", 4)}))
	require.NoError(t, store.Scrape("a", at(15), []promstore.Sample{gauge("a-0", 1)}))

	vector, err := store.Query(t.Context(), "load", at(16))
	require.NoError(t, err)
	require.Len(t, vector, 2, "a-1 vanished from its target; b was not scraped again and stays for five minutes")

	require.NoError(t, store.Gone("b", at(30)))
	require.NoError(t, store.Scrape("a", at(30), nil))
	vector, err = store.Query(t.Context(), "load", at(31))
	require.NoError(t, err)
	require.Empty(t, vector)

	vector, err = store.Query(t.Context(), "sum(load)", at(1))
	require.NoError(t, err)
	require.InDelta(t, 7, vector[0].F, 0, "earlier samples stay")
}

func TestSeriesReturnsAfterStaleness(t *testing.T) {
	store := open(t)
	require.NoError(t, store.Scrape("a", at(0), []promstore.Sample{gauge("a", 1)}))
	require.NoError(t, store.Scrape("a", at(15), nil))
	require.NoError(t, store.Scrape("a", at(30), []promstore.Sample{gauge("a", 3)}))
	require.NoError(t, store.Scrape("a", at(45), nil))
	for second, want := range map[int]int{0: 1, 20: 0, 31: 1, 46: 0} {
		vector, err := store.Query(t.Context(), "load", at(second))
		require.NoError(t, err)
		require.Len(t, vector, want, "at second %d", second)
	}
}

func TestLookbackIsFiveMinutes(t *testing.T) {
	store := open(t)
	require.NoError(t, store.Append(at(0), []promstore.Sample{gauge("a", 1)}))
	vector, err := store.Query(t.Context(), "load", at(299))
	require.NoError(t, err)
	require.Len(t, vector, 1)
	vector, err = store.Query(t.Context(), "load", at(300))
	require.NoError(t, err)
	require.Empty(t, vector)
}

func TestSeriesMayBeAppendedOneAfterTheOther(t *testing.T) {
	store := open(t)
	for _, pod := range []string{"a", "b"} {
		for second := 0; second <= 6*3600; second += 60 {
			require.NoError(t, store.Append(at(second), []promstore.Sample{gauge(pod, float64(second))}))
		}
	}
	vector, err := store.Query(t.Context(), `sum(count_over_time(load[6h]))`, at(6*3600))
	require.NoError(t, err)
	require.InDelta(t, 720, vector[0].F, 0)
}

func TestSampleOutOfOrderIsRejectedByName(t *testing.T) {
	store := open(t)
	require.NoError(t, store.Append(at(60), []promstore.Sample{gauge("a", 1)}))
	err := store.Append(at(0), []promstore.Sample{gauge("b", 1), gauge("a", 1)})
	require.ErrorContains(t, err, "load")
	vector, err := store.Query(t.Context(), `load{pod="b"}`, at(0))
	require.NoError(t, err)
	require.Empty(t, vector, "all or none")
}

func TestQueryRejectsResultsOtherThanVectors(t *testing.T) {
	store := open(t)
	require.NoError(t, store.Append(at(0), []promstore.Sample{gauge("a", 1)}))
	vector, err := store.Query(t.Context(), "1+1", at(0))
	require.NoError(t, err)
	require.InDelta(t, 2, vector[0].F, 0)
	_, err = store.Query(t.Context(), "load[1m]", at(0))
	require.ErrorContains(t, err, "range vector")
	_, err = store.Query(t.Context(), "load{", at(0))
	require.Error(t, err)
}

func TestHandlerAnswersInPrometheusJSON(t *testing.T) {
	store := open(t)
	odd := promstore.Sample{Name: "odd", Labels: promstore.Labels("text", "a \"quoted\" <b>\\\u00e9\n"), Value: 0.5}
	require.NoError(t, store.Append(at(0), []promstore.Sample{gauge("a", math.NaN()), gauge("b", math.Inf(1)), odd}))
	server := httptest.NewServer(store.Handler())
	defer server.Close()
	now := fmt.Sprint(at(1).Unix())

	for _, c := range []struct {
		name, path string
		form       url.Values
		code       int
		want       string
	}{
		{"NaN", "query", url.Values{"query": {`load{pod="a"}`}, "time": {now}}, 200,
			`{"status":"success","data":{"resultType":"vector","result":[{"metric":{"__name__":"load","namespace":"team","pod":"a"},"value":[1767225601,"NaN"]}]}}`},
		{"infinity at a fraction of a second", "query", url.Values{"query": {`max by (pod) (load{pod="b"})`}, "time": {now + ".25"}}, 200,
			`{"status":"success","data":{"resultType":"vector","result":[{"metric":{"pod":"b"},"value":[1767225601.25,"+Inf"]}]}}`},
		{"letters to escape", "query", url.Values{"query": {`odd`}, "time": {now}}, 200,
			`{"status":"success","data":{"resultType":"vector","result":[{"metric":{"__name__":"odd","text":"a \"quoted\" <b>\\é\n"},"value":[1767225601,"0.5"]}]}}`},
		{"nothing", "query", url.Values{"query": {`none`}, "time": {now}}, 200,
			`{"status":"success","data":{"resultType":"vector","result":[]}}`},
		{"a scalar", "query", url.Values{"query": {`1e-9`}, "time": {now}}, 200,
			`{"status":"success","data":{"resultType":"scalar","result":[1767225601,"1e-09"]}}`},
		{"a string", "query", url.Values{"query": {`"x"`}, "time": {now}}, 200,
			`{"status":"success","data":{"resultType":"string","result":[1767225601,"x"]}}`},
		{"a bad query", "query", url.Values{"query": {`load{`}, "time": {now}}, 400, `"errorType":"bad_data","error":"invalid parameter \"query\": `},
		{"a bad time", "query", url.Values{"query": {`load`}, "time": {"noon"}}, 400, `"errorType":"bad_data"`},
		{"a bad timeout", "query", url.Values{"query": {`load`}, "timeout": {"noon"}}, 400, `"errorType":"bad_data"`},
		{"a failing query", "query", url.Values{"query": {`label_replace(load, "pod", "x", "", "")`}, "time": {now}}, 422, `"errorType":"execution"`},
		{"a timeout", "query", url.Values{"query": {`load`}, "time": {now}, "timeout": {"1e-9"}}, 503, `"errorType":"timeout"`},
		{"a range", "query_range", url.Values{"query": {`load{pod="b"}`}, "start": {now}, "end": {fmt.Sprint(at(16).Unix())}, "step": {"15s"}}, 200,
			`"resultType":"matrix","result":[{"metric":{"__name__":"load","namespace":"team","pod":"b"},"values":[[1767225601,"+Inf"],[1767225616,"+Inf"]]}]`},
		{"a range backwards", "query_range", url.Values{"query": {`load`}, "start": {"10"}, "end": {"1"}, "step": {"1"}}, 400, `end timestamp must not be before`},
		{"a range without steps", "query_range", url.Values{"query": {`load`}, "start": {"1"}, "end": {"10"}, "step": {"0"}}, 400, `zero or negative`},
		{"a range of too many steps", "query_range", url.Values{"query": {`load`}, "start": {"0"}, "end": {"20000"}, "step": {"1"}}, 400, `exceeded maximum resolution`},
	} {
		t.Run(c.name, func(t *testing.T) {
			posted, err := http.PostForm(server.URL+"/api/v1/"+c.path, c.form)
			require.NoError(t, err)
			got, err := http.Get(server.URL + "/api/v1/" + c.path + "?" + c.form.Encode())
			require.NoError(t, err)
			for _, response := range []*http.Response{posted, got} {
				body, err := io.ReadAll(response.Body)
				require.NoError(t, err)
				require.NoError(t, response.Body.Close())
				require.Equal(t, c.code, response.StatusCode, "%s", body)
				require.Contains(t, string(body), c.want)
				require.True(t, json.Valid(body))
				require.Equal(t, "application/json", response.Header.Get("Content-Type"))
			}
		})
	}
}

func TestQueryWithoutTimeIsAtTheNewestSample(t *testing.T) {
	store := open(t)
	require.NoError(t, store.Append(at(0), []promstore.Sample{gauge("a", 1)}))
	value, _, err := clientOf(t, store).Query(t.Context(), "load", time.Time{})
	require.NoError(t, err)
	require.Len(t, value, 1)
}

func TestClientReadsResultAndWarnings(t *testing.T) {
	store := open(t)
	bucket := promstore.Sample{Name: "wait_bucket", Labels: promstore.Labels("le", "much"), Value: 1}
	require.NoError(t, store.Append(at(0), []promstore.Sample{bucket, gauge("a", 2)}))
	client := clientOf(t, store)

	value, warnings, err := client.Query(t.Context(), "load", at(1))
	require.NoError(t, err)
	require.Empty(t, warnings)
	require.Equal(t, model.Vector{{
		Metric:    model.Metric{"__name__": "load", "namespace": "team", "pod": "a"},
		Timestamp: model.TimeFromUnix(at(1).Unix()), Value: 2,
	}}, value)

	_, warnings, err = client.Query(t.Context(), "histogram_quantile(0.9, wait_bucket)", at(1))
	require.NoError(t, err)
	require.NotEmpty(t, warnings)

	_, _, err = client.Query(t.Context(), "load{", at(1))
	var rejected *v1.Error
	require.ErrorAs(t, err, &rejected)
	require.Equal(t, v1.ErrBadData, rejected.Type)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = client.Query(ctx, "load", at(1))
	require.ErrorIs(t, err, context.Canceled)
}

// client returns no infos, which these tests do not need.
type client struct{ v1.API }

func (c client) Query(ctx context.Context, query string, at time.Time) (model.Value, v1.Warnings, error) {
	value, warnings, _, err := c.API.Query(ctx, query, at)
	return value, warnings, err
}

func clientOf(t testing.TB, store *promstore.Store) client {
	t.Helper()
	c, err := api.NewClient(api.Config{Address: "http://prometheus.invalid", RoundTripper: store.Transport()})
	require.NoError(t, err)
	return client{v1.NewAPI(c)}
}

func BenchmarkScrape(b *testing.B) {
	store := open(b)
	samples := make([]promstore.Sample, 500)
	for i := range samples {
		samples[i] = gauge(fmt.Sprint("pod-", i), float64(i))
	}
	for i := 0; b.Loop(); i++ {
		require.NoError(b, store.Scrape("a", at(15*i), samples))
	}
}

func BenchmarkQuery(b *testing.B) {
	store := open(b)
	for step := range 240 {
		samples := make([]promstore.Sample, 500)
		for i := range samples {
			samples[i] = gauge(fmt.Sprint("pod-", i), float64(i*step))
		}
		require.NoError(b, store.Scrape("a", at(15*step), samples))
	}
	c := clientOf(b, store)
	for _, expression := range []string{"load", "sum by (pod) (rate(load[1m]))", "max_over_time(sum(rate(load[1m]))[5m:15s])"} {
		b.Run(strings.ReplaceAll(expression, " ", ""), func(b *testing.B) {
			for b.Loop() {
				_, _, err := c.Query(b.Context(), expression, at(15*239))
				require.NoError(b, err)
			}
		})
	}
}
