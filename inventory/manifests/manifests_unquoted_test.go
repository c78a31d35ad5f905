package manifests

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/inventory"
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
	read := parse("f.yaml", []byte(unquotedObject+"---\n"+nodeA))
	require.Empty(t, read.problems)
	require.Equal(t, []string{"ScaledObject llm/chat", "Node a"}, keys(read))

	tables := read.manifests[0].objects.Tables(inventory.Options{})
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
	require.Contains(t, fmt.Sprint(tables.Variants[0].Invalid), "variantCost 10 is a number")
}

func TestUnquotedAnnotationsAreReadAndNamed(t *testing.T) {
	read := parse("f.yaml", []byte(`apiVersion: apps/v1
kind: Deployment
metadata:
  name: chat
  namespace: llm
  annotations: {wva.dev/modelID: org/m, wva.dev/variantCost: 2.5, wva.dev/maxReplicaCount: 8, a: {b: 12345}, b: false, c: }
spec: {replicas: 1}
`))
	require.Equal(t, []inventory.Problem{{
		Object: "f.yaml, document 1 (line 1)",
		Text:   "Deployment llm/chat has annotations that are not text: a, b, wva.dev/maxReplicaCount and 1 more",
		Remedy: "write their values in quotes",
	}}, read.problems)
	tables := read.manifests[0].objects.Tables(inventory.Options{})
	require.Len(t, tables.Variants, 1)
	require.InDelta(t, 2.5, tables.Variants[0].Cost, 0)
	require.Equal(t, fleet.Range{Min: 0, Max: 8}, tables.Variants[0].Range)
}
