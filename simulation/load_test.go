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

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance*math.Abs(want)) {
		t.Errorf("%s: got %v, want %v within %v %%", what, got, want, 100*tolerance)
	}
}

func TestGenerateKeepsRateAndBurstiness(t *testing.T) {
	for _, cv2 := range []float64{0, 0.25, 1, 2.5, 9} {
		requests := generate(t, Stream{
			Model: chat, Rate: Constant(5), Burstiness: cv2, Until: 40_000, Seed: 7,
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

func TestGenerateKeepsBurstinessWhereTheRateIsLow(t *testing.T) {
	requests := generate(t, Stream{
		Model: chat, Rate: Steps(Point{0, 2}, Point{20_000, 20}), Burstiness: 4, Until: 22_000, Seed: 3,
		Prompt: Lengths{Mean: 10}, Output: Lengths{Mean: 10},
	})
	boundary := slices.IndexFunc(requests, func(r Request) bool { return r.Arrival >= 20_000 })
	near(t, "requests at 2/s", float64(boundary), 40_000, 0.03)
	near(t, "requests at 20/s", float64(len(requests)-boundary), 40_000, 0.03)
	_, low := moments(gaps(requests[:boundary]))
	near(t, "CV² at 2/s", low, 4, 0.1)
}

func TestGenerateFollowsItsRate(t *testing.T) {
	rate := Day{Low: 1, High: 9, Period: 3600, Bursts: 4, BurstPerSecond: 30, BurstDuration: 60, Seed: 5}.Rate()
	requests := generate(t, Stream{Model: chat, Rate: rate, Until: 4 * 3600, Seed: 1, Prompt: Lengths{Mean: 9}, Output: Lengths{Mean: 9}})
	for begin := 0.0; begin < 4*3600; begin += 600 {
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
		Model: chat, Rate: Constant(50), Until: 4000, Seed: 11,
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
		Model: chat, Rate: Constant(40), Burstiness: 8, Until: 100.1, Seed: 2,
		Prompt: Lengths{Mean: 1.2, P99: 12}, Output: Lengths{Mean: 1},
	}
	requests := generate(t, stream)
	if !slices.Equal(requests, generate(t, stream)) {
		t.Error("the same seed gave two loads")
	}
	for i, r := range requests {
		if r.Arrival < 0 || r.Arrival >= 100.1 || r.Prompt < 1 || r.Output != 1 || r.Model != chat {
			t.Fatalf("request %d: %+v", i, r)
		}
		if i > 0 && r.Arrival < requests[i-1].Arrival {
			t.Fatalf("request %d comes before the one before it", i)
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

// The golden number is a hash of all bits. Another one on another machine means that a product was fused with a sum.
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

func TestGenerateReportsEveryFault(t *testing.T) {
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
	for name, rate := range map[string]Rate{"-1": Constant(-1), "NaN": Constant(math.NaN()), "+Inf": Constant(math.Inf(1))} {
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

func TestRatesHaveTheirShape(t *testing.T) {
	steps := Steps(Point{60, 5}, Point{10, 2})
	ramps := Ramps(Point{10, 2}, Point{20, 4}, Point{20, 8}, Point{30, 0})
	bursts := Bursts(Burst{At: 10, Duration: 5, PerSecond: 3}, Burst{At: 14, Duration: 5, PerSecond: 1})
	wave := Wave(2, 10, 100)
	for _, c := range []struct {
		name    string
		rate    Rate
		t, want float64
	}{
		{"steps before", steps, 9.99, 0}, {"steps", steps, 10, 2}, {"steps", steps, 59.9, 2}, {"steps after", steps, 1e9, 5},
		{"no steps", Steps(), 3, 0},
		{"ramps before", ramps, 0, 2}, {"ramps", ramps, 15, 3}, {"ramps jump", ramps, 20, 8}, {"ramps", ramps, 25, 4}, {"ramps after", ramps, 99, 0},
		{"no ramps", Ramps(), 3, 0},
		{"bursts", bursts, 9, 0}, {"bursts", bursts, 10, 3}, {"bursts", bursts, 14, 4}, {"bursts", bursts, 15, 1}, {"bursts", bursts, 19, 0},
		{"wave", wave, 0, 2}, {"wave", wave, 25, 6}, {"wave", wave, 50, 10}, {"wave", wave, 75, 6}, {"wave", wave, 100, 2}, {"wave", wave, 250, 10},
		{"sum", Sum(steps, bursts, Constant(1)), 14, 7},
	} {
		if got := c.rate(c.t); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s at %v: got %v, want %v", c.name, c.t, got, c.want)
		}
	}
}

func TestDayHasItsBurstsInEveryPeriod(t *testing.T) {
	day := Day{Period: 1000, Bursts: 5, BurstPerSecond: 1, BurstDuration: 30, Seed: 9}
	rate := day.Rate()
	var starts []int
	for period := range 20 {
		seconds, begun := 0, 0
		for at := range 1000 {
			now := float64(period*1000 + at)
			if rate(now) > 0 {
				seconds++
				if at == 0 || rate(now-1) == 0 {
					begun++
					starts = append(starts, at%200)
				}
			}
		}
		if seconds < 145 || seconds > 155 || begun < 4 || begun > 5 {
			t.Errorf("period %d: %d bursts of %d s in all", period, begun, seconds)
		}
	}
	if slices.Max(starts) < 150 || slices.Min(starts) > 20 {
		t.Errorf("bursts begin from %d s to %d s of their parts only", slices.Min(starts), slices.Max(starts))
	}
}
