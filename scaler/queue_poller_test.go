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

// gateway is what a lookout sees.
type gateway struct {
	rows  []fleet.Load
	err   error
	looks int
}

func (g *gateway) queues(_ context.Context, now time.Time) ([]fleet.Load, error) {
	g.looks++
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

func newLookout(t *testing.T, g *gateway, targets ...fleet.Target) *Lookout {
	t.Helper()
	board := NewBoard(BoardOptions{Clock: clocktesting.NewFakeClock(start)})
	board.Post(planAt(start, targets...))
	lookout, err := NewLookout(LookoutOptions{
		Board: board, Queues: g.queues, Variants: func() []fleet.Variant { return []fleet.Variant{serving("a", ""), serving("b", "served-b")} },
	})
	require.NoError(t, err)
	return lookout
}

func TestLookoutWakesForAQueueAtAModelThatStandsAtZero(t *testing.T) {
	tests := []struct {
		name    string
		rows    []fleet.Load
		targets []fleet.Target
		wake    bool
		looks   int
	}{
		{"nobody waits", []fleet.Load{waiting("model-a", 0)}, []fleet.Target{target("a", 0)}, false, 1},
		{"somebody waits", []fleet.Load{waiting("model-a", 2)}, []fleet.Target{target("a", 0)}, true, 1},
		{"under the name of the engines", []fleet.Load{waiting("served-b", 2)}, []fleet.Target{target("b", 0)}, true, 1},
		{"not under its own name then", []fleet.Load{waiting("model-b", 2)}, []fleet.Target{target("b", 0)}, false, 1},
		{"for a model that is up", []fleet.Load{waiting("model-a", 2)}, []fleet.Target{target("a", 1), target("b", 0)}, false, 1},
		{"for a model of nobody", []fleet.Load{waiting("model-c", 2)}, []fleet.Target{target("a", 0)}, false, 1},
		{"queue that is not known", []fleet.Load{{Namespace: "prod", Model: "model-a", Queued: fleet.Reading{State: fleet.Stale}}}, []fleet.Target{target("a", 0)}, false, 1},
		{"in another namespace", []fleet.Load{{Namespace: "dev", Model: "model-a", Queued: fleet.Observed(1)}}, []fleet.Target{target("a", 0)}, false, 1},
		{"for a model without room", []fleet.Load{waiting("model-a", 2)}, []fleet.Target{cramped("a"), target("b", 0)}, false, 1},
		{"for another model than that", []fleet.Load{waiting("model-a", 2), waiting("served-b", 1)}, []fleet.Target{cramped("a"), target("b", 0)}, true, 1},
		{"no room for the only one", []fleet.Load{waiting("model-a", 2)}, []fleet.Target{cramped("a")}, false, 0},
		{"nobody at zero", []fleet.Load{waiting("model-a", 2)}, []fleet.Target{target("a", 1)}, false, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := &gateway{rows: test.rows}
			wake, err := newLookout(t, g, test.targets...).Look(t.Context(), start)
			require.NoError(t, err)
			require.Equal(t, test.wake, wake)
			require.Equal(t, test.looks, g.looks)
		})
	}
}

func TestLookoutRepeatsWhatItSawForAWhile(t *testing.T) {
	g := &gateway{rows: []fleet.Load{waiting("model-a", 2), waiting("served-b", 0)}}
	lookout := newLookout(t, g, target("a", 0))
	require.Empty(t, lookout.Seen(start))
	_, err := lookout.Look(t.Context(), start)
	require.NoError(t, err)
	seen := waiting("model-a", 2)
	seen.Time = start
	require.Equal(t, []fleet.Load{seen}, lookout.Seen(start.Add(15*time.Second)), "who waits, and nobody else")
	require.Empty(t, lookout.Seen(start.Add(16*time.Second)))
	require.Len(t, lookout.Seen(start), 1, "reading changes nothing")

	g.rows = nil
	_, err = lookout.Look(t.Context(), start.Add(time.Second))
	require.NoError(t, err)
	require.Empty(t, lookout.Seen(start.Add(time.Second)), "the latest look counts")
}

func TestAFailedLookWakesNobodyAndForgetsNothing(t *testing.T) {
	g := &gateway{rows: []fleet.Load{waiting("model-a", 2)}}
	lookout := newLookout(t, g, target("a", 0))
	_, err := lookout.Look(t.Context(), start)
	require.NoError(t, err)
	g.err = errors.New("gateway away")
	wake, err := lookout.Look(t.Context(), start.Add(time.Second))
	require.ErrorIs(t, err, g.err)
	require.False(t, wake)
	require.Len(t, lookout.Seen(start.Add(time.Second)), 1)
}

func TestNewLookoutSaysWhatIsMissing(t *testing.T) {
	_, err := NewLookout(LookoutOptions{})
	require.ErrorContains(t, err, "set LookoutOptions.Board, Queues and Variants")
}
