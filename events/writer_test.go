package events

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/wva-project/wva/fleet"
)

// eventWorld is a writer of events that runs in a bubble.
type eventWorld struct {
	*testing.T
	writer *Writer
	store  *store
	log    *logText
}

func writingEvents(t *testing.T, options WriterOptions, scenario func(w *eventWorld)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &eventWorld{T: t, store: newStore(), log: &logText{}}
		options.Config = w.store.config()
		options.Logger = slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		var err error
		w.writer, err = NewWriter(options)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.writer.Run(ctx) }()
		scenario(w)
		cancel()
		require.NoError(t, <-ended)
	})
}

// tell writes notices and waits until they are sent, a second at least.
func (w *eventWorld) tell(notices ...fleet.Notice) {
	w.Helper()
	w.writer.Write(notices)
	time.Sleep(time.Duration(1+len(notices)/eventsPerSecond) * time.Second)
	synctest.Wait()
}

func (w *eventWorld) events() []corev1.Event { return stored[corev1.Event](w.store, "events") }

// droppedFor returns how many events were dropped for a reason.
func (w *eventWorld) droppedFor(reason string) int {
	return int(testutil.ToFloat64(w.writer.dropped.WithLabelValues(reason)))
}

func (w *eventWorld) writtenSoFar() int { return int(testutil.ToFloat64(w.writer.written)) }

func warningOn(name, text string) fleet.Notice {
	return fleet.Notice{Variant: fleet.VariantID{Namespace: "llm", Name: name}, Warning: true, Code: fleet.CodeMetricsMissing, Text: text}
}

func changeOf(name, text string) fleet.Notice {
	return fleet.Notice{Variant: fleet.VariantID{Namespace: "llm", Name: name}, Code: fleet.CodeScaleUp, Text: text}
}

func TestEventsAreAboutTheObjectOfTheVariant(t *testing.T) {
	objects := map[string]corev1.ObjectReference{"a": {UID: "uid-a"}, "job": {Kind: "ScaledJob", UID: "uid-job"}}
	options := WriterOptions{Object: func(id fleet.VariantID) corev1.ObjectReference { return objects[id.Name] }}
	writingEvents(t, options, func(w *eventWorld) {
		w.tell(warningOn("a", "metrics are missing; check Prometheus"), changeOf("b", "1 -> 2: busy"), warningOn("job", "x"))
		events := w.events()
		require.Len(t, events, 3)
		a := events[0]
		require.Equal(t, corev1.ObjectReference{APIVersion: "keda.sh/v1alpha1", Kind: "ScaledObject", Namespace: "llm", Name: "a", UID: "uid-a"}, a.InvolvedObject)
		require.Equal(t, []any{"llm", "Warning", "MetricsMissing", "metrics are missing; check Prometheus", "wva", int32(1)},
			[]any{a.Namespace, a.Type, a.Reason, a.Message, a.Source.Component, a.Count})
		require.False(t, a.FirstTimestamp.IsZero())
		require.Equal(t, "Normal", events[1].Type)
		require.Empty(t, events[1].InvolvedObject.UID)
		require.Equal(t, "ScaledJob", events[2].InvolvedObject.Kind)
		require.Equal(t, 3, w.writtenSoFar())
	})
}

func TestEqualEventsBecomeOneWithACount(t *testing.T) {
	writingEvents(t, WriterOptions{}, func(w *eventWorld) {
		for range 3 {
			w.tell(warningOn("a", "metrics are missing"))
			time.Sleep(time.Minute)
		}
		events := w.events()
		require.Len(t, events, 1)
		require.EqualValues(t, 3, events[0].Count)
		require.Greater(t, events[0].LastTimestamp.Sub(events[0].FirstTimestamp.Time), time.Minute)
		require.Equal(t, 2, w.store.asked("patch events"))

		w.store.forget()
		w.tell(warningOn("a", "metrics are missing"))
		require.Len(t, w.events(), 1, "one that expired is made anew")
		require.Equal(t, 4, w.writtenSoFar())
	})
}

func TestManyChangesOfOneObjectAreCombined(t *testing.T) {
	writingEvents(t, WriterOptions{}, func(w *eventWorld) {
		for i := range 15 {
			w.tell(changeOf("a", fmt.Sprintf("%d -> %d: busy", i, i+1)))
		}
		events := w.events()
		require.Len(t, events, 10)
		together := slices.IndexFunc(events, func(e corev1.Event) bool {
			return strings.HasPrefix(e.Message, "(combined from similar events): 14 -> 15")
		})
		require.GreaterOrEqual(t, together, 0)
	})
}

func TestAnObjectThatChangesAllTheTimeStillGetsItsWarnings(t *testing.T) {
	writingEvents(t, WriterOptions{}, func(w *eventWorld) {
		for i := range 40 {
			n := changeOf("a", "x")
			n.Code = fleet.Code(fmt.Sprintf("Code%d", i))
			w.tell(n)
		}
		require.Equal(t, 25, w.writtenSoFar())
		require.Equal(t, 15, w.droppedFor(dropRate))
		w.tell(warningOn("a", "metrics are missing"), changeOf("b", "1 -> 2: busy"))
		require.Equal(t, 27, w.writtenSoFar())
	})
}

// A tenant makes ConfigMaps at will. Their events leave those of others their share.
func TestManyConfigMapsOfOneNamespaceAreLimitedTogether(t *testing.T) {
	writingEvents(t, WriterOptions{}, func(w *eventWorld) {
		for i := range 60 {
			w.writer.WriteConfigMaps([]ConfigMapEvent{{Namespace: "llm", Name: fmt.Sprintf("m%d", i), UID: fmt.Sprint(i), Text: "x"}})
		}
		w.writer.WriteConfigMaps([]ConfigMapEvent{{Namespace: "other", Name: "m", UID: "m", Text: "x"}})
		w.tell(warningOn("m1", "metrics are missing"))
		time.Sleep(time.Minute)
		require.Equal(t, 27, w.writtenSoFar())
		require.Equal(t, 35, w.droppedFor(dropRate))
	})
}

func TestMissingRoleIsLoggedOnce(t *testing.T) {
	writingEvents(t, WriterOptions{}, func(w *eventWorld) {
		w.store.fail(forbidden)
		w.tell(warningOn("a", "x"), warningOn("b", "x"), warningOn("c", "x"))
		require.Equal(t, 3, w.store.asked("create events"), "each once")
		require.Equal(t, 3, w.droppedFor(dropForbidden))
		warnings := w.log.lines("WARN")
		require.Len(t, warnings, 1)
		for _, part := range []string{"verb=create", "resource=events", "namespace=llm", "allow create and patch on events"} {
			require.Contains(t, warnings[0], part)
		}
		w.store.fail(nil)
		w.tell(warningOn("d", "x"))
		require.Equal(t, 1, w.writtenSoFar(), "the role may come")
	})
}

func TestNamespaceThatIsBeingDeletedIsNoMissingRole(t *testing.T) {
	writingEvents(t, WriterOptions{}, func(w *eventWorld) {
		w.store.fail(terminating)
		w.tell(warningOn("a", "x"))
		require.Equal(t, 1, w.droppedFor(dropFailed))
		require.Empty(t, w.log.lines("WARN"))
	})
}

func TestEventsWaitForAnAPIServerThatIsGone(t *testing.T) {
	writingEvents(t, WriterOptions{}, func(w *eventWorld) {
		w.store.fail(gone)
		w.tell(warningOn("a", "x"), warningOn("b", "x"))
		time.Sleep(10 * time.Second)
		w.store.fail(nil)
		time.Sleep(20 * time.Second)
		require.Len(t, w.events(), 2)

		w.store.fail(gone)
		w.tell(warningOn("c", "x"))
		time.Sleep(time.Minute)
		require.Equal(t, 1, w.droppedFor(dropFailed), "after a minute the next one is tried")
		// the scenario ends while this one waits: Run returns all the same
		w.tell(warningOn("d", "x"))
	})
}

func TestAnAnswerThatWasLostMakesNoSecondEvent(t *testing.T) {
	writingEvents(t, WriterOptions{}, func(w *eventWorld) {
		lost := true
		w.store.fail(func(string, string) error { return nil })
		w.writer.client.rest.Client.Transport = losing{w.store, &lost}
		w.tell(warningOn("a", "x"))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Len(t, w.events(), 1)
		require.Equal(t, 1, w.writtenSoFar())
		require.Equal(t, 2, w.store.asked("create events"))
	})
}

func TestWriteNeverBlocks(t *testing.T) {
	w, err := NewWriter(WriterOptions{Config: newStore().config()})
	require.NoError(t, err)
	notices := make([]fleet.Notice, eventsWaiting+500)
	w.Write(notices) // nobody runs it
	require.InDelta(t, 500, testutil.ToFloat64(w.dropped.WithLabelValues(dropQueueFull)), 0)
}

func TestOnlyTheLeaderWritesEvents(t *testing.T) {
	leads := false
	writingEvents(t, WriterOptions{Leader: func() bool { return leads }}, func(w *eventWorld) {
		w.tell(warningOn("a", "x"))
		require.Empty(t, w.events())
		leads = true
		w.tell(warningOn("b", "x"))
		require.Len(t, w.events(), 1)
	})
}

func TestEventsFitTheLimitsOfTheAPIServer(t *testing.T) {
	writingEvents(t, WriterOptions{}, func(w *eventWorld) {
		w.tell(warningOn(strings.Repeat("n", 253), strings.Repeat("ä", 3000)))
		events := w.events()
		require.Len(t, events, 1)
		require.LessOrEqual(t, len(events[0].Message), maxEventText)
		require.True(t, strings.HasSuffix(events[0].Message, "ä…"))
		require.LessOrEqual(t, len(events[0].Name), 253)
	})
}

func TestNewWriterReturnsErrorsWithRemedies(t *testing.T) {
	_, err := NewWriter(WriterOptions{})
	require.ErrorContains(t, err, "set WriterOptions.Config")
	_, err = NewWriter(WriterOptions{Config: &rest.Config{Host: "http://a\nb"}})
	require.ErrorContains(t, err, "correct the kubeconfig")
	registry := prometheus.NewPedanticRegistry()
	_, err = NewWriter(WriterOptions{Config: newStore().config(), Registerer: registry})
	require.NoError(t, err)
	_, err = NewWriter(WriterOptions{Config: newStore().config(), Registerer: registry})
	require.ErrorContains(t, err, "registering metrics")
	problems, err := testutil.GatherAndLint(registry)
	require.NoError(t, err)
	require.Empty(t, problems)
}
