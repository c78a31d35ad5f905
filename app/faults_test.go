package app

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/demo/promstore"
)

// faultRow is a fault of the matrix: of the answers, of the scrapes, or the series of strangers.
type faultRow struct {
	name      string
	answer    func(testing.TB, int, []byte) (int, []byte)
	scrape    scrapeFunc
	strangers int  // pods of another cluster, beside those of the fleet
	restarts  bool // the counters begin again
	// most is the bound of the number, as a multiple of the fleet. Default 1.
	most float64
}

// has reports whether the load meets a query.
func (l faultLoad) has(query string) bool {
	return l.gateway || !strings.Contains(query, "gateway")
}

// half keeps the rows of every other pod, and the rows of models as they are.
func half(form *answerForm) {
	form.Data.Result = slices.DeleteFunc(form.Data.Result, func(row rowAnswer) bool {
		pod := row.Metric["pod"]
		return pod != "" && pod[len(pod)-1]%2 == 1
	})
}

// halved keeps the rows of every other pod and half of the values of a model, and not when it was
// last used: one of two stores did not answer.
func halved(form *answerForm) {
	half(form)
	form.Data.Result = slices.DeleteFunc(form.Data.Result, func(row rowAnswer) bool { return strings.Contains(row.Metric["wva_part"], "last_active") })
	for _, row := range form.Data.Result {
		part := row.Metric["wva_part"]
		if row.Metric["pod"] != "" || strings.HasSuffix(part, "known") || strings.HasSuffix(part, "covered") {
			continue
		}
		for _, pair := range append(row.Values, row.Value) {
			if len(pair) == 2 {
				value, err := strconv.ParseFloat(fmt.Sprint(pair[1]), 64)
				if err == nil {
					pair[1] = strconv.FormatFloat(value/2, 'g', -1, 64)
				}
			}
		}
	}
}

// relabel appends to the value of a label.
func relabel(name, suffix string) scrapeFunc {
	return func(_ string, series []promstore.Sample) ([]promstore.Sample, bool) {
		for i := range series {
			series[i].Labels = slices.Clone(series[i].Labels)
			for j, label := range series[i].Labels {
				if label.Name == name {
					series[i].Labels[j].Value += suffix
				}
			}
		}
		return series, true
	}
}

// twice has every series a second time, from another job.
func twice(_ string, series []promstore.Sample) ([]promstore.Sample, bool) {
	for _, sample := range slices.Clone(series) {
		labels := slices.DeleteFunc(slices.Clone(sample.Labels), func(l promstore.Label) bool { return l.Name == "job" })
		series = append(series, promstore.Sample{Name: sample.Name, Labels: append(labels, promstore.Label{Name: "job", Value: "again"}), Value: sample.Value})
	}
	return series, true
}

func faultRows() []faultRow {
	return []faultRow{
		{name: "missing, failed", answer: func(testing.TB, int, []byte) (int, []byte) {
			return http.StatusServiceUnavailable, []byte(`{"status":"error","errorType":"timeout","error":"query timed out"}`)
		}},
		{name: "missing, empty", answer: changed(func(form *answerForm) { form.Data.Result = nil })},
		{name: "partial, with a warning", answer: changed(func(form *answerForm) {
			halved(form)
			form.Warnings = []string{"receive series from Addr: store-1: context deadline exceeded"}
		})},
		{name: "partial, isPartial", answer: changed(func(form *answerForm) { halved(form); form.IsPartial = true })},
		{name: "half of the pods", answer: changed(half)},
		{name: "stale", scrape: func(string, []promstore.Sample) ([]promstore.Sample, bool) { return nil, false }},
		{name: "NaN", answer: changed(values("NaN"))},
		{name: "contradicting zero", answer: changed(values("0"))},
		{name: "duplicated", scrape: twice},
		{name: "relabelled, pod", scrape: relabel("pod", ":8000")},
		{name: "relabelled, model", scrape: relabel("model_name", "-v2")},
		{name: "reset", restarts: true},
		{name: "other cluster", strangers: 14, most: 3.6},
	}
}

func faultLoads() []faultLoad {
	constant := func(time.Duration) float64 { return 2.4 }
	peak := func(after time.Duration) float64 {
		if after < -2*time.Minute {
			return 2.4
		}
		return 1
	}
	return []faultLoad{
		{name: "constant", replicas: 10, gateway: true, rate: constant},
		{name: "after a peak", replicas: 10, gateway: true, rate: peak},
		{name: "after a peak, no gateway", replicas: 10, rate: peak},
		{name: "idle", replicas: 2, gateway: true, rate: func(after time.Duration) float64 {
			if after < -time.Minute {
				return 1.5
			}
			return 0
		}},
	}
}

// faultInstants are those of the decisions: during the fault and after it.
func faultInstants() []time.Duration {
	return []time.Duration{15 * time.Second, 3 * time.Minute, 330 * time.Second, 585 * time.Second, 11 * time.Minute, faultWatched}
}

// TestFaultMatrix has each fault of each query of a cycle, and of all of them together. The
// number never falls below that of a run without the fault, it rises by no more than the fault
// adds, and it is the same again once the fault has left the windows.
func TestFaultMatrix(t *testing.T) {
	for _, load := range faultLoads() {
		t.Run(load.name, func(t *testing.T) {
			if testing.Short() && load.name != "idle" {
				t.Skip("-short: one load and two queries have all the goroutines that the race detector watches")
			}
			p := newFailingPrometheus(t, load)
			var usual []int
			healthy := load.decide(t, p.listen(t, cell{}))
			require.Equal(t, load.replicas, healthy.at(t, -faultScrape).Replicas)
			for _, after := range faultInstants() {
				usual = append(usual, healthy.at(t, after).Replicas)
			}
			for _, fault := range faultRows() {
				for _, query := range append([]string{everyQuery, heavyQueries}, slices.Sorted(maps.Keys(queryMarks))...) {
					if !load.has(query) || testing.Short() && query != everyQuery && query != heavyQueries {
						continue
					}
					t.Run(fault.name+"/"+query, func(t *testing.T) {
						run := load.decide(t, p.listen(t, cell{fault, query}))
						for i, after := range faultInstants() {
							d := run.at(t, after)
							most := max(usual[i], int(math.Ceil(cmp.Or(fault.most, 1)*float64(load.replicas))))
							if after == faultWatched {
								most = usual[i]
							}
							if d.Replicas < usual[i] || d.Replicas > most {
								t.Errorf("%v after the fault began: %d replicas, want %d to %d: %v", after, d.Replicas, usual[i], most, d.Reason)
							}
						}
					})
				}
			}
		})
	}
}
