package promstore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Each expression has another type of part. An expression that the engine wrote into would fail or
// answer otherwise the second time.
func TestAnExpressionThatWasParsedBeforeAnswersTheSame(t *testing.T) {
	t.Parallel()
	store, err := New()
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	at := time.Unix(1_000, 0)
	for i := range 20 {
		for j, pod := range []string{"a", "b"} {
			sample := Sample{Name: "requests_total", Labels: Labels("pod", pod), Value: float64(i * (j + 1))}
			require.NoError(t, store.Append(at.Add(time.Duration(15*i)*time.Second), []Sample{sample}))
		}
	}
	for _, expression := range []string{
		`requests_total`, `sum by (pod) (rate(requests_total{pod=~"a|b"}[1m]))`, `-(requests_total + on (pod) requests_total)`,
		`max_over_time(sum(rate(requests_total[1m]))[2m:30s])`, `topk(1, requests_total) > (2 + 3) * 1`, `requests_total offset 1m`,
		`label_replace(requests_total, "name", "$1", "pod", "(.*)")`, `scalar(sum(requests_total))`, `requests_total @ 1100`,
	} {
		first, err := store.Query(t.Context(), expression, at.Add(5*time.Minute))
		require.NoError(t, err, expression)
		require.NotEmpty(t, first, expression)
		for range 2 {
			again, err := store.Query(t.Context(), expression, at.Add(5*time.Minute))
			require.NoError(t, err, expression)
			require.Equal(t, first, again, expression)
		}
		later, err := store.Query(t.Context(), expression, at.Add(6*time.Minute))
		require.NoError(t, err, expression)
		if expression == `requests_total offset 1m` {
			require.NotEqual(t, first[0].F, later[0].F, "the same time again")
		}
	}
}

func TestAnInvalidExpressionStaysInvalid(t *testing.T) {
	t.Parallel()
	store, err := New()
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	for range 2 {
		_, err := store.Query(t.Context(), `sum(`, time.Unix(0, 0))
		require.Error(t, err)
	}
}
