package manifests

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTextAfterAJSONValueIsNotIgnored(t *testing.T) {
	object := `{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}`
	for name, text := range map[string]string{
		"second object": object + "\n" + object, "garbage": object + "\n]]]: garbage", "words": object + " trailing {",
	} {
		_, err := document{data: []byte(text), line: 1}.decode()
		require.ErrorContains(t, err, "has text after a JSON value", name)
	}
	for name, text := range map[string]string{
		"one object": object, "comment": object + "\n# the end", "flow style": `{apiVersion: v1, kind: Node}`, "end mark": object + "\n...",
	} {
		_, err := document{data: []byte(text), line: 1}.decode()
		require.NoError(t, err, name)
	}
}

func TestNamespaceThatIsNotTextIsAProblem(t *testing.T) {
	objects, problems := Read("a.yaml", []byte("apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {name: a, namespace: 123}\n"+
		"spec: {scaleTargetRef: {name: a}, triggers: [{type: external-push, metadata: {modelID: m}}]}\n"))
	require.Zero(t, objects.Len())
	require.Len(t, problems, 1)
	require.Contains(t, problems[0].Text, "metadata.namespace is not text")
}
