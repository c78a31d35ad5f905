package conformance

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/scaler"
)

// requireStatus asserts the error that KEDA gets: it writes the text whole into an event on its
// user's object.
func requireStatus(t *testing.T, err error, code codes.Code, text string) {
	t.Helper()
	require.Error(t, err)
	got := status.Convert(err)
	require.Equal(t, code.String(), got.Code().String(), err.Error())
	require.Contains(t, got.Message(), text)
	require.Less(t, len(got.Message()), 200)
}

func TestNothingKnownIsUnavailableWithTheReason(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.trigger("a").ask(t)
	requireStatus(t, err, codes.Unavailable, "nothing is decided yet")

	w.board.Post(fleet.Plan{Time: epoch, Decisions: []fleet.Decision{w.decided("a", 1), w.held("blind", 0, false)}})
	w.trigger("a").requireNumber(t, 1)
	_, err = w.trigger("new").ask(t)
	requireStatus(t, err, codes.Unavailable, w.namespace+"/new is not decided yet")
	_, err = w.trigger("blind").ask(t)
	requireStatus(t, err, codes.Unavailable, "2 ready replicas have no metrics; check the PodMonitor")

	w.step(7 * time.Minute)
	_, err = w.trigger("a").ask(t)
	requireStatus(t, err, codes.Unavailable, "the latest plan is 7m0s old")
}

// TestANewObjectKeepsItsReplicas polls an object that was created after the latest plan.
func TestANewObjectKeepsItsReplicas(t *testing.T) {
	t.Parallel()
	replicas := map[string]int{"new": 3, "zero": 0}
	w := newWorld(t, func(w *world, o *scaler.ServerOptions) {
		o.Observed = func(id fleet.VariantID) (int, bool) {
			n, ok := replicas[id.Name]
			return n, ok && id.Namespace == w.namespace
		}
	})
	w.post(w.decided("a", 1))
	zero := w.trigger("zero").subscribe(t)
	told := readAll(t, zero)
	w.trigger("new").requireNumber(t, 3)
	w.trigger("zero").requireNumber(t, 0)
	_, err := w.trigger("nobody").ask(t)
	requireStatus(t, err, codes.Unavailable, w.namespace+"/nobody is not decided yet")
	w.post(w.decided("a", 1), w.decided("new", 5), w.inactive("zero", 0))
	w.trigger("new").requireNumber(t, 5)
	w.step(time.Minute)
	zero.end()
	require.Zero(t, <-told, "nothing is activated")
}

func TestErrorTextReachesKEDAWholeAndIsStable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	blind := w.held("blind", 0, false)
	blind.Reason = fleet.Reason{Code: fleet.CodeTargetNotFound, Text: "Deployment prod/llama not found"}.
		With(fleet.DetailCause, "in cycle 1").With(fleet.DetailRemedy, "check scaleTargetRef, and that wva watches the namespace")
	w.board.Post(fleet.Plan{Time: epoch, Decisions: []fleet.Decision{blind}})
	_, first := w.trigger("blind").ask(t)
	requireStatus(t, first, codes.Unavailable, "Deployment prod/llama not found; check scaleTargetRef, and that wva watches the namespace")
	for range 3 {
		w.board.Post(fleet.Plan{Time: w.clock.Now(), Decisions: []fleet.Decision{blind}})
		w.step(17 * time.Second)
		_, again := w.trigger("blind").ask(t)
		require.EqualError(t, again, first.Error(), "Kubernetes folds equal events into one")
	}
	blind.Reason.Text = strings.Repeat("long ", 200)
	w.board.Post(fleet.Plan{Time: w.clock.Now(), Decisions: []fleet.Decision{blind}})
	_, err := w.trigger("blind").ask(t)
	requireStatus(t, err, codes.Unavailable, "long long")
}

func TestInvalidMetadataOfAnUndecidedObjectAreNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.post(w.decided("a", 1))
	for text, metadata := range map[string]map[string]string{
		"modelID":     {},
		"variantCost": {"modelID": "m", "variantCost": "minus ten"},
		"minus ten":   {"modelID": "m", "variantCost": "minus ten"},
	} {
		k := w.trigger("new")
		k.metadata = metadata
		_, err := k.ask(t)
		requireStatus(t, err, codes.InvalidArgument, text)
	}
}

func TestSecretsAreNeitherEchoedNorLogged(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-s3cr3t"
	w := newWorld(t)
	w.post(w.decided("a", 1))
	k := w.trigger("new")
	k.env = map[string]string{"TOKEN": secret, "COST": secret}
	for _, metadata := range []map[string]string{
		{"passwordFromEnv": "TOKEN"},
		{"modelIDFromEnv": "TOKEN", "variantCost": "x"},
		{"modelID": "m", "variantCostFromEnv": "COST"},
		{"modelID": "m", "acceleratorFromEnv": "COST", "ttft": "x"},
	} {
		k.metadata = metadata
		_, err := k.ask(t)
		require.Error(t, err)
		require.NotContains(t, err.Error(), secret)
		requireSpec(t, k, k.poll(t).GetMetricSpecForScaling(t.Context()))
	}
	u := k.subscribe(t)
	w.awaitStreams("StreamIsActive", 1)
	u.end()
	require.NotContains(t, w.logs.String(), secret)
	require.Empty(t, k.logged(secret))
}

// TestErrorsAreRare keeps asking while plans come and go, some variants are held and all metadata
// are invalid: if a number is known there is never an error, since each one counts towards the
// fallback of KEDA's user.
func TestErrorsAreRare(t *testing.T) {
	t.Parallel()
	const objects, polls = 8, 100
	w := newWorld(t)
	post := func(round int) {
		plan := fleet.Plan{Time: w.clock.Now()}
		for i := range objects {
			name := fmt.Sprintf("v%d", i)
			if (i+round)%3 == 0 {
				plan.Decisions = append(plan.Decisions, w.held(name, i, true))
			} else {
				plan.Decisions = append(plan.Decisions, w.decided(name, i))
			}
		}
		w.board.Post(plan)
	}
	post(0)
	posting, stop := sync.WaitGroup{}, make(chan struct{})
	posting.Go(func() {
		for round := 0; ; round++ {
			select {
			case <-stop:
				return
			default:
				post(round)
			}
		}
	})
	var polling sync.WaitGroup
	for i := range objects {
		k := w.trigger(fmt.Sprintf("v%d", i))
		k.metadata = map[string]string{"variantCost": "minus ten", "ttft": "soon"}
		s := k.poll(t)
		polling.Go(func() {
			for range polls {
				metrics, active, err := s.GetMetricsAndActivity(t.Context(), k.metricName())
				if err != nil || len(metrics) != 1 || metrics[0].Value.CmpInt64(int64(i)) != 0 || active != (i > 0) {
					t.Errorf("%s: %v, active %v: %v", k.name, metrics, active, err)
				}
			}
		})
	}
	polling.Wait()
	close(stop)
	posting.Wait()
}

// TestAlmostAMegabyteOfMetadata needs no copy of it to answer: the plan comes first, and metadata
// are read only if it has no number, up to a limit.
func TestAlmostAMegabyteOfMetadata(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.post(w.decided("a", 3))
	big := map[string]string{"modelID": "m", "notes": strings.Repeat("x", 1_000_000)}
	known, unknown := w.trigger("a"), w.trigger("new")
	known.metadata, unknown.metadata = big, big
	known.requireNumber(t, 3)
	requireSpec(t, known, known.poll(t).GetMetricSpecForScaling(t.Context()))
	_, err := unknown.ask(t)
	requireStatus(t, err, codes.ResourceExhausted, "trigger metadata have 1000")
	u := known.subscribe(t)
	w.post(w.inactive("a", 3))
	require.True(t, <-u.active)
}

func TestMetadataAboveTheLimitOfARequestAreRejected(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.post(w.decided("a", 3))
	k := w.trigger("a")
	// Kubernetes stores no such object
	k.metadata = map[string]string{"modelID": "m", "notes": strings.Repeat("x", 5<<20)}
	_, err := k.ask(t)
	requireStatus(t, err, codes.ResourceExhausted, "larger than max")
	w.trigger("a").requireNumber(t, 3)
}
