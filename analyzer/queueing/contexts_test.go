package queueing

import (
	"math"
	"testing"
)

func TestLongerContextsOfGauges(t *testing.T) {
	prompts, _ := AssumedLengths(1000)
	outputs, failed := AssumedLengths(200)
	m, err := NewMix(prompts, outputs)
	if err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	context := m.decodeContext / m.decode // of independent lengths
	for _, test := range []struct {
		name string
		b    Batch
		want float64
	}{
		{"as the mix", Batch{Tokens: 10 * context, Running: 10, Requests: 1e6}, 1},
		{"shorter", Batch{Tokens: 5 * context, Running: 10, Requests: 1e6}, 1},
		{"longer", Batch{Tokens: 13 * context, Running: 10, Requests: 1e6}, 1.3},
		{"of few requests", Batch{Tokens: 13 * context, Running: 10, Requests: 30}, 1.15},
		{"far longer", Batch{Tokens: 90 * context, Running: 10, Requests: 1e6}, 2},
		{"beside prompts", Batch{Tokens: 13*context + 4*m.prompt2/(2*m.prompt), Running: 14, Prefilling: 4, Requests: 1e6}, 1.3},
		{"prompts alone", Batch{Tokens: 4000, Running: 4, Prefilling: 4, Requests: 1e6}, 1},
		{"nothing", Batch{}, 1},
		{"infinite", Batch{Tokens: math.Inf(1), Running: 1, Requests: math.Inf(1)}, 2},
		{"not a number", Batch{Tokens: math.NaN(), Running: 1, Requests: 1}, 1},
	} {
		if got := m.LongerContexts(test.b); !(math.Abs(got-test.want) < 1e-3) {
			t.Errorf("%s: ×%v, want ×%v", test.name, got, test.want)
		}
	}
	if got := m.PrefillOnly().LongerContexts(Batch{Tokens: 1e6, Running: 1, Requests: 1e6}); got != 1 {
		t.Errorf("without decode: ×%v", got)
	}
	r := Replica{Profile: Profile{Iteration: 1, PerSequence: 2, PerContextToken: 3}, KVTokens: 1500}
	if got := r.WithContexts(1.5); got.PerContextToken != 4.5 || got.KVTokens != 1000 || got.PerSequence != 2 || r.KVTokens != 1500 {
		t.Errorf("%+v", got)
	}
}
