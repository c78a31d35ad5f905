package scaler

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/wva-project/wva/fleet"
)

// stage is a pusher in virtual time, without a network.
type stage struct {
	*testing.T
	clock  *clocktesting.FakeClock
	board  *Board
	pusher *pusher
}

func newStage(t *testing.T) *stage {
	clock := clocktesting.NewFakeClock(start)
	board := NewBoard(BoardOptions{Clock: clock})
	return &stage{T: t, clock: clock, board: board, pusher: newPusher(board, 1, 15)}
}

func (s *stage) open(name string) *stream {
	s.Helper()
	opened, err := s.pusher.open(caller{}, variant(name), true)
	require.NoError(s, err)
	return opened
}

func (s *stage) post(decisions ...fleet.Decision) { s.board.Post(planAt(s.clock.Now(), decisions...)) }

// pushed steps the pusher, sends every turn that it hands out, and returns to whom.
func (s *stage) pushed(streams ...*stream) []string {
	s.Helper()
	s.pusher.step()
	var names []string
	for _, stream := range streams {
		select {
		case <-stream.turn:
			names = append(names, stream.object.id.Name)
			s.pusher.done(stream, nil)
		default:
		}
	}
	return names
}

func TestPusherActivatesAnObjectOnTheEdge(t *testing.T) {
	s := newStage(t)
	a, b := s.open("a"), s.open("b")
	require.Empty(t, s.pushed(a, b), "nothing is decided")
	s.post(inactive("a", 0), decided("b", 3))
	require.Empty(t, s.pushed(a, b), "a is to stay inactive, and b is active")
	s.post(inactive("a", 1), decided("b", 4))
	require.Equal(t, []string{"a"}, s.pushed(a, b))
	require.Empty(t, s.pushed(a, b), "once is enough for now")
}

func TestPusherActivatesAnObjectWhenItsStreamOpens(t *testing.T) {
	s := newStage(t)
	s.post(inactive("a", 2))
	require.Equal(t, []string{"a"}, s.pushed(s.open("a")))
}

func TestPusherRepeatsWithGrowingDelaysWhileTheObjectIsInactive(t *testing.T) {
	s := newStage(t)
	a := s.open("a")
	s.post(inactive("a", 1))
	require.Equal(t, []string{"a"}, s.pushed(a))
	last := s.clock.Now()
	for _, delay := range []time.Duration{1, 2, 4, 8, 16, 30, 30, 30} {
		next, waits := s.pusher.step()
		require.True(t, waits)
		waited := next.Sub(last)
		require.LessOrEqual(t, waited, delay*time.Second)
		require.GreaterOrEqual(t, waited, delay*time.Second*8/10)
		s.clock.SetTime(next.Add(-1))
		require.Empty(t, s.pushed(a))
		s.clock.SetTime(next)
		s.post(inactive("a", 1)) // the same decision again is no edge
		require.Equal(t, []string{"a"}, s.pushed(a))
		last = next
	}
}

func TestPusherStopsWhenTheObjectIsActive(t *testing.T) {
	s := newStage(t)
	a := s.open("a")
	s.post(inactive("a", 1))
	require.Equal(t, []string{"a"}, s.pushed(a))
	s.post(decided("a", 1))
	_, waits := s.pusher.step()
	require.False(t, waits)
	s.clock.Step(time.Minute)
	require.Empty(t, s.pushed(a))

	s.post(inactive("a", 1))
	require.Equal(t, []string{"a"}, s.pushed(a), "inactive again: a new edge")
	next, _ := s.pusher.step()
	require.LessOrEqual(t, next.Sub(s.clock.Now()), time.Second, "the delays begin anew")
}

func TestPusherPushesNothingForAnObjectThatLeftThePlan(t *testing.T) {
	s := newStage(t)
	a := s.open("a")
	s.post(inactive("a", 1))
	require.Equal(t, []string{"a"}, s.pushed(a))
	s.post()
	s.clock.Step(time.Minute)
	s.post()
	require.Empty(t, s.pushed(a))
}

func TestPusherPushesAHeldNumberToo(t *testing.T) {
	s := newStage(t)
	a, b := s.open("a"), s.open("b")
	known, unknown := held("a", 2, true), held("b", 2, false)
	known.Facts.Inactive, unknown.Facts.Inactive = true, true
	s.board.Post(planAt(start, known, unknown))
	require.Equal(t, []string{"a"}, s.pushed(a, b))
}

func TestPusherActivatesNothingFromAnOldPlan(t *testing.T) {
	s := newStage(t)
	s.post(inactive("a", 1))
	s.clock.Step(6 * time.Minute)
	a := s.open("a")
	_, waits := s.pusher.step()
	require.False(t, waits, "nothing to do before a new plan")
	require.Empty(t, s.pushed(a))
	s.post(inactive("a", 1))
	require.Equal(t, []string{"a"}, s.pushed(a))
}

func TestPusherSendsFiveASecondToACaller(t *testing.T) {
	s := newStage(t)
	var streams []*stream
	var decisions []fleet.Decision
	for i := range 23 {
		name := fmt.Sprintf("v%02d", i)
		streams = append(streams, s.open(name))
		decisions = append(decisions, inactive(name, 1))
	}
	s.post(decisions...)
	require.Len(t, s.pushed(streams...), pushesPerSecond, "at once")
	next, waits := s.pusher.step()
	require.True(t, waits)
	require.Equal(t, start.Add(time.Second/pushesPerSecond), next)
	sent := 0
	for range 60 {
		s.clock.Step(100 * time.Millisecond)
		sent += len(s.pushed(streams...))
		require.LessOrEqual(t, sent, int(s.clock.Since(start)*pushesPerSecond/time.Second))
	}
	require.GreaterOrEqual(t, sent, 29)
}

func TestEachCallerHasARateOfItsOwn(t *testing.T) {
	s := newStage(t)
	var decisions []fleet.Decision
	for i := range 200 {
		name := fmt.Sprintf("a%03d", i)
		_, err := s.pusher.open(caller{"10.0.0.2", 2}, variant(name), true)
		require.NoError(t, err)
		decisions = append(decisions, inactive(name, 1))
	}
	last := s.open("z")
	s.post(append(decisions, inactive("z", 1))...)
	require.Equal(t, []string{"z"}, s.pushed(last))
}

func TestAnObjectGetsOnePushForAnEdgeHoweverManyStreamsACallerOpens(t *testing.T) {
	s := newStage(t)
	streams := []*stream{s.open("a"), s.open("a"), s.open("a")}
	pushed := func() (numbers []int) {
		s.pusher.step()
		for i, stream := range streams {
			select {
			case <-stream.turn:
				numbers = append(numbers, i)
				s.pusher.done(stream, nil)
			default:
			}
		}
		return numbers
	}
	s.post(inactive("a", 1))
	require.Equal(t, []int{2}, pushed(), "the latest: the others may be dead")
	var later []int
	for range 4 {
		next, waits := s.pusher.step()
		require.True(t, waits)
		s.clock.SetTime(next)
		s.post(inactive("a", 1))
		later = append(later, pushed()...)
	}
	require.Equal(t, []int{1, 0, 2, 1}, later, "repeats go to the others in turn")

	other, err := s.pusher.open(caller{"10.0.0.2", 2}, variant("a"), true)
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, s.pushed(other), "another caller gets its own")
}

func TestAStreamThatDoesNotSendKeepsNoPushFromAnotherOfItsObject(t *testing.T) {
	s := newStage(t)
	s.open("a")
	s.post(inactive("a", 1))
	s.pusher.step() // the first stream has its turn, and never gives it back
	second := s.open("a")
	require.Equal(t, []string{"a"}, s.pushed(second))
	s.clock.Step(time.Second)
	s.post(inactive("a", 1))
	require.Equal(t, []string{"a"}, s.pushed(second))
	s.pusher.close(second)
	_, waits := s.pusher.step()
	require.False(t, waits, "nobody is left who could send")
}

func TestPusherPrefersANewEdgeToRepeats(t *testing.T) {
	s := newStage(t)
	var streams []*stream
	var decisions []fleet.Decision
	for i := range 100 {
		name := fmt.Sprintf("old%02d", i)
		streams = append(streams, s.open(name))
		decisions = append(decisions, inactive(name, 1))
	}
	s.post(decisions...)
	for range 20 {
		require.Len(t, s.pushed(streams...), 5)
		s.clock.Step(time.Second)
	}
	fresh := s.open("fresh")
	s.post(append(decisions, inactive("fresh", 1))...)
	require.Contains(t, s.pushed(append(streams, fresh)...), "fresh")
}

func TestPusherDelaysNobodyForAStreamThatDoesNotSend(t *testing.T) {
	s := newStage(t)
	stuck, fine := s.open("a-stuck"), s.open("b-fine")
	s.post(inactive("a-stuck", 1), inactive("b-fine", 1))
	s.pusher.step() // a-stuck has its turn, and never gives it back
	sent := len(s.pushed(fine))
	for range 100 {
		s.clock.Step(time.Second)
		s.post(inactive("a-stuck", 1), inactive("b-fine", 1))
		sent += len(s.pushed(fine))
	}
	require.GreaterOrEqual(t, sent, 7)
	require.Len(t, stuck.turn, 1, "however long it takes, one push waits: the latest wins")
}

func TestPusherPushesAtOnceAfterANewEdgeDuringASend(t *testing.T) {
	s := newStage(t)
	a := s.open("a")
	s.post(inactive("a", 1))
	s.pusher.step()
	<-a.turn
	s.post(decided("a", 1))
	s.pusher.step()
	s.post(inactive("a", 1))
	s.pusher.step()
	require.Empty(t, a.turn)
	s.pusher.done(a, nil)
	require.Equal(t, []string{"a"}, s.pushed(a))
}

func TestPusherJitterDependsOnSeedVariantAndAttemptOnly(t *testing.T) {
	board := NewBoard(BoardOptions{})
	one, same, other := newPusher(board, 1, 1), newPusher(board, 1, 1), newPusher(board, 2, 1)
	for attempts := 1; attempts < 8; attempts++ {
		require.Equal(t, one.delay(variant("a"), attempts), same.delay(variant("a"), attempts))
		require.NotEqual(t, one.delay(variant("a"), attempts), one.delay(variant("b"), attempts))
		require.NotEqual(t, one.delay(variant("a"), attempts), other.delay(variant("a"), attempts))
	}
}

func TestPusherCapsStreamsOfUnknownObjects(t *testing.T) {
	s := newStage(t)
	for i := range 20 {
		s.open(fmt.Sprintf("early%d", i)) // before the first plan nobody knows who is unknown
	}
	s.post(decided("known", 1))
	_, err := s.pusher.open(caller{}, variant("x"), true)
	require.ErrorContains(t, err, "too many streams")
	s.open("known")

	s = newStage(t)
	s.post(decided("known", 1))
	var last *stream
	for i := range 10 {
		last = s.open(fmt.Sprintf("x%d", i))
	}
	_, err = s.pusher.open(caller{}, variant("x"), false)
	require.ErrorContains(t, err, "too many streams")
	s.pusher.close(last)
	_, err = s.pusher.open(caller{}, variant("x"), false)
	require.NoError(t, err, "a closed stream does not count")

	s.post(decided("known", 1), decided("x0", 1))
	s.open("y")
	_, err = s.pusher.open(caller{}, variant("z"), true)
	require.Error(t, err, "one of an object that the plan now has does not count")
}

func TestPusherOnlyCountsStreamsThatDoNotPush(t *testing.T) {
	s := newStage(t)
	s.post(inactive("a", 1))
	quiet, err := s.pusher.open(caller{}, variant("a"), false)
	require.NoError(t, err)
	require.Empty(t, s.pushed(quiet))
}

func TestPusherForgetsClosedStreams(t *testing.T) {
	s := newStage(t)
	waiting, sending, failing := s.open("a"), s.open("b"), s.open("c")
	s.post(inactive("b", 1), inactive("c", 1))
	s.pusher.step()
	<-failing.turn
	s.pusher.done(failing, errors.New("gone"))
	s.pusher.close(failing)
	s.pusher.close(sending) // with its turn not taken
	s.post(inactive("a", 1))
	s.open("d")
	s.pusher.close(waiting)
	require.NoError(t, s.pusher.settle(t.Context()))
	require.Zero(t, s.pusher.pushes())
	queue := s.pusher.callers[caller{}]
	require.Len(t, queue.objects, 1)
	require.True(t, queue.later.empty() && queue.due.empty())
}

func TestSettleWaitsForSendsToReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		board := NewBoard(BoardOptions{})
		p := newPusher(board, 1, 15)
		a, err := p.open(caller{}, variant("a"), true)
		require.NoError(t, err)
		board.Post(planAt(time.Now(), inactive("a", 1)))
		settled := make(chan error, 1)
		go func() { settled <- p.settle(t.Context()) }()
		synctest.Wait()
		require.Empty(t, settled, "the send has not returned")
		<-a.turn
		p.done(a, nil)
		require.NoError(t, <-settled)
		require.EqualValues(t, 1, p.pushes())
	})
}

func TestSettleEndsWithItsContext(t *testing.T) {
	s := newStage(t)
	s.open("a")
	s.post(inactive("a", 1))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, s.pusher.settle(ctx), context.Canceled)
}

func TestPusherRunsByItselfInRealTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		board := NewBoard(BoardOptions{})
		p := newPusher(board, 1, 15)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go p.run(ctx)
		a, err := p.open(caller{}, variant("a"), true)
		require.NoError(t, err)
		synctest.Wait()

		board.Post(planAt(time.Now(), inactive("a", 1)))
		last := time.Now()
		for _, longest := range []time.Duration{0, time.Second, 2 * time.Second, 4 * time.Second} {
			<-a.turn
			require.LessOrEqual(t, time.Since(last), longest)
			require.GreaterOrEqual(t, time.Since(last), longest*8/10)
			last = time.Now()
			p.done(a, nil)
		}

		board.Post(planAt(time.Now(), decided("a", 1)))
		synctest.Wait()
		time.Sleep(time.Minute)
		require.Empty(t, a.turn)
	})
}
