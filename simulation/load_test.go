package simulation

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/wva-project/wva/fleet"
)

var chat = fleet.ModelID{Namespace: "chat", Name: "llama-8b"}

func generate(t *testing.T, s Stream) []Request {
	t.Helper()
	requests, err := Generate(s)
	if err != nil {
		t.Fatal(err)
	}
	return requests
}

// moments returns the mean and the squared coefficient of variation.
func moments(values []float64) (mean, cv2 float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		cv2 += (v - mean) * (v - mean) / float64(len(values)) / (mean * mean)
	}
	return mean, cv2
}

func gaps(requests []Request) []float64 {
	var gaps []float64
	for i := 1; i < len(requests); i++ {
		gaps = append(gaps, requests[i].Arrival-requests[i-1].Arrival)
	}
	return gaps
}

func near(t *testing.T, name string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance*math.Abs(want)) {
		t.Errorf("%s: got %v, want %v within %v %%", name, got, want, 100*tolerance)
	}
}

func TestGenerateKeepsRateAndBurstiness(t *testing.T) {
	for _, cv2 := range []float64{0, 0.25, 1, 2.5, 9} {
		requests := generate(t, Stream{
			Model: chat, Rate: constant(5), Burstiness: cv2, Until: 40_000, Seed: 7,
			Prompt: Lengths{Mean: 10}, Output: Lengths{Mean: 10},
		})
		mean, got := moments(gaps(requests))
		want := cv2
		if cv2 == 0 {
			want = 1
		}
		near(t, "mean gap", mean, 0.2, 0.03)
		near(t, "CV² of gaps", got, want, 0.06)
	}
}

func TestGenerateKeepsBurstinessAtALowRate(t *testing.T) {
	requests := generate(t, Stream{
		Model: chat, Rate: steps(Point{0, 2}, Point{20_000, 20}), Burstiness: 4, Until: 22_000, Seed: 3,
		Prompt: Lengths{Mean: 10}, Output: Lengths{Mean: 10},
	})
	boundary := slices.IndexFunc(requests, func(r Request) bool { return r.Arrival >= 20_000 })
	near(t, "requests at 2/s", float64(boundary), 40_000, 0.03)
	near(t, "requests at 20/s", float64(len(requests)-boundary), 40_000, 0.03)
	_, low := moments(gaps(requests[:boundary]))
	near(t, "CV² at 2/s", low, 4, 0.1)
}

func TestGenerateFollowsItsRate(t *testing.T) {
	swing := Ramps(Point{0, 1}, Point{7200, 9}, Point{14_400, 1})
	bursts := Bursts(Burst{At: 500, Duration: 60, PerSecond: 30}, Burst{At: 9000, Duration: 60, PerSecond: 30})
	rate := func(t float64) float64 { return swing(t) + bursts(t) }
	requests := generate(t, Stream{Model: chat, Rate: rate, Until: 14_400, Seed: 1, Prompt: Lengths{Mean: 9}, Output: Lengths{Mean: 9}})
	for begin := 0.0; begin < 14_400; begin += 600 {
		want, got := 0.0, 0.0
		for at := begin; at < begin+600; at++ {
			want += rate(at + 0.5)
		}
		for _, r := range requests {
			if r.Arrival >= begin && r.Arrival < begin+600 {
				got++
			}
		}
		if math.Abs(got-want) > 5*math.Sqrt(want) {
			t.Errorf("from %v s: %v requests, want about %v", begin, got, want)
		}
	}
}

func TestGenerateDrawsLognormalLengths(t *testing.T) {
	requests := generate(t, Stream{
		Model: chat, Rate: constant(50), Until: 4000, Seed: 11,
		Prompt: Lengths{Mean: 1155, P99: 4142}, Output: Lengths{Mean: 211, P99: 601, Max: 500},
	})
	var prompts, outputs []float64
	for _, r := range requests {
		prompts, outputs = append(prompts, float64(r.Prompt)), append(outputs, float64(r.Output))
	}
	slices.Sort(prompts)
	slices.Sort(outputs)
	mean, _ := moments(prompts)
	near(t, "mean prompt", mean, 1155, 0.01)
	near(t, "99th percentile of prompts", prompts[len(prompts)*99/100], 4142, 0.02)
	// The median of a lognormal distribution is its mean times exp(-s²/2).
	near(t, "median prompt", prompts[len(prompts)/2], 1155*math.Exp(-0.634*0.634/2), 0.02)
	mean, _ = moments(outputs)
	near(t, "mean output", mean, 211, 0.02)
	if prompts[0] < 1 || outputs[len(outputs)-1] != 500 {
		t.Errorf("shortest prompt %v, longest output %v", prompts[0], outputs[len(outputs)-1])
	}
}

func TestGenerateIsSortedInRangeAndTheSameForASeed(t *testing.T) {
	stream := Stream{
		Model: chat, Rate: constant(40), Burstiness: 8, Until: 100.1, Seed: 2,
		Prompt: Lengths{Mean: 1.2, P99: 12}, Output: Lengths{Mean: 1},
	}
	requests := generate(t, stream)
	if !slices.Equal(requests, generate(t, stream)) {
		t.Error("one seed gave two loads")
	}
	for i, r := range requests {
		if r.Arrival < 0 || r.Arrival >= 100.1 || r.Prompt < 1 || r.Output != 1 || r.Model != chat {
			t.Fatalf("request %d: %+v", i, r)
		}
		if i > 0 && r.Arrival < requests[i-1].Arrival {
			t.Fatalf("request %d is before its predecessor", i)
		}
	}
	same := stream
	same.Output = same.Prompt
	if slices.IndexFunc(generate(t, same), func(r Request) bool { return r.Prompt != r.Output }) < 0 {
		t.Error("prompts and outputs are the same draws")
	}
	longer := stream
	longer.Output = Lengths{Mean: 300, P99: 900}
	for i, r := range generate(t, longer) {
		if r.Arrival != requests[i].Arrival || r.Prompt != requests[i].Prompt {
			t.Fatalf("other outputs changed request %d", i)
		}
	}
	stream.Seed++
	if slices.Equal(requests, generate(t, stream)) {
		t.Error("another seed gave the same load")
	}
}

// The golden number is a hash of all bits. Another one on another machine means that a product was
// fused with a sum.
func TestDrawsAreTheSameOnEveryMachine(t *testing.T) {
	d := newDraws(1, 2)
	hash := fnv.New64a()
	for range 1000 {
		for _, x := range []float64{d.normal(), d.gamma(0.4), d.gamma(1), d.gamma(2.5), exponential(d.normal())} {
			hash.Write(binary.BigEndian.AppendUint64(nil, math.Float64bits(x)))
		}
	}
	if got, want := hash.Sum64(), uint64(0x7b6dd45c677da3f2); got != want {
		t.Errorf("got %#x, want %#x", got, want)
	}
}

func TestLogarithmAndExponentialAgreeWithTheLibrary(t *testing.T) {
	for x := 1e-300; x < 1e300; x *= 1.37 {
		if got, want := logarithm(x), math.Log(x); math.Abs(got-want) > 2e-15*max(1, math.Abs(want)) {
			t.Fatalf("log %v: got %v, want %v", x, got, want)
		}
	}
	for x := -700.0; x < 709; x += 0.37 {
		if got, want := exponential(x), math.Exp(x); math.Abs(got-want) > 1e-14*want {
			t.Fatalf("exp %v: got %v, want %v", x, got, want)
		}
	}
	if exponential(-1000) != 0 || !math.IsInf(exponential(1000), 1) || exponential(0) != 1 || logarithm(1) != 0 {
		t.Error("wrong at the edges")
	}
}

func TestGenerateReportsAllValidationErrors(t *testing.T) {
	_, err := Generate(Stream{Model: chat, Burstiness: -1, Until: math.Inf(1), Prompt: Lengths{Mean: 0.5}, Output: Lengths{Mean: 10, P99: 200, Max: -1}})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"chat/llama-8b", "no rate", "burstiness -1", "ends at +Inf", "prompt lengths: mean 0.5", "output lengths: 99th percentile 200"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
	lengths := Lengths{Mean: 10}
	for name, rate := range map[string]Rate{"-1": constant(-1), "NaN": constant(math.NaN()), "+Inf": constant(math.Inf(1))} {
		_, err := Generate(Stream{Model: chat, Rate: rate, Until: 1, Prompt: lengths, Output: lengths})
		if err == nil || !strings.Contains(err.Error(), "is "+name) {
			t.Errorf("rate %s: %v", name, err)
		}
	}
}

func TestMergeSortsAndKeepsTheOrderOfArguments(t *testing.T) {
	small := fleet.ModelID{Namespace: "chat", Name: "small"}
	merged := Merge(
		[]Request{{1, chat, 1, 1}, {3, chat, 1, 1}},
		nil,
		[]Request{{0, small, 1, 1}, {1, small, 1, 1}, {4, small, 1, 1}},
	)
	want := []Request{{0, small, 1, 1}, {1, chat, 1, 1}, {1, small, 1, 1}, {3, chat, 1, 1}, {4, small, 1, 1}}
	if !slices.Equal(merged, want) {
		t.Errorf("got %v", merged)
	}
}
