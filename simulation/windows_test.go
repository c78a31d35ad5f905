package simulation

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

var chatLengths = Histogram{Buckets: []fleet.Bucket{{Upper: 100, Count: 50}, {Upper: 1000, Count: 45}, {Count: 5}}}

func TestRegeneratedWindowsHaveTheirNumbersAndMeans(t *testing.T) {
	scaled := chatLengths
	scaled.Mean = 250
	windows := []Window{
		{Begin: 0, Length: 60, Requests: 2000, Prompt: scaled, Output: Histogram{Mean: 40}},
		{Begin: 60, Length: 60, Prompt: scaled},
		{Begin: 120, Length: 60, Requests: 3, Dispersion: 20, Prompt: chatLengths, Output: chatLengths},
	}
	requests, err := Regenerate(windows, chat, 7)
	if err != nil {
		t.Fatal(err)
	}
	var counts [3]int
	prompts, outputs := 0, 0
	for i, r := range requests {
		counts[int(r.Arrival/60)]++
		if i < 2000 {
			prompts, outputs = prompts+r.Prompt, outputs+r.Output
		}
	}
	if counts != [3]int{2000, 0, 3} {
		t.Errorf("requests by window: %v", counts)
	}
	if mean := float64(prompts) / 2000; math.Abs(mean-250) > 15 {
		t.Errorf("mean prompt %v, want 250", mean)
	}
	if mean := float64(outputs) / 2000; math.Abs(mean-40) > 2 {
		t.Errorf("mean output %v, want 40", mean)
	}
	if !slices.IsSortedFunc(requests, func(a, b Request) int { return int(math.Copysign(1, a.Arrival-b.Arrival)) }) {
		t.Error("the requests are not sorted")
	}
	again, _ := Regenerate(windows, chat, 7)
	if !slices.Equal(requests, again) {
		t.Error("the same seed gives other requests")
	}
}

func TestLengthsStayInTheirBuckets(t *testing.T) {
	draw := chatLengths.sampler(newDraws(1, 1))
	const n = 20000
	var below [3]int
	sum := 0.0
	for range n {
		length := draw()
		sum += float64(length)
		switch {
		case length <= 100:
			below[0]++
		case length <= 1000:
			below[1]++
		case length <= 2000:
			below[2]++
		}
	}
	for i, want := range []float64{0.50, 0.45, 0.05} {
		if got := float64(below[i]) / n; math.Abs(got-want) > 0.02 {
			t.Errorf("bucket %d has %v of the lengths, want %v", i, got, want)
		}
	}
	if got, want := sum/n, chatLengths.drawnMean(); math.Abs(got/want-1) > 0.03 {
		t.Errorf("mean %v, calculated %v", got, want)
	}
}

// TestDispersionIsKept counts requests in tenths of a window: the variance over the mean of the
// counts is about that of the gaps, less the tenth that a fixed total takes away.
func TestDispersionIsKept(t *testing.T) {
	for _, want := range []float64{1, 4} {
		windows := make([]Window, 400)
		for i := range windows {
			windows[i] = Window{Begin: float64(60 * i), Length: 60, Requests: 600, Dispersion: want, Prompt: chatLengths, Output: chatLengths}
		}
		requests, err := Regenerate(windows, chat, 3)
		if err != nil {
			t.Fatal(err)
		}
		counts := make([]float64, 4000)
		for _, r := range requests {
			counts[int(r.Arrival/6)]++
		}
		squares := 0.0
		for _, c := range counts {
			squares += (c - 60) * (c - 60)
		}
		if got := squares / 4000 / 60 / 0.9; math.Abs(got/want-1) > 0.15 {
			t.Errorf("dispersion %v, want %v", got, want)
		}
	}
}

func TestInvalidWindowsAreRejected(t *testing.T) {
	valid := Window{Length: 60, Requests: 1, Prompt: chatLengths, Output: chatLengths}
	for want, change := range map[string]func(*Window){
		"sort them":                          func(w *Window) { w.Length = 0 },
		"dispersion -1":                      func(w *Window) { w.Dispersion = -1 },
		"-1 requests":                        func(w *Window) { w.Requests = -1 },
		"at most 50000000":                   func(w *Window) { w.Requests = maxRequests + 1 },
		"neither buckets nor a mean":         func(w *Window) { w.Prompt = Histogram{} },
		"bucket 1 of output lengths":         func(w *Window) { w.Output.Buckets = []fleet.Bucket{{Upper: 5, Count: 1}, {Upper: 4}, {}} },
		"buckets of output lengths are empt": func(w *Window) { w.Output.Buckets = []fleet.Bucket{{Upper: 5}, {}} },
		"mean prompt length NaN":             func(w *Window) { w.Prompt.Mean = math.NaN() },
	} {
		w := valid
		change(&w)
		if _, err := Regenerate([]Window{w}, chat, 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	if _, err := Regenerate([]Window{valid, valid}, chat, 1); err == nil {
		t.Error("windows that overlap are accepted")
	}
}

func TestWrittenTraceIsReadBack(t *testing.T) {
	want, err := Regenerate([]Window{{Length: 60, Requests: 50, Prompt: chatLengths, Output: chatLengths}}, chat, 1)
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := WriteTrace(&file, time.Date(2026, 3, 1, 23, 59, 30, 0, time.UTC), want); err != nil {
		t.Fatal(err)
	}
	got, err := ReadTrace(&file, chat)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(want) {
		t.Fatalf("%d requests of %d", len(got), len(want))
	}
	for i := range got {
		shifted := want[i].Arrival - want[0].Arrival
		if got[i].Prompt != want[i].Prompt || got[i].Output != want[i].Output || math.Abs(got[i].Arrival-shifted) > 2e-6 {
			t.Errorf("request %d: %+v, want %+v", i, got[i], want[i])
		}
	}
}
