package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/fleet"
)

// object is a ScaledObject: NAME is its name, SPEC more of its spec, METADATA that of its trigger.
const object = `apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: NAME, namespace: llm}
spec:
  scaleTargetRef: {name: chat}
  maxReplicaCount: 8
  advanced: {horizontalPodAutoscalerConfig: {behavior: {scaleUp: {tolerance: "0"}, scaleDown: {tolerance: "0"}}}}
  SPEC
  triggers:
  - type: external-push
    METRIC
    metadata: {scalerAddress: "wva.keda.svc:9090", METADATA}
`

func manifest(name, spec, metric, metadata string) string {
	return strings.NewReplacer("NAME", name, "SPEC", spec, "METRIC", metric, "METADATA", metadata).Replace(object)
}

func TestLintPrintsErrorsUnsupportedTriggersAndFindings(t *testing.T) {
	file := written(t, "a.yaml", manifest("chat", "fallback: {failureThreshold: 3, replicas: 0, behavior: currentReplicasIfHigher}", "", `modelID: m, variantCost: 10, role: cook`)+
		"---\n"+manifest("other", "", "metricType: Value", `modelID: m`)+"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n")
	got := execute(t, "", "lint", file)
	require.Equal(t, 1, got.code)
	require.Equal(t, "wvactl: 2 variants: 2 errors, 1 unsupported, 2 findings\n", got.errs)
	lines := strings.Split(strings.ReplaceAll(got.out, file, "FILE"), "\n")
	require.Len(t, lines, 6, got.out)
	require.Equal(t, "FILE: ScaledObject llm/chat: error: InvalidDefinition: role \"cook\" is not one of the choices; allowed: both, prefill or decode; write one of them or remove the key", lines[0])
	require.Equal(t, `FILE: ScaledObject llm/chat: error: InvalidDefinition: variantCost 10 is a number; write it in quotes: "10"`, lines[1])
	require.Contains(t, lines[2], "FILE: ScaledObject llm/chat: finding: FallbackZero: fallback.replicas 0: errors can scale the variant to zero; remove fallback")
	require.Contains(t, lines[3], "FILE: ScaledObject llm/chat: finding: DuplicateTarget: ")
	require.Contains(t, lines[4], `FILE: ScaledObject llm/other: unsupported: UnsupportedTrigger: metricType "Value" of trigger 0: the HPA would not apply the number as replicas; remove metricType from the trigger`)

	got = execute(t, "", "lint", file, "-o", "json")
	require.Equal(t, 1, got.code)
	var problems []problem
	require.NoError(t, json.Unmarshal([]byte(got.out), &problems))
	require.Len(t, problems, 5)
	require.Equal(t, problem{
		File: file, Object: "ScaledObject llm/chat", Severity: severityError, Code: fleet.CodeInvalidDefinition,
		Text: "variantCost 10 is a number", Remedy: `write it in quotes: "10"`,
	}, problems[1])
	for i, p := range problems {
		require.Equal(t, strings.Split(execute(t, "", "lint", file).out, "\n")[i], p.String())
	}
}

func TestLintComparesADefinitionWithTheLabelsOfItsPodTemplate(t *testing.T) {
	file := written(t, "a.yaml", manifest("chat", "", "", `modelID: m, role: prefill`)+"---\n"+`apiVersion: apps/v1
kind: Deployment
metadata: {name: chat, namespace: llm}
spec: {template: {metadata: {labels: {llm-d.ai/role: decode, llm-d.ai/engine-type: turing}}, spec: {containers: [{name: c, image: x}]}}}
`)
	got := execute(t, "", "lint", file)
	require.Equal(t, 0, got.code, got.errs)
	require.Contains(t, got.out, `ScaledObject llm/chat: finding: LabelIgnored: label llm-d.ai/role of the pod template, "decode", contradicts role of the definition, "prefill", which is used`)
	require.Contains(t, got.out, `ScaledObject llm/chat: finding: LabelIgnored: label llm-d.ai/engine-type of the pod template, "turing", is not known: it is not used`)
}

func TestLintFailsOnFindingsIfStrict(t *testing.T) {
	text := manifest("chat", "", "", "modelID: m, percentile: \"0.99\"")
	got := execute(t, text, "lint", "-")
	require.Equal(t, output{
		out:  "-: ScaledObject llm/chat: finding: PercentileWithoutObjective: percentile \"0.99\": no effect without ttft or itl; set ttft or itl, or remove percentile\n",
		errs: "1 variant: 0 errors, 0 unsupported, 1 finding\n",
	}, got)
	got = execute(t, text, "lint", "-", "--strict")
	require.Equal(t, 1, got.code)
	got = execute(t, manifest("chat", "", "", "modelID: m"), "lint", "-", "--strict", "-o", "json")
	require.Equal(t, output{out: "[]\n", errs: "1 variant: 0 errors, 0 unsupported, 0 findings\n"}, got)
}

func TestLintComparesNamesWithTheConfiguration(t *testing.T) {
	config := written(t, "wva.yaml", "prometheus: {caFile: /nowhere}\naccelerators: [{name: H100, speed: 3}]\nserviceClasses: [{name: premium, priority: 1}]\n")
	text := manifest("chat", "", "", "modelID: m, accelerator: H10O, serviceClass: premum")
	require.Empty(t, execute(t, text, "lint", "-").out)
	got := execute(t, text, "lint", "-", "--config", config)
	require.Zero(t, got.code)
	require.Contains(t, got.out, `finding: UnknownAccelerator: accelerator "H10O" is neither in the catalogue nor on any node; did you mean H100?`)
	require.Contains(t, got.out, `finding: UnknownServiceClass: serviceClass "premum" is not configured`)
	require.Equal(t, 2, strings.Count(got.out, "\n"))
}

func TestLintChecksDryRunAnnotationsAndListsOfObjects(t *testing.T) {
	const annotated = `apiVersion: v1
kind: List
items:
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: chat, namespace: llm, annotations: {wva.dev/modelID: m, wva.dev/variantCost: cheap}}
  spec: {replicas: 1}
- apiVersion: autoscaling/v2
  kind: HorizontalPodAutoscaler
  metadata: {name: batch, namespace: llm, annotations: {wva.dev/modelID: m, wva.dev/percentile: "0.9"}}
  spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: batch}, minReplicas: 1, maxReplicas: 3}
`
	got := execute(t, annotated, "lint", "-")
	require.Equal(t, 1, got.code)
	require.Contains(t, got.out, `-: Deployment llm/chat: error: InvalidDefinition: wva.dev/variantCost "cheap" is not a decimal number`)
	require.Contains(t, got.out, `-: HorizontalPodAutoscaler llm/batch: finding: PercentileWithoutObjective: wva.dev/percentile "0.9"`)
	require.Equal(t, 2, strings.Count(got.out, "\n"), got.out)
}

// leftover is a Deployment of an earlier dry run; TARGET is its name.
const leftover = `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: TARGET, namespace: llm, annotations: {wva.dev/modelID: m, wva.dev/variantCost: cheap}}
spec: {replicas: 1}
`

func TestLintOnlyReportsAnnotationsThatTheServerIgnores(t *testing.T) {
	scaled := manifest("chat", "", "", "modelID: m")
	workload := strings.ReplaceAll(leftover, "TARGET", "chat")
	hpa := `---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: chat, namespace: llm, annotations: {wva.dev/modelID: m}}
spec: {scaleTargetRef: {apiVersion: apps/v1beta1, kind: Deployment, name: chat}, maxReplicas: 3}
`
	const already = "scales Deployment llm/chat already; remove the annotations wva.dev/*\n"
	const ignored = "its annotations declare a variant, which is ignored: "
	onDeployment, onHPA := "-: Deployment llm/chat: finding: DuplicateTarget: "+ignored, "-: HorizontalPodAutoscaler llm/chat: finding: DuplicateTarget: "+ignored
	for name, test := range map[string]struct{ text, want string }{
		"the target of a trigger":             {scaled + workload, onDeployment + "ScaledObject llm/chat " + already},
		"the target of a trigger comes later": {workload + "---\n" + scaled, onDeployment + "ScaledObject llm/chat " + already},
		"the target of a trigger, of an HPA":  {hpa + "---\n" + scaled, onHPA + "ScaledObject llm/chat " + already},
		"the name of a trigger": {
			strings.Replace(scaled, "{name: chat}", "{name: other}", 1) + workload,
			"-: Deployment llm/chat: finding: InvalidDefinition: " + ignored + "ScaledObject llm/chat defines a variant of the same name; " +
				"declare it on another object: the workload, its ScaledObject or its HorizontalPodAutoscaler\n",
		},
		"an object with a trigger": {
			strings.Replace(scaled, "namespace: llm}", "namespace: llm, annotations: {wva.dev/modelID: m}}", 1),
			"-: ScaledObject llm/chat: finding: DuplicateTarget: " + ignored + "its WVA trigger scales the target already; remove the annotations wva.dev/*\n",
		},
		"an HPA beside its workload": {
			hpa + strings.Replace(workload, "cheap", `"1"`, 1),
			onHPA + "Deployment llm/chat declares a variant of Deployment llm/chat too, and comes first; remove the annotations wva.dev/* from one of the two\n",
		},
		"a copy of a controller": {
			scaled + strings.NewReplacer("kind: Deployment", "kind: ReplicaSet", "{name: TARGET,", "{name: chat-5f, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: chat, controller: true}],").Replace(leftover), "",
		},
	} {
		got := execute(t, test.text, "lint", "-")
		require.Zero(t, got.code, name)
		require.Equal(t, test.want, got.out, name)
		require.Equal(t, fmt.Sprintf("1 variant: 0 errors, 0 unsupported, %s\n", countOf(strings.Count(test.want, "\n"), "finding")), got.errs, name)
	}
	got := execute(t, workload+workload, "lint", "-")
	require.Equal(t, 1, got.code)
	require.Contains(t, got.out, "-: Deployment llm/chat: error: InvalidDefinition: the name is that of Deployment llm/chat in - too; rename or remove one of the two\n")
}

func TestLintReportsManifestsThatCannotBeRead(t *testing.T) {
	got := execute(t, "kind: [\n---\n"+manifest("chat", "", "", "modelID: m"), "lint", "-")
	require.Equal(t, 1, got.code)
	require.Regexp(t, `^-: -, document 1 \(line 1\): error: InvalidDefinition: .*; write it as kubectl get -o yaml prints it\n$`, got.out)
	require.Equal(t, "wvactl: 1 variant: 1 error, 0 unsupported, 0 findings\n", got.errs)
	got = execute(t, "kind: ConfigMap\napiVersion: v1\nmetadata: {name: x}\n", "lint", "-")
	require.Equal(t, output{errs: "0 variants: 0 errors, 0 unsupported, 0 findings; no object has a WVA trigger or wva.dev/ annotations\n"}, got)
	twice := manifest("chat", "", "", "modelID: m")
	got = execute(t, twice+"---\n"+twice, "lint", "-")
	require.Equal(t, "-: ScaledObject llm/chat: error: InvalidDefinition: the name is that of ScaledObject llm/chat in - too; rename or remove one of the two\n", got.out)
}

func TestLintNeverEchoesASecret(t *testing.T) {
	got := execute(t, manifest("chat", "", "", "modelID: m, tokenFromEnv: hunter2, caCert: hunter2, passwort: hunter2"), "lint", "-")
	require.Equal(t, 1, got.code)
	require.NotContains(t, got.out+got.errs, "hunter2")
}

func TestLintFindsNothingInTheSamples(t *testing.T) {
	files, err := filepath.Glob("../../examples/manifests/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		if data, err := os.ReadFile(file); err != nil || !strings.Contains(string(data), "kind: ScaledObject") {
			continue
		}
		require.Zero(t, execute(t, "", "lint", file).code, file)
	}
}
