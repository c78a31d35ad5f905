package inventory

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/inventory/manifesttest"
)

// handled returns the ScaledObject llm/NAME with a status by KEDA.
func handled(name, hpaName string) string {
	return manifesttest.Scaled(name) + "\nstatus: {hpaName: \"" + hpaName + "\", conditions: [{type: Ready, status: \"True\"}]}"
}

func TestNumberThatNoHPAFollowsIsNamedWithTheRemedy(t *testing.T) {
	const missingRemedy = "; check that keda-operator runs, and the condition Ready of the ScaledObject"
	unrelated := manifesttest.HPAOf("web", "{apiVersion: apps/v1, kind: Deployment, name: web}", "")
	for _, test := range []struct {
		name    string
		objects []string
		code    fleet.Code
		text    string
	}{
		{"KEDA made none", []string{handled("a", ""), unrelated}, fleet.CodeHPAMissing, "KEDA made no HPA for the ScaledObject" + missingRemedy},
		{"the one that KEDA made is gone", []string{handled("a", "keda-hpa-a"), unrelated}, fleet.CodeHPAMissing, "HPA keda-hpa-a of the ScaledObject does not exist" + missingRemedy},
		{
			"it cannot read the metric", []string{handled("a", "keda-hpa-a"), manifesttest.KEDAHPA("a", manifesttest.FailingMetric)}, fleet.CodeHPAInactive,
			"HPA keda-hpa-a does not scale (FailedGetExternalMetric: unable to get external metric llm/s0-wva: connection refused); " +
				"check the metrics API and the target with kubectl describe hpa keda-hpa-a",
		},
		{
			"it cannot read the target's scale",
			[]string{handled("a", "keda-hpa-a"), manifesttest.KEDAHPA("a", `, {type: AbleToScale, status: "False", reason: FailedGetScale, message: "no\n matches"}`)},
			fleet.CodeHPAInactive, "HPA keda-hpa-a does not scale (FailedGetScale: no matches); check the metrics API and the target with kubectl describe hpa keda-hpa-a",
		},
		{
			"several HPAs select its pods", []string{handled("a", "keda-hpa-a"), manifesttest.KEDAHPA("a", manifesttest.AmbiguousSelector)}, fleet.CodeAmbiguousSelector,
			"HPA keda-hpa-a does not scale (AmbiguousSelector: pods by selector app=llm are controlled by multiple HPAs: keda-hpa-a, other); " +
				"give the pods of each workload labels and a selector of their own",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			tables := objectsOf(t, append(test.objects, manifesttest.Deployment("a", 1, "image: x"))...).Tables(Options{})
			require.Equal(t, fleet.Autoscaler{Observed: true, Code: test.code, Text: test.text}, tables.Variants[0].Autoscaler)
		})
	}
}

func TestHPAThatFollowsTheNumberIsObserved(t *testing.T) {
	for name, hpa := range map[string]string{
		"active":                  manifesttest.KEDAHPA("a", `, {type: ScalingActive, status: "True", reason: ValidMetricFound}`),
		"disabled at zero":        manifesttest.KEDAHPA("a", `, {type: ScalingActive, status: "False", reason: ScalingDisabled}`),
		"limited by its maximum":  manifesttest.KEDAHPA("a", `, {type: ScalingLimited, status: "True", reason: TooManyReplicas}`),
		"adopted from its author": strings.Replace(manifesttest.KEDAHPA("a", ""), "name: keda-hpa-a", "name: mine", 1),
	} {
		t.Run(name, func(t *testing.T) {
			tables := objectsOf(t, handled("a", "keda-hpa-a"), manifesttest.Deployment("a", 1, "image: x"), hpa).Tables(Options{})
			require.Equal(t, fleet.Autoscaler{Observed: true}, tables.Variants[0].Autoscaler)
		})
	}
}

func TestHPAIsNotEvaluatedWithoutItsStatusOrIfKEDAMakesNone(t *testing.T) {
	paused := strings.Replace(handled("a", ""), "namespace: llm,", `namespace: llm, annotations: {autoscaling.keda.sh/paused: "true"},`, 1)
	unrelated, target := manifesttest.HPAOf("web", "{apiVersion: apps/v1, kind: Deployment, name: web}", ""), manifesttest.Deployment("a", 1, "image: x")
	for name, objects := range map[string][]string{
		"no HPA was read":             {handled("a", "keda-hpa-a"), target},
		"the ScaledObject is a draft": {manifesttest.Scaled("a"), unrelated, target},
		"the HPA is new":              {handled("a", "keda-hpa-a"), target, strings.Split(manifesttest.KEDAHPA("a", ""), "\nstatus:")[0]},
		"paused":                      {paused, unrelated, target},
		"the target does not exist":   {handled("a", ""), unrelated},
		"a ScaledJob":                 {manifesttest.AsJob(handled("a", "")), unrelated, target},
		"a dry run":                   {manifesttest.OtherObject("a", "a", manifesttest.Model) + "\nstatus: {conditions: [{type: Ready, status: \"True\"}]}", unrelated, target},
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
