package scaler

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/wva-project/wva/fleet"
)

func TestBoardIsNotReadyBeforeTheFirstPlan(t *testing.T) {
	board := NewBoard(BoardOptions{})
	require.ErrorContains(t, board.Ready(), "nothing is decided yet")
	_, known := board.Lookup(variant("a"))
	require.False(t, known)
	_, posted := board.Plan()
	require.False(t, posted)
	_, posted = board.Age()
	require.False(t, posted)
}

func TestBoardAnswersFromTheLatestPlan(t *testing.T) {
	board := NewBoard(BoardOptions{Clock: clocktesting.NewFakeClock(start)})
	board.Post(planAt(start, decided("a", 3), decided("b", 1)))
	board.Post(planAt(start, decided("a", 4), held("c", 2, true)))

	a, known := board.Lookup(variant("a"))
	require.True(t, known)
	require.Equal(t, 4, a.Replicas)
	c, known := board.Lookup(variant("c"))
	require.True(t, known)
	require.True(t, c.Held)
	require.Equal(t, 2, c.Replicas)
	_, known = board.Lookup(variant("b"))
	require.False(t, known, "the object is gone from the plan")
	require.NoError(t, board.Ready())
}

func TestBoardIsNotReadyWithAPlanThatIsTooOld(t *testing.T) {
	clock := clocktesting.NewFakeClock(start)
	board := NewBoard(BoardOptions{Clock: clock, MaxAge: 5 * time.Minute})
	board.Post(planAt(start, decided("a", 3)))

	clock.Step(5 * time.Minute)
	require.NoError(t, board.Ready())
	clock.Step(time.Second)
	require.ErrorContains(t, board.Ready(), "the latest plan is 5m0s old, above the limit of 5m0s")
	first := board.Ready().Error()
	clock.Step(30 * time.Second)
	require.Equal(t, first, board.Ready().Error(), "the text stays within a minute, so that events fold")

	board.Post(planAt(clock.Now(), decided("a", 3)))
	require.NoError(t, board.Ready())
}

func TestBoardTakesAPlanOfTheFutureForNew(t *testing.T) {
	board := NewBoard(BoardOptions{Clock: clocktesting.NewFakeClock(start)})
	board.Post(planAt(start.Add(time.Hour)))
	age, posted := board.Age()
	require.True(t, posted)
	require.Zero(t, age)
}

func TestBoardPostWakesWhoWaits(t *testing.T) {
	board := NewBoard(BoardOptions{})
	changed := board.Changed()
	select {
	case <-changed:
		t.Fatal("changed before a plan was posted")
	default:
	}
	board.Post(planAt(start))
	<-changed
	require.NotEqual(t, changed, board.Changed())
}

func TestBoardKnowsWhetherAQueueCouldWakeAModel(t *testing.T) {
	sameModel := func(decisions ...fleet.Decision) []fleet.Decision {
		for i := range decisions {
			decisions[i].Facts.Model = fleet.ModelID{Namespace: "prod", Name: "shared"}
		}
		return decisions
	}
	tests := []struct {
		name string
		plan fleet.Plan
		want bool
	}{
		{"nothing decided", fleet.Plan{}, false},
		{"every model up", planAt(start, decided("a", 1), decided("b", 2)), false},
		{"one of two models at zero", planAt(start, decided("a", 1), decided("b", 0)), true},
		{"one of two variants of a model at zero", planAt(start, sameModel(decided("a", 0), decided("b", 1))...), false},
		{"all variants of a model at zero", planAt(start, sameModel(decided("a", 0), decided("b", 0))...), true},
		{"a model lacks accelerators", planAt(start, unplaceable("a")), false},
		{"one of two models at zero lacks accelerators", planAt(start, unplaceable("a"), decided("b", 0)), true},
		{"a variant of a model at zero lacks accelerators", planAt(start, sameModel(unplaceable("a"), decided("b", 0))...), false},
		{"held at zero", fleet.Plan{Decisions: []fleet.Decision{held("a", 0, true)}}, true},
		{"number not known", fleet.Plan{Decisions: []fleet.Decision{held("a", 0, false)}}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			board := NewBoard(BoardOptions{})
			board.Post(test.plan)
			require.Equal(t, test.want, len(board.latest.Load().wakeable) > 0)
		})
	}
}

func TestBoardKeepsOneDecisionOfAVariantThatIsThereTwice(t *testing.T) {
	board := NewBoard(BoardOptions{})
	board.Post(planAt(start, decided("a", 3), decided("a", 4)))
	require.Len(t, board.latest.Load().decisions, 1)
}

func TestBoardIsReadWhileItIsWritten(t *testing.T) {
	board := NewBoard(BoardOptions{})
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() {
			for replicas := range 200 {
				board.Post(planAt(start, decided("a", replicas), decided("b", replicas)))
			}
		})
		running.Go(func() {
			for range 200 {
				latest := board.latest.Load()
				a, found := latest.lookup(variant("a"))
				b, _ := latest.lookup(variant("b"))
				if found && a.Replicas != b.Replicas {
					t.Error("a plan was seen half replaced")
				}
			}
		})
	}
	running.Wait()
}
