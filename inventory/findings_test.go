package inventory

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/inventory/manifesttest"
	"github.com/wva-project/wva/scaledobject"
)

// codesOf returns the codes of findings.
func codesOf(findings []fleet.Finding) []fleet.Code {
	codes := make([]fleet.Code, len(findings))
	for i, f := range findings {
		codes[i] = f.Code
	}
	return codes
}

func TestEveryFindingOfADefinitionReachesItsVariant(t *testing.T) {
	behaviour := scaledobject.Behavior{
		ScaleUp:   &scaledobject.Rules{Tolerance: scaledobject.Quantity{Text: "0"}},
		ScaleDown: &scaledobject.Rules{Tolerance: scaledobject.Quantity{Text: "0"}},
	}
	changes := map[fleet.Code]func(o *scaledobject.Object){
		fleet.CodeOtherTriggers: func(o *scaledobject.Object) {
			o.Spec.Triggers = append(o.Spec.Triggers, scaledobject.Trigger{Type: "cpu"})
		},
		fleet.CodeTolerance: func(o *scaledobject.Object) { o.Spec.MaxReplicaCount = new(int64(40)) },
		fleet.CodeMaxUnset: func(o *scaledobject.Object) {
			o.Spec.MaxReplicaCount = nil
			o.Spec.Advanced = &scaledobject.Advanced{HorizontalPodAutoscalerConfig: &scaledobject.HPAConfig{Behavior: &behaviour}}
		},
		fleet.CodeFallbackBehavior: func(o *scaledobject.Object) {
			o.Spec.Fallback = &scaledobject.Fallback{FailureThreshold: 3, Replicas: 2, Behavior: "static"}
		},
		fleet.CodeFallbackZero: func(o *scaledobject.Object) {
			o.Spec.Fallback = &scaledobject.Fallback{FailureThreshold: 3, Behavior: "currentReplicasIfHigher"}
		},
		fleet.CodeFallbackWakes: func(o *scaledobject.Object) {
			o.Spec.MinReplicaCount = new(int64(0))
			o.Spec.Fallback = &scaledobject.Fallback{FailureThreshold: 3, Replicas: 2, Behavior: "currentReplicasIfHigher"}
		},
		fleet.CodeNoPush: func(o *scaledobject.Object) {
			o.Spec.MinReplicaCount = new(int64(0))
			o.Spec.Triggers[0].Type = "external"
		},
		fleet.CodeFromEnvIgnored: func(o *scaledobject.Object) { o.Spec.Triggers[0].Metadata["roleFromEnv"] = "ROLE" },
		fleet.CodePausedReplicas: func(o *scaledobject.Object) {
			o.Metadata.Annotations = map[string]string{"autoscaling.keda.sh/paused-replicas": "two"}
		},
		fleet.CodePercentileWithoutLimits: func(o *scaledobject.Object) { o.Spec.Triggers[0].Metadata["percentile"] = "0.9" },
	}
	// These need the whole snapshot, or other objects.
	ofThePlan := []fleet.Code{fleet.CodeUnknownAccelerator, fleet.CodeUnknownServiceClass, fleet.CodeServiceClassNotGranted, fleet.CodeOverlappingSelector, fleet.CodeScrapedTwice, fleet.CodeSharedAdapter, fleet.CodeTooManyReplicas, fleet.CodeSettingLimited}
	for _, row := range fleet.Codes() {
		if row.Use != fleet.UseFinding || slices.Contains(ofThePlan, row.Code) {
			continue
		}
		t.Run(string(row.Code), func(t *testing.T) {
			change := changes[row.Code]
			require.NotNil(t, change, "give the code a definition that causes it")
			objects := objectsOf(t, manifesttest.Scaled("a"), manifesttest.Deployment("a", 1, "image: x"))
			require.Empty(t, objects.Tables(Options{}).Variants[0].Findings)
			change(&objects.ScaledObjects[0])
			require.Equal(t, []fleet.Code{row.Code}, codesOf(objects.Tables(Options{}).Variants[0].Findings))
		})
	}
}

func TestFindingsOfAnnotationsReachTheDryRunVariant(t *testing.T) {
	tables := objectsOf(t, manifesttest.AnnotatedDeployment("a", `annotations: {wva.dev/modelID: m, wva.dev/percentile: "0.9"}`)).Tables(Options{})
	require.Equal(t, []fleet.Code{fleet.CodePercentileWithoutLimits}, codesOf(dryRuns(t, tables)["a"].Findings))
}
