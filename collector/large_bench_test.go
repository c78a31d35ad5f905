package collector_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/collector"
)

const (
	podsPerModel = 25
	nextCycles   = 4 // of which one asks for the mix
)

// BenchmarkCollectLarge reads answers about up to 50,000 pods of 2,000 models over HTTP, compressed
// as Prometheus compresses them. The answers are made before: Prometheus' own work is not in the
// figures, the transport over the loopback and all that the collector does is. decode-ms is the
// part that client_golang takes to make values of the JSON, measured apart, one answer after the
// other. Peak and kept are the heap while it collects and after it: answers are kept for the
// repetition of an instant, and for the turns of models. Each cycle is the first of a server, with
// the queries about turns before it; next-cpu-ms is the mean of the cycles after it.
func BenchmarkCollectLarge(b *testing.B) {
	for _, models := range []int{400, 2_000} {
		b.Run(fmt.Sprintf("pods=%d", models*podsPerModel), func(b *testing.B) { benchmarkCollectLarge(b, models) })
	}
}

func benchmarkCollectLarge(b *testing.B, models int) {
	prometheus := newRecording(b, models)
	server := httptest.NewServer(prometheus)
	b.Cleanup(server.Close)
	options := collector.Options{Address: server.URL, Lag: -1, Timeout: 14 * time.Second, Logger: quiet()}
	collect := func() (*collector.Collector, collector.Observation) {
		c, err := collector.New(options) // each is new: nothing is answered from memory
		require.NoError(b, err)
		observation := c.Collect(b.Context(), at(prometheus.last), objectives)
		require.Empty(b, observation.Missing)
		require.Len(b, observation.Usages, models*podsPerModel)
		require.Len(b, observation.Loads, models)
		return c, observation
	}
	decode := prometheus.decode(b)
	prometheus.forgetPlain() // else the garbage collector allows for as much garbage again
	before := liveHeap()
	var peak uint64
	var used time.Duration
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		runtime.GC()
		b.StartTimer()
		stop := watchHeap()
		begun := cpuTime(b)
		collect()
		used += cpuTime(b) - begun
		peak = max(peak, stop())
	}
	b.ReportMetric(float64(prometheus.sent.Load())/float64(b.N)/1e6, "wire-MB")
	b.ReportMetric(float64(prometheus.plain)/1e6, "json-MB")
	b.ReportMetric(float64(prometheus.rows)/1e3, "krows")
	b.ReportMetric(float64(peak-min(peak, before))/1e6, "peak-MB")
	b.ReportMetric(float64(decode.Milliseconds()), "decode-ms")
	b.ReportMetric(float64(used.Milliseconds())/float64(b.N), "cpu-ms")

	c, observation := collect()
	begun := cpuTime(b)
	for cycle := range nextCycles {
		observation = c.Collect(b.Context(), at(prometheus.last+interval*(1+cycle)), objectives)
	}
	b.ReportMetric(float64((cpuTime(b)-begun).Milliseconds())/nextCycles, "next-cpu-ms")
	b.ReportMetric(float64(liveHeap()-before)/1e6, "kept-MB")
	runtime.KeepAlive(c)
	runtime.KeepAlive(observation)
}

// cpuTime returns the processor time that the process has used.
func cpuTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func liveHeap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// watchHeap looks at the heap until the function that it returns is called, which returns the most
// that it saw.
func watchHeap() (stop func() uint64) {
	ended := make(chan struct{})
	var watching sync.WaitGroup
	var most uint64
	watching.Go(func() {
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		ticker := time.NewTicker(2 * time.Millisecond)
		defer ticker.Stop()
		for {
			metrics.Read(sample)
			most = max(most, sample[0].Value.Uint64())
			select {
			case <-ticker.C:
			case <-ended:
				return
			}
		}
	})
	return func() uint64 {
		close(ended)
		watching.Wait()
		return most
	}
}

// recording answers queries about a large fleet. A real engine was asked about one model before;
// each other model gets the same answer under its own name.
type recording struct {
	last    int // the second that is asked about
	answers map[string]recorded
	plain   int // bytes of all answers
	rows    int
	sent    atomic.Int64 // bytes
}

// recorded is the answer to one query.
type recorded struct{ plain, compressed []byte }

// newRecording lets a collector ask about one model, and records the answers, multiplied.
func newRecording(b *testing.B, models int) *recording {
	w := benchmarkFleet(b, podsPerModel, exposeVLLM)
	r := &recording{last: w.last, answers: make(map[string]recorded)}
	var mu sync.Mutex
	bodies := make(map[string][]byte)
	server := httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		answer := httptest.NewRecorder()
		w.store.Handler().ServeHTTP(answer, request)
		mu.Lock()
		bodies[request.FormValue("query")] = answer.Body.Bytes()
		mu.Unlock()
		_, _ = response.Write(answer.Body.Bytes())
	}))
	defer server.Close()
	c, err := collector.New(collector.Options{Address: server.URL, Lag: -1, Logger: quiet()})
	require.NoError(b, err)
	require.Empty(b, c.Collect(b.Context(), at(w.last), objectives).Missing)
	for query, body := range bodies {
		var small struct {
			Data struct {
				ResultType string
				Result     []json.RawMessage
			}
		}
		require.NoError(b, json.Unmarshal(body, &small))
		answer := multiply(b, models, small.Data.ResultType, small.Data.Result)
		r.answers[query] = answer
		r.plain += len(answer.plain)
		r.rows += len(small.Data.Result) * models
	}
	return r
}

// multiply returns the answer that has the rows of one model and its pods once for every model.
func multiply(b *testing.B, models int, resultType string, rows []json.RawMessage) recorded {
	var plain, compressed bytes.Buffer
	zip := gzip.NewWriter(&compressed)
	both := io.MultiWriter(&plain, zip)
	fmt.Fprintf(both, `{"status":"success","data":{"resultType":%q,"result":[`, resultType)
	random, separator := rand.New(rand.NewPCG(1, 2)), ""
	for i := range models {
		rename := strings.NewReplacer(llama, fmt.Sprintf("%s-%04d", llama, i), `"pod-`, fmt.Sprintf(`"llama-%04d-pod-`, i))
		for _, row := range rows {
			fmt.Fprint(both, separator, vary(random, rename.Replace(string(row))))
			separator = ","
		}
	}
	fmt.Fprint(both, `]}}`)
	require.NoError(b, zip.Close())
	return recorded{plain: plain.Bytes(), compressed: compressed.Bytes()}
}

// vary changes the decimals of the value of a row: equal values would be compressed away.
func vary(random *rand.Rand, row string) string {
	varied := []byte(row)
	for i := strings.LastIndexByte(row, '.') + 1; i > strings.Index(row, `"value"`) && '0' <= row[i] && row[i] <= '9'; i++ {
		varied[i] = byte('0' + random.IntN(10))
	}
	return string(varied)
}

// decode returns how long client_golang takes to read all answers, without transport and
// decompression.
func (r *recording) decode(b *testing.B) time.Duration {
	client, err := api.NewClient(api.Config{Address: "http://prometheus.invalid", RoundTripper: inMemory{r}})
	require.NoError(b, err)
	prometheus, rows, begun := v1.NewAPI(client), 0, time.Now()
	for query := range r.answers {
		value, _, _, err := prometheus.Query(b.Context(), query, at(r.last))
		require.NoError(b, err)
		switch answer := value.(type) {
		case model.Vector:
			rows += len(answer)
		case model.Matrix:
			rows += len(answer)
		}
	}
	took := time.Since(begun)
	require.Equal(b, r.rows, rows)
	return took
}

// forgetPlain drops the answers that are not compressed.
func (r *recording) forgetPlain() {
	for query, answer := range r.answers {
		r.answers[query] = recorded{compressed: answer.compressed}
	}
}

// inMemory answers without a network and uncompressed.
type inMemory struct{ *recording }

func (m inMemory) RoundTrip(request *http.Request) (*http.Response, error) {
	if err := request.ParseForm(); err != nil {
		return nil, err
	}
	answer := m.answers[request.FormValue("query")]
	return &http.Response{
		StatusCode: http.StatusOK, Request: request, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(answer.plain)),
	}, nil
}

func (r *recording) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	answer, known := r.answers[request.FormValue("query")]
	if !known {
		http.Error(w, "this query was not recorded", http.StatusInternalServerError)
		return
	}
	body := answer.compressed
	w.Header().Set("Content-Encoding", "gzip")
	w.Header().Set("Content-Type", "application/json")
	r.sent.Add(int64(len(body)))
	_, _ = w.Write(body)
}
