package inventory

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/wva-project/wva/fleet"
)

// unquotedObject is a ScaledObject with metadata values that YAML does not read as text.
const unquotedObject = `apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: chat, namespace: llm}
spec:
  scaleTargetRef: {name: chat}
  maxReplicaCount: 4
  triggers:
  - type: external-push
    metadata: {scalerAddress: "wva:9090", modelID: org/m, variantCost: 10, gpusPerReplica: [8], password: 12345}
`

func TestUnquotedMetadataIsAValidationErrorThatNamesTheKey(t *testing.T) {
	read := readManifests("f.yaml", []byte(unquotedObject+"---\n"+nodeA))
	require.Empty(t, read.problems)
	require.Equal(t, []string{"ScaledObject llm/chat", "Node a"}, keys(read))

	tables := read.manifests[0].objects.Tables(Options{})
	var texts []string
	for _, problem := range tables.Problems {
		texts = append(texts, problem.String())
	}
	all := strings.Join(texts, "\n")
	require.Contains(t, all, `ScaledObject llm/chat: variantCost 10 is a number; write it in quotes: "10"`)
	require.Contains(t, all, `gpusPerReplica is a list; allowed: a whole number from 1 to 4096; write one value in quotes, such as "8"`)
	require.Contains(t, all, `metadata has values that are not text, of keys "password"; write them in quotes`)
	require.NotContains(t, all, "12345")
	require.Len(t, tables.Variants, 1)
	require.Contains(t, invalidText(tables.Variants[0]), "variantCost 10 is a number")
}

func TestWatchedObjectWithMetadataOfAnyTypeIsDecoded(t *testing.T) {
	for _, metadata := range []string{
		`{"modelID":1}`, `{"modelID":1.5}`, `{"modelID":true}`, `{"modelID":null}`, `{"modelID":[{}]}`, `{"modelID":{"a":[1]}}`, `{}`, `null`,
	} {
		var u unstructured.Unstructured
		require.NoError(t, json.Unmarshal([]byte(`{"apiVersion":"keda.sh/v1alpha1","kind":"ScaledObject","metadata":{"name":"chat","namespace":"llm"},
			"spec":{"triggers":[{"type":"external","metadata":`+metadata+`}]}}`), &u))
		objects, err := Decode(&u)
		require.NoError(t, err, metadata)
		objects.Tables(Options{})
	}
}

func TestUnquotedAnnotationsAreReadAndNamed(t *testing.T) {
	read := readManifests("f.yaml", []byte(`apiVersion: apps/v1
kind: Deployment
metadata:
  name: chat
  namespace: llm
  annotations: {wva.dev/modelID: org/m, wva.dev/variantCost: 2.5, wva.dev/maxReplicaCount: 8, a: {b: 12345}, b: false, c: }
spec: {replicas: 1}
`))
	require.Equal(t, []Problem{{
		Object: "f.yaml, document 1 (line 1)",
		Text:   "Deployment llm/chat has annotations that are not text: a, b, wva.dev/maxReplicaCount and 1 more",
		Remedy: "write their values in quotes",
	}}, read.problems)
	tables := read.manifests[0].objects.Tables(Options{})
	require.Len(t, tables.Variants, 1)
	require.InDelta(t, 2.5, tables.Variants[0].Cost, 0)
	require.Equal(t, fleet.Range{Min: 0, Max: 8}, tables.Variants[0].Range)
}
