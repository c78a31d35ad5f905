package queueing

import "testing"

// h100 is an engine like Llama-3.1-8B on one H100.
var h100 = Replica{
	Profile:      Profile{Iteration: 6.07e-3, PerSequence: 8.4e-6, PerContextToken: 4.24e-8, PerPromptToken: 1.34e-5, PerPromptTokenSquared: 8.3e-10},
	MaxSequences: 256, BatchedTokens: 2048, KVTokens: 440_000,
}

// BenchmarkMeanSizing is the rate for limits on the means of TTFT and ITL, from a replica's
// profile.
func BenchmarkMeanSizing(b *testing.B) {
	request := h100.Request(1155, 211)
	b.ReportAllocs()
	for b.Loop() {
		service, err := NewService(h100, request)
		if err != nil {
			b.Fatal(err)
		}
		q, err := service.Queue(2560)
		if err != nil {
			b.Fatal(err)
		}
		if rate, _ := service.MaxMeanRate(q, Objective{TTFT: 1, ITL: 0.025}); rate == 0 {
			b.Fatal("no rate")
		}
	}
}
