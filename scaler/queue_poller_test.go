package scaler

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/wva-project/wva/fleet"
)

// gateway is the source of a poller.
type gateway struct {
	rows  []fleet.Load
	err   error
	polls int
}

func (g *gateway) queues(_ context.Context, now time.Time) ([]fleet.Load, error) {
	g.polls++
	rows := make([]fleet.Load, len(g.rows))
	for i, row := range g.rows {
		rows[i] = row
		rows[i].Time = now
	}
	return rows, g.err
}

func waiting(model string, requests float64) fleet.Load {
	return fleet.Load{Namespace: "prod", Model: model, Source: fleet.SourceGateway, Queued: fleet.Observed(requests)}
}

// serving is a variant of a target's model, under a name of its own in the engines.
func serving(name, servedName string) fleet.Variant {
	return fleet.Variant{ID: variant(name), Model: fleet.ModelID{Namespace: "prod", Name: "model-" + name}, ServedName: servedName}
}

func newQueuePoller(t *testing.T, g *gateway, decisions ...fleet.Decision) *QueuePoller {
	t.Helper()
	board := NewBoard(BoardOptions{Clock: clocktesting.NewFakeClock(start)})
	board.Post(planAt(start, decisions...))
	poller, err := NewQueuePoller(QueuePollerOptions{
		Board: board, Queues: g.queues, Variants: func() []fleet.Variant {
			withAdapters := serving("b", "served-b")
			withAdapters.Adapters = []string{"model-a", "sql"}
			return []fleet.Variant{serving("a", ""), withAdapters}
		},
	})
	require.NoError(t, err)
	return poller
}

func TestQueuePollerWakesForAQueueOfAModelThatIsScaledToZero(t *testing.T) {
	tests := []struct {
		name      string
		rows      []fleet.Load
		decisions []fleet.Decision
		wake      bool
		polls     int
	}{
		{"nobody waits", []fleet.Load{waiting("model-a", 0)}, []fleet.Decision{decided("a", 0)}, false, 1},
		{"somebody waits", []fleet.Load{waiting("model-a", 2)}, []fleet.Decision{decided("a", 0)}, true, 1},
		{"under the name of the engines", []fleet.Load{waiting("served-b", 2)}, []fleet.Decision{decided("b", 0)}, true, 1},
		{"not under its own name then", []fleet.Load{waiting("model-b", 2)}, []fleet.Decision{decided("b", 0)}, false, 1},
		{"for an adapter", []fleet.Load{waiting("sql", 2)}, []fleet.Decision{decided("b", 0)}, true, 1},
		{"for another model than an adapter claims to be", []fleet.Load{waiting("model-a", 2)}, []fleet.Decision{decided("b", 0)}, false, 1},
		{"for a model that is up", []fleet.Load{waiting("model-a", 2)}, []fleet.Decision{decided("a", 1), decided("b", 0)}, false, 1},
		{"for a model of nobody", []fleet.Load{waiting("model-c", 2)}, []fleet.Decision{decided("a", 0)}, false, 1},
		{"queue that is not known", []fleet.Load{{Namespace: "prod", Model: "model-a", Queued: fleet.Reading{State: fleet.Stale}}}, []fleet.Decision{decided("a", 0)}, false, 1},
		{"in another namespace", []fleet.Load{{Namespace: "dev", Model: "model-a", Queued: fleet.Observed(1)}}, []fleet.Decision{decided("a", 0)}, false, 1},
		{"for a model that lacks accelerators", []fleet.Load{waiting("model-a", 2)}, []fleet.Decision{unplaceable("a"), decided("b", 0)}, false, 1},
		{"for another model than that", []fleet.Load{waiting("model-a", 2), waiting("served-b", 1)}, []fleet.Decision{unplaceable("a"), decided("b", 0)}, true, 1},
		{"the only model lacks accelerators", []fleet.Load{waiting("model-a", 2)}, []fleet.Decision{unplaceable("a")}, false, 0},
		{"nobody at zero", []fleet.Load{waiting("model-a", 2)}, []fleet.Decision{decided("a", 1)}, false, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := &gateway{rows: test.rows}
			wake, err := newQueuePoller(t, g, test.decisions...).Poll(t.Context(), start)
			require.NoError(t, err)
			require.Equal(t, test.wake, wake)
			require.Equal(t, test.polls, g.polls)
		})
	}
}

func TestQueuePollerRepeatsQueuesForAWhile(t *testing.T) {
	g := &gateway{rows: []fleet.Load{waiting("model-a", 2), waiting("served-b", 0)}}
	poller := newQueuePoller(t, g, decided("a", 0))
	require.Empty(t, poller.Queued(start))
	_, err := poller.Poll(t.Context(), start)
	require.NoError(t, err)
	seen := waiting("model-a", 2)
	seen.Time = start
	require.Equal(t, []fleet.Load{seen}, poller.Queued(start.Add(15*time.Second)), "queues with requests, and no others")
	require.Empty(t, poller.Queued(start.Add(16*time.Second)))
	require.Len(t, poller.Queued(start), 1, "reading changes nothing")

	g.rows = nil
	_, err = poller.Poll(t.Context(), start.Add(time.Second))
	require.NoError(t, err)
	require.Empty(t, poller.Queued(start.Add(time.Second)), "the latest poll counts")
}

func TestAFailedPollWakesNobodyAndForgetsNothing(t *testing.T) {
	g := &gateway{rows: []fleet.Load{waiting("model-a", 2)}}
	poller := newQueuePoller(t, g, decided("a", 0))
	_, err := poller.Poll(t.Context(), start)
	require.NoError(t, err)
	g.err = errors.New("gateway away")
	wake, err := poller.Poll(t.Context(), start.Add(time.Second))
	require.ErrorIs(t, err, g.err)
	require.False(t, wake)
	require.Len(t, poller.Queued(start.Add(time.Second)), 1)
}

func TestNewQueuePollerNamesTheMissingOptions(t *testing.T) {
	_, err := NewQueuePoller(QueuePollerOptions{})
	require.ErrorContains(t, err, "set QueuePollerOptions.Board, Queues and Variants")
}

// wakes counts the polls that wake somebody, two a second.
func wakes(t *testing.T, p *QueuePoller, d time.Duration, before func(now time.Time)) (n int) {
	t.Helper()
	for now := start; now.Sub(start) < d; now = now.Add(500 * time.Millisecond) {
		before(now)
		wake, err := p.Poll(t.Context(), now)
		require.NoError(t, err)
		if wake {
			n++
		}
	}
	return n
}

// A model stays at zero although requests wait: its number is held, or its maximum is zero. Each
// cycle sees the queue, so no poll has to repeat it.
func TestQueueThatStaysWakesEveryFewSeconds(t *testing.T) {
	g := &gateway{rows: []fleet.Load{waiting("model-a", 2)}}
	poller := newQueuePoller(t, g, decided("a", 0))
	require.Equal(t, 11, wakes(t, poller, time.Minute, func(time.Time) {}))
}

func TestQueueThatComesAndGoesWakesEveryFewSeconds(t *testing.T) {
	g := &gateway{}
	poller := newQueuePoller(t, g, decided("a", 0))
	require.LessOrEqual(t, wakes(t, poller, time.Minute, func(now time.Time) {
		g.rows = []fleet.Load{waiting("model-a", float64(now.Sub(start)/(500*time.Millisecond)%2))}
	}), 12)
}

func TestQueueOfOneModelDoesNotDelayAnother(t *testing.T) {
	g := &gateway{rows: []fleet.Load{waiting("model-a", 2)}}
	poller := newQueuePoller(t, g, decided("a", 0), decided("b", 0))
	for i, want := range []bool{true, false, false} {
		wake, err := poller.Poll(t.Context(), start.Add(time.Duration(i)*500*time.Millisecond))
		require.NoError(t, err)
		require.Equal(t, want, wake)
	}
	g.rows = append(g.rows, waiting("served-b", 1))
	wake, err := poller.Poll(t.Context(), start.Add(1500*time.Millisecond))
	require.NoError(t, err)
	require.True(t, wake)
}

func TestQueuesOfAClockThatWasSetBackAreNotRepeated(t *testing.T) {
	g := &gateway{rows: []fleet.Load{waiting("model-a", 2)}}
	poller := newQueuePoller(t, g, decided("a", 0))
	_, err := poller.Poll(t.Context(), start)
	require.NoError(t, err)
	back := start.Add(-time.Hour)
	require.Empty(t, poller.Queued(back))
	wake, err := poller.Poll(t.Context(), back)
	require.NoError(t, err)
	require.True(t, wake, "nothing is known of the last wake-up")
}
