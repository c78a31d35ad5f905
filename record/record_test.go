package record_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/demo/promstore"
	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/record"
	"github.com/wva-project/wva/simulation"
)

var (
	epoch = time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	chat  = fleet.ModelID{Namespace: "llm", Name: "chat"}
	chat1 = fleet.VariantID{Namespace: "llm", Name: "chat"}
)

// scraped is a Prometheus that scrapes a fleet under load.
type scraped struct {
	store    *promstore.Store
	fleet    *simulation.Fleet
	requests []simulation.Request
}

func newScraped(t *testing.T, requests []simulation.Request) *scraped {
	t.Helper()
	profile, ok := simulation.ProfileOf("Llama-3.1-8B", "H100")
	require.True(t, ok)
	f, err := simulation.NewFleet(simulation.FleetSpec{Seed: 1, Epoch: epoch, Variants: []simulation.VariantSpec{{
		ID: chat1, Model: chat, Target: fleet.TargetID{Kind: "Deployment", Namespace: "llm", Name: "chat"}, Profile: profile, Initial: 2,
	}}})
	require.NoError(t, err)
	require.NoError(t, f.Offer(requests))
	store, err := promstore.New()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return &scraped{store: store, fleet: f, requests: requests}
}

// load returns the requests of a rate, bursty and of Azure's lengths.
func load(t *testing.T, rate simulation.Rate, burstiness, until float64) []simulation.Request {
	t.Helper()
	requests, err := simulation.Generate(simulation.Stream{
		Model: chat, Rate: rate, Burstiness: burstiness, Until: until, Seed: 5,
		Prompt: simulation.Lengths{Mean: 1155, P99: 4142}, Output: simulation.Lengths{Mean: 211, P99: 601},
	})
	require.NoError(t, err)
	return requests
}

// run scrapes every 15 s. Between two times nothing is scraped.
func (s *scraped) run(t *testing.T, until, gapFrom, gapUntil float64) {
	t.Helper()
	gone := map[string]bool{}
	for at := s.fleet.Now(); at <= until; at += 15 {
		s.fleet.Advance(at)
		if at >= gapFrom && at < gapUntil {
			continue
		}
		seen := map[string]bool{}
		for _, target := range s.fleet.Series() {
			seen[target.Name] = true
			s.scrape(t, at, target)
		}
		for name := range gone {
			if !seen[name] {
				require.NoError(t, s.store.Gone(name, s.fleet.Time(at)))
			}
		}
		gone = seen
	}
}

func (s *scraped) scrape(t *testing.T, at float64, target simulation.Target) {
	t.Helper()
	var samples []promstore.Sample
	for _, sample := range target.Samples {
		labels := promstore.Labels("namespace", target.Namespace, "pod", target.Pod, "instance", target.Pod+":8000", "job", "engines")
		for _, l := range sample.Labels {
			labels = append(labels, promstore.Label(l))
		}
		samples = append(samples, promstore.Sample{Name: sample.Name, Labels: labels, Value: sample.Value})
	}
	require.NoError(t, s.store.Scrape(target.Name, s.fleet.Time(at), samples))
}

func (s *scraped) options(t *testing.T, since time.Duration) record.Options {
	t.Helper()
	client, err := api.NewClient(api.Config{Address: "http://prometheus.test", RoundTripper: s.store.Transport()})
	require.NoError(t, err)
	return record.Options{API: v1.NewAPI(client), End: s.fleet.Time(s.fleet.Now()), Since: since}
}

// perWindow counts requests by window of a minute, from a time on.
func perWindow(requests []simulation.Request, windows int) []int {
	counts := make([]int, windows)
	for _, r := range requests {
		if i := int(r.Arrival / 60); i < windows {
			counts[i]++
		}
	}
	return counts
}

func means(requests []simulation.Request) (prompt, output float64) {
	for _, r := range requests {
		prompt, output = prompt+float64(r.Prompt), output+float64(r.Output)
	}
	n := float64(len(requests))
	return prompt / n, output / n
}

func TestRecordingHasTheArrivalsOfEachWindow(t *testing.T) {
	ramp := simulation.Ramps(simulation.Point{At: 0, PerSecond: 2}, simulation.Point{At: 3600, PerSecond: 12}, simulation.Point{At: 5400, PerSecond: 3})
	world := newScraped(t, load(t, ramp, 1, 5400))
	world.run(t, 1800, 0, 0)
	require.NoError(t, world.fleet.Scale(chat1, 4)) // replicas start and end meanwhile
	world.run(t, 4500, 0, 0)
	require.NoError(t, world.fleet.Scale(chat1, 1))
	world.run(t, 5400, 0, 0)

	calls, last := 0, [2]int{}
	options := world.options(t, 90*time.Minute)
	options.Progress = func(done, all int) { calls, last = calls+1, [2]int{done, all} }
	recording, err := record.Read(t.Context(), options)
	require.NoError(t, err)
	require.Equal(t, chat, recording.Model())
	require.Equal(t, epoch, recording.Begin)
	require.Equal(t, 90, recording.All)
	require.Zero(t, recording.Unknown)
	require.True(t, recording.Histograms)
	require.Equal(t, [2]int{calls, calls}, last)

	for _, w := range recording.Windows {
		require.Less(t, w.Dispersion, 2.0, "the ramp is no burst")
	}
	trace, err := recording.Trace()
	require.NoError(t, err)
	require.Len(t, trace, recording.Requests)
	require.InEpsilon(t, len(world.requests), len(trace), 0.01)
	for i, want := range perWindow(world.requests, 90) {
		got := perWindow(trace, 90)[i]
		require.InDelta(t, want, got, 6+0.1*float64(want), "window %d", i)
	}
	wantPrompt, wantOutput := means(world.requests)
	prompt, output := means(trace)
	require.InEpsilon(t, wantPrompt, prompt, 0.05)
	require.InEpsilon(t, wantOutput, output, 0.05)
}

func TestRecordingKeepsBurstiness(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: 25 s under the race detector")
	}
	constant := func(float64) float64 { return 4 }
	for burstiness, most := range map[float64]float64{1: 2, 12: 20} {
		world := newScraped(t, load(t, constant, burstiness, 7200))
		world.run(t, 7200, 0, 0)
		recording, err := record.Read(t.Context(), world.options(t, 2*time.Hour))
		require.NoError(t, err)
		got := recording.Windows[len(recording.Windows)-1].Dispersion
		require.InDelta(t, burstiness, got, 0.6*burstiness)
		require.LessOrEqual(t, got, most)
	}
}

func TestWindowsWithoutSamplesAreUnknown(t *testing.T) {
	world := newScraped(t, load(t, func(float64) float64 { return 4 }, 1, 5400))
	world.run(t, 5400, 1815, 3600) // half an hour
	recording, err := record.Read(t.Context(), world.options(t, 2*time.Hour))
	require.NoError(t, err)
	require.Equal(t, epoch.Add(-time.Minute), recording.Begin, "the window that ends with the first scrape")
	require.Equal(t, 91, recording.All)
	require.Equal(t, 29, recording.Unknown)
	require.Equal(t, 29*time.Minute, recording.Longest)
	require.Equal(t, epoch.Add(30*time.Minute), recording.LongestAt)
}

func TestShortGapSharesTheRequestsAfterIt(t *testing.T) {
	world := newScraped(t, load(t, func(float64) float64 { return 10 }, 1, 1800))
	world.run(t, 1800, 615, 780)
	recording, err := record.Read(t.Context(), world.options(t, 30*time.Minute))
	require.NoError(t, err)
	require.Zero(t, recording.Unknown)
	for i, w := range recording.Windows {
		require.InDelta(t, 600, w.Requests, 120, "window %d", i)
	}
	require.InEpsilon(t, len(world.requests), recording.Requests, 0.02)
}

// TestFoundCountersAreNoArrivals: a Prometheus that finds engines which have served before.
func TestFoundCountersAreNoArrivals(t *testing.T) {
	world := newScraped(t, load(t, func(float64) float64 { return 5 }, 1, 5400))
	world.run(t, 5400, 0, 3600)
	recording, err := record.Read(t.Context(), world.options(t, 90*time.Minute))
	require.NoError(t, err)
	require.Equal(t, epoch.Add(59*time.Minute), recording.Begin)
	require.InEpsilon(t, 30*300, recording.Requests, 0.1)
}

func TestModelThatIsNotTheOnlyOneIsNamed(t *testing.T) {
	world := newScraped(t, nil)
	at := epoch.Add(10 * time.Minute)
	for _, id := range []fleet.ModelID{{Namespace: "a", Name: "small"}, {Namespace: "b", Name: "small"}, {Namespace: "b", Name: "large"}} {
		labels := promstore.Labels("namespace", id.Namespace, "pod", id.Name, "model_name", id.Name)
		require.NoError(t, world.store.Append(at, []promstore.Sample{{Name: "vllm:num_requests_running", Labels: labels}}))
	}
	read := func(id fleet.ModelID) error {
		options := world.options(t, time.Hour)
		options.Model, options.End = id, at.Add(time.Minute)
		_, err := record.Read(t.Context(), options)
		return err
	}
	require.ErrorContains(t, read(fleet.ModelID{}), "3 models were found: small in a, large in b, small in b; name one and its namespace")
	require.ErrorContains(t, read(fleet.ModelID{Name: "small"}), "2 models were found: small in a, small in b")
	require.ErrorContains(t, read(fleet.ModelID{Name: "large"}), "model b/large: no request in the last 1h0m0s")
	require.ErrorContains(t, read(fleet.ModelID{Name: "none"}), "no engine of the model none in the last 1h0m0s; check its name")
	require.ErrorContains(t, read(fleet.ModelID{Namespace: "none", Name: "none"}), "no sample in the last 1h0m0s")
}

func TestEngineWithAModelLabelOfItsOwnIsRead(t *testing.T) {
	world := newScraped(t, nil)
	for i := range 61 {
		labels := promstore.Labels("namespace", "llm", "pod", "chat-0", "model", "chat", "instance", "a", "job", "b")
		samples := []promstore.Sample{
			{Name: "nv_trt_llm_request_metrics", Labels: append(promstore.Labels("request_type", "scheduled"), labels...), Value: 1},
			{Name: "nv_trt_llm_request_metrics", Labels: append(promstore.Labels("request_type", "waiting"), labels...), Value: 0},
		}
		for name, value := range map[string]float64{
			"nv_llm_input_token_len_count": 6, "nv_llm_input_token_len_sum": 600, "nv_llm_output_token_len_count": 6, "nv_llm_output_token_len_sum": 60,
		} {
			samples = append(samples, promstore.Sample{Name: name, Labels: labels, Value: value * float64(i)})
		}
		require.NoError(t, world.store.Append(epoch.Add(time.Duration(i)*time.Minute), samples))
	}
	options := world.options(t, time.Hour)
	options.End = epoch.Add(time.Hour)
	recording, err := record.Read(t.Context(), options)
	require.NoError(t, err)
	require.Equal(t, fleet.ModelID{Namespace: "llm", Name: "chat"}, recording.Model())
	require.Equal(t, 6*60, recording.Requests)
}

func TestInvalidOptionsAreRejectedTogether(t *testing.T) {
	_, err := record.Read(t.Context(), record.Options{End: epoch, Step: 2 * time.Hour, MaxRequests: -1, Matchers: "{"})
	for _, want := range []string{"step 2h0m0s; set 1s to 1h0m0s", "-1 requests at most", `matchers "{"`} {
		require.ErrorContains(t, err, want)
	}
	_, err = record.Read(t.Context(), record.Options{End: epoch, Since: 1000 * time.Hour, Step: time.Second})
	require.ErrorContains(t, err, "at most 500000")
	_, err = record.Read(t.Context(), record.Options{End: epoch, Matchers: `__name__="a"`})
	require.ErrorContains(t, err, "queries have metric names of their own")
}

func TestTooManyRequestsAreAnError(t *testing.T) {
	world := newScraped(t, load(t, func(float64) float64 { return 5 }, 1, 600))
	world.run(t, 600, 0, 0)
	options := world.options(t, 10*time.Minute)
	options.MaxRequests = 100
	_, err := record.Read(t.Context(), options)
	require.ErrorContains(t, err, "and 100 are allowed; shorten the period, or allow more")
}

func TestCancelledReadingEnds(t *testing.T) {
	world := newScraped(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := record.Read(ctx, world.options(t, time.Hour))
	require.ErrorIs(t, err, context.Canceled)
}

// TestLongPeriodsAreReadInParts has more windows than one query may return, and two engines of
// which only means are known.
func TestLongPeriodsAreReadInParts(t *testing.T) {
	world := newScraped(t, nil)
	const minutes = 2500
	for i := range minutes + 1 {
		labels := promstore.Labels("namespace", "llm", "pod", "chat-0", "model_name", "chat", "instance", "a", "job", "b")
		var samples []promstore.Sample
		for name, value := range map[string]float64{
			"sglang:num_running_reqs": 1, "sglang:num_queue_reqs": 0, "sglang:time_to_first_token_seconds_count": float64(6 * i),
			"sglang:prompt_tokens_total": float64(600 * i), "sglang:generation_tokens_total": float64(60 * i), "sglang:num_requests_total": float64(6 * i),
		} {
			samples = append(samples, promstore.Sample{Name: name, Labels: labels, Value: value})
		}
		require.NoError(t, world.store.Append(epoch.Add(time.Duration(i)*time.Minute), samples))
	}
	options := world.options(t, minutes*time.Minute)
	options.End = epoch.Add(minutes * time.Minute)
	recording, err := record.Read(t.Context(), options)
	require.NoError(t, err)
	require.False(t, recording.Histograms)
	require.Equal(t, 6*minutes, recording.Requests)
	trace, err := recording.Trace()
	require.NoError(t, err)
	prompt, output := means(trace)
	require.InEpsilon(t, 100, prompt, 0.05)
	require.InEpsilon(t, 10, output, 0.05)
	require.Less(t, math.Abs(trace[len(trace)-1].Arrival-minutes*60), 120.0, fmt.Sprint(trace[len(trace)-1]))
}
