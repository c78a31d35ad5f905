package inventory

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/fleet"
)

// handled returns the ScaledObject llm/NAME with a status by KEDA.
func handled(name, hpaName string) string {
	return scaled(name) + "\nstatus: {hpaName: \"" + hpaName + "\", conditions: [{type: Ready, status: \"True\"}]}"
}

const (
	metricFails = `, {type: ScalingActive, status: "False", reason: FailedGetExternalMetric, message: "unable to get external metric llm/s0-wva: connection refused"}`
	ambiguous   = `, {type: ScalingActive, status: "False", reason: AmbiguousSelector, message: "pods by selector app=llm are controlled by multiple HPAs: [llm/other llm/keda-hpa-a]"}`
)

func TestNumberThatNoHPAFollowsIsNamedWithTheRemedy(t *testing.T) {
	const missingRemedy = "; check that keda-operator runs, and the condition Ready of the ScaledObject"
	unrelated := hpaOf("web", "{apiVersion: apps/v1, kind: Deployment, name: web}", "")
	for _, test := range []struct {
		name    string
		objects []string
		code    fleet.Code
		text    string
	}{
		{"KEDA made none", []string{handled("a", ""), unrelated}, fleet.CodeHPAMissing, "KEDA made no HPA for the ScaledObject" + missingRemedy},
		{"the one that KEDA made is gone", []string{handled("a", "keda-hpa-a"), unrelated}, fleet.CodeHPAMissing, "HPA keda-hpa-a of the ScaledObject does not exist" + missingRemedy},
		{
			"it cannot read the metric", []string{handled("a", "keda-hpa-a"), kedaHPA("a", metricFails)}, fleet.CodeHPAInactive,
			"HPA keda-hpa-a does not scale (FailedGetExternalMetric: unable to get external metric llm/s0-wva: connection refused); " +
				"check the metrics API and the target with kubectl describe hpa keda-hpa-a",
		},
		{
			"it cannot read the target's scale",
			[]string{handled("a", "keda-hpa-a"), kedaHPA("a", `, {type: AbleToScale, status: "False", reason: FailedGetScale, message: "no\n matches"}`)},
			fleet.CodeHPAInactive, "HPA keda-hpa-a does not scale (FailedGetScale: no matches); check the metrics API and the target with kubectl describe hpa keda-hpa-a",
		},
		{
			"several HPAs select its pods", []string{handled("a", "keda-hpa-a"), kedaHPA("a", ambiguous)}, fleet.CodeAmbiguousSelector,
			"HPA keda-hpa-a does not scale (AmbiguousSelector: pods by selector app=llm are controlled by multiple HPAs: keda-hpa-a, other); " +
				"give the pods of each workload labels and a selector of their own",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			tables := objectsOf(t, append(test.objects, deployment("a", 1, "image: x"))...).Tables(Options{})
			require.Equal(t, fleet.Autoscaler{Observed: true, Code: test.code, Text: test.text}, tables.Variants[0].Autoscaler)
		})
	}
}

func TestHPAThatFollowsTheNumberIsObserved(t *testing.T) {
	for name, hpa := range map[string]string{
		"active":                  kedaHPA("a", `, {type: ScalingActive, status: "True", reason: ValidMetricFound}`),
		"disabled at zero":        kedaHPA("a", `, {type: ScalingActive, status: "False", reason: ScalingDisabled}`),
		"limited by its maximum":  kedaHPA("a", `, {type: ScalingLimited, status: "True", reason: TooManyReplicas}`),
		"adopted from its author": strings.Replace(kedaHPA("a", ""), "name: keda-hpa-a", "name: mine", 1),
	} {
		t.Run(name, func(t *testing.T) {
			tables := objectsOf(t, handled("a", "keda-hpa-a"), deployment("a", 1, "image: x"), hpa).Tables(Options{})
			require.Equal(t, fleet.Autoscaler{Observed: true}, tables.Variants[0].Autoscaler)
		})
	}
}

func TestHPAIsNotEvaluatedWithoutItsStatusOrIfKEDAMakesNone(t *testing.T) {
	paused := strings.Replace(handled("a", ""), "namespace: llm,", `namespace: llm, annotations: {autoscaling.keda.sh/paused: "true"},`, 1)
	unrelated, target := hpaOf("web", "{apiVersion: apps/v1, kind: Deployment, name: web}", ""), deployment("a", 1, "image: x")
	for name, objects := range map[string][]string{
		"no HPA was read":             {handled("a", "keda-hpa-a"), target},
		"the ScaledObject is a draft": {scaled("a"), unrelated, target},
		"the HPA is new":              {handled("a", "keda-hpa-a"), target, strings.Split(kedaHPA("a", ""), "\nstatus:")[0]},
		"paused":                      {paused, unrelated, target},
		"the target does not exist":   {handled("a", ""), unrelated},
		"a ScaledJob":                 {asJob(handled("a", "")), unrelated, target},
		"a dry run":                   {otherObject("a", "a", model) + "\nstatus: {conditions: [{type: Ready, status: \"True\"}]}", unrelated, target},
	} {
		t.Run(name, func(t *testing.T) {
			tables := objectsOf(t, objects...).Tables(Options{})
			require.Len(t, tables.Variants, 1)
			require.Zero(t, tables.Variants[0].Autoscaler)
		})
	}
}

func TestLongMessageOfAnHPAIsCutBetweenRunes(t *testing.T) {
	message := hpaMessage(hpaCondition{Message: "x" + strings.Repeat("ä", 500)})
	require.Equal(t, "x"+strings.Repeat("ä", (maxHPAMessage-1)/2)+"…", message)
}

// state returns the HPA's state of the only variant.
func (w *clusterWorld) state() fleet.Autoscaler {
	require.Len(w, w.Tables().Variants, 1)
	return w.Tables().Variants[0].Autoscaler
}

func TestHPAThatIsMissingIsReportedAfterTheGrace(t *testing.T) {
	inCluster(t, ClusterOptions{}, chat(2), func(w *clusterWorld) {
		require.Equal(t, fleet.Autoscaler{Observed: true}, w.state())
		w.api.remove("horizontalpodautoscalers.autoscaling llm/keda-hpa-chat")
		w.pass(autoscalerGrace - time.Second)
		require.Zero(t, w.state(), "KEDA may be about to make it anew")
		w.causes()
		w.pass(5 * time.Second)
		require.Equal(t, fleet.CodeHPAMissing, w.state().Code)
		require.Equal(t, "watch", w.causes(), "nothing else changed")
		w.api.apply(kedaHPA("chat", ""))
		w.settle()
		require.Equal(t, fleet.Autoscaler{Observed: true}, w.state())
		w.api.remove("horizontalpodautoscalers.autoscaling llm/keda-hpa-chat")
		w.settle()
		require.Zero(t, w.state(), "the grace begins again")
	})
}

func TestObjectWithoutAnHPAIsReportedByItsAge(t *testing.T) {
	for _, test := range []struct {
		created string
		want    fleet.Code
	}{{"1999-12-31T23:00:00Z", fleet.CodeHPAMissing}, {"1999-12-31T23:59:00Z", ""}, {"2000-01-01T00:01:00Z", ""}} {
		t.Run(test.created, func(t *testing.T) {
			object := strings.Replace(scaled("a"), "2026-01-01T00:00:00Z", test.created, 1)
			inCluster(t, ClusterOptions{}, []string{object, deployment("a", 1, "image: x")}, func(w *clusterWorld) {
				require.Equal(t, test.want, w.state().Code)
				w.pass(autoscalerGrace)
				require.Equal(t, fleet.CodeHPAMissing, w.state().Code)
			})
		})
	}
}

func TestHPAThatIsInactiveForAMomentIsNotReported(t *testing.T) {
	inCluster(t, ClusterOptions{}, chat(2), func(w *clusterWorld) {
		for range 3 {
			w.api.apply(kedaHPA("chat", metricFails))
			w.pass(time.Minute)
			require.Zero(t, w.state())
			w.api.apply(kedaHPA("chat", ""))
			w.pass(time.Minute)
			require.Equal(t, fleet.Autoscaler{Observed: true}, w.state())
		}
	})
}

func TestTextOfAnInactiveHPAStaysWhileItsCauseDoes(t *testing.T) {
	inCluster(t, ClusterOptions{}, chat(2), func(w *clusterWorld) {
		w.api.apply(kedaHPA("chat", metricFails))
		w.pass(3 * time.Minute)
		first := w.state()
		require.Contains(t, first.Text, "connection refused")
		w.causes()
		w.api.apply(kedaHPA("chat", strings.Replace(metricFails, "connection refused", "timeout", 1)))
		w.settle()
		require.Equal(t, first, w.state())
		require.Empty(t, w.causes())
		w.api.apply(kedaHPA("chat", ambiguous))
		w.settle()
		require.Equal(t, fleet.CodeAmbiguousSelector, w.state().Code, "another cause, and the number was not followed before")
	})
}

func TestStatusOfAnHPAThatScalesIsNoChange(t *testing.T) {
	inCluster(t, ClusterOptions{}, chat(2), func(w *clusterWorld) {
		w.causes()
		w.api.apply(kedaHPA("chat", `, {type: ScalingLimited, status: "True", message: "a"}`), kedaHPA("chat", `, {type: ScalingLimited, status: "False", message: "b"}`))
		w.settle()
		require.Empty(t, w.causes())
	})
}

func TestHPAsThatMayNotBeReadAreNotObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newClusterWorld(t, ClusterOptions{})
		w.api.deny("list horizontalpodautoscalers.autoscaling", 403)
		w.api.deny("watch horizontalpodautoscalers.autoscaling", 403)
		w.api.apply(chat(2)...)
		w.run()
		w.pass(time.Hour)
		require.Zero(t, w.state())
	})
}
