package scaler

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/wva-project/wva/fleet"
)

// BenchmarkPoll has 2,000 models at zero with ten adapters each, and as many queues of strangers,
// which somebody may report who makes up names.
func BenchmarkPoll(b *testing.B) {
	const models = 2000
	var variants []fleet.Variant
	var decisions []fleet.Decision
	g := &gateway{}
	for i := range models {
		v := serving(fmt.Sprint(i), "")
		for adapter := range 10 {
			v.Adapters = append(v.Adapters, fmt.Sprintf("adapter-%d-%d", i, adapter))
		}
		variants, decisions = append(variants, v), append(decisions, decided(fmt.Sprint(i), 0))
		g.rows = append(g.rows, waiting(fmt.Sprint("stranger-", i), 1))
	}
	board := NewBoard(BoardOptions{Clock: clocktesting.NewFakeClock(start)})
	board.Post(planAt(start, decisions...))
	poller, err := NewQueuePoller(QueuePollerOptions{
		Board: board, Variants: func() []fleet.Variant { return variants },
		Queues: g.queues,
	})
	require.NoError(b, err)
	for b.Loop() {
		wake, err := poller.Poll(b.Context(), start)
		require.NoError(b, err)
		require.False(b, wake)
	}
}
