package inventory

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

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
