package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/scaledobject"
)

func TestRenderedObjectHasEveryKeyAndPassesLint(t *testing.T) {
	arguments := []string{"render", "--name", "chat", "--namespace", "llm", "--target", "chat-l40s", "--min", "1", "--max", "8", "--scaler-address", "wva:9"}
	for _, key := range scaledobject.Keys() {
		arguments = append(arguments, "--"+flagOf(key.Name), key.Example)
	}
	got := execute(t, "", arguments...)
	require.Zero(t, got.code, got.errs)
	require.True(t, strings.HasPrefix(got.out, "apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata:\n  name: chat\n  namespace: llm\n"), got.out)
	require.Equal(t, output{errs: "1 variant: 0 errors, 0 unsupported, 0 findings\n"}, execute(t, got.out, "lint", "--strict", "-"))

	got = execute(t, "", append(arguments, "-o", "json")...)
	var o scaledobject.Object
	require.NoError(t, json.Unmarshal([]byte(got.out), &o))
	require.Equal(t, scaledobject.TargetRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "chat-l40s"}, o.Spec.ScaleTargetRef)
	metadata := o.Spec.Triggers[0].Metadata
	require.Equal(t, "wva:9", metadata["scalerAddress"])
	v, err := scaledobject.Read(o)
	require.NoError(t, err)
	require.Equal(t, "llm/chat", v.ID.String())
	for _, key := range scaledobject.Keys() {
		if key.Example != key.Default {
			require.Contains(t, metadata, key.Name)
		}
	}
}

func TestRenderNamesTheAuthenticationOfTheChart(t *testing.T) {
	arguments := []string{"render", "--name", "chat", "--max", "8", "--model-id", "m", "--cluster-authentication", "wva"}
	got := execute(t, "", arguments...)
	require.Zero(t, got.code, got.errs)
	require.Contains(t, got.out, "authenticationRef:\n      kind: ClusterTriggerAuthentication\n      name: wva\n")
	got = execute(t, "", append(arguments, "--authentication", "own")...)
	require.Equal(t, 2, got.code)
	require.Contains(t, got.errs, "give --authentication or --cluster-authentication")
}

func TestRenderFlagsAreTheKeys(t *testing.T) {
	for key, flag := range map[string]string{
		"modelID": "model-id", "servedModelName": "served-model-name", "gpusPerReplica": "gpus-per-replica", "ttft": "ttft", "variantCost": "variant-cost",
	} {
		require.Equal(t, flag, flagOf(key))
	}
}

func TestRenderReportsEveryErrorWithItsFlag(t *testing.T) {
	got := execute(t, "", "render", "--cooldown", "1.5s", "--target-kind", "Rollout")
	require.Equal(t, 2, got.code)
	require.Equal(t, `wvactl: name is missing; give --name
max is missing; give --max
modelID is missing; give --model-id, such as meta-llama/Llama-3.1-8B-Instruct
cooldown 1.5s is not valid; write whole seconds, such as 10s
target-kind "Rollout" has no default API version; give --target-api-version
`, got.errs)
	got = execute(t, "", "render", "--name", "Chat", "--namespace", "a b", "--min", "9", "--max", "8", "--model-id", "m", "--variant-cost", "cheap", "--role", "cook", "--cooldown", "-1s")
	require.Equal(t, 2, got.code)
	require.Equal(t, "wvactl: cooldown -1s is not valid; write whole seconds, such as 10s\n", got.errs)
	got = execute(t, "", "render", "--name", "Chat", "--namespace", "a b", "--min", "9", "--max", "8", "--model-id", "m", "--variant-cost", "cheap", "--role", "cook")
	require.Equal(t, 2, got.code)
	for _, want := range []string{
		`--namespace: metadata.namespace "a b" `, `--name: metadata.name "Chat" `, `--target: scaleTargetRef.name "Chat" `,
		"--max: maxReplicaCount 8 is below minReplicaCount 9", `--role: role "cook" is not one of the choices`, `--variant-cost: variantCost "cheap" is not a decimal number`,
	} {
		require.Contains(t, got.errs, want)
	}
	require.Equal(t, 6, strings.Count(got.errs, "\n"), got.errs)
	require.Empty(t, got.out)
}

func TestRenderKnowsTheKindsOfWorkloads(t *testing.T) {
	for kind, version := range apiVersions() {
		got := execute(t, "", "render", "--name", "chat", "--max", "1", "--model-id", "m", "--target-kind", kind)
		require.Contains(t, got.out, "apiVersion: "+version+"\n    kind: "+kind+"\n    name: chat\n")
	}
	got := execute(t, "", "render", "--name", "chat", "--max", "1", "--model-id", "m", "--target-kind", "Rollout", "--target-api-version", "argoproj.io/v1alpha1")
	require.Contains(t, got.out, "apiVersion: argoproj.io/v1alpha1\n    kind: Rollout\n")
}
