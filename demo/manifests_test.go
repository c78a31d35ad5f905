package demo

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/scaledobject"
)

// TestManifestsScaleAsRendered compares the manifests with the recommended ScaledObjects of their
// variants: the demo shows the HPA behavior that users get.
func TestManifestsScaleAsRendered(t *testing.T) {
	var options Options
	require.NoError(t, options.setDefaults())
	s, err := newScenario(options)
	require.NoError(t, err)
	require.Len(t, s.objects, 3)
	for i, object := range s.objects {
		rendered := scaledobject.Render(s.variants[i], scaledobject.RenderOptions{})
		require.Equal(t, rendered.Spec.Advanced, object.Spec.Advanced, object.Metadata.Name)
		require.Equal(t, rendered.Spec.PollingInterval, object.Spec.PollingInterval, object.Metadata.Name)
		require.Equal(t, rendered.Spec.MinReplicaCount, object.Spec.MinReplicaCount, object.Metadata.Name)
	}
}

// TestOnlyTheSmallModelMayScaleToZero checks the manifests: a minimum of 0 on every variant of a
// model allows zero. The chat model keeps a replica.
func TestOnlyTheSmallModelMayScaleToZero(t *testing.T) {
	var options Options
	require.NoError(t, options.setDefaults())
	s, err := newScenario(options)
	require.NoError(t, err)
	minimum := make(map[string]int)
	for _, v := range s.variants {
		minimum[v.Model.Name] += v.Range.Floor()
	}
	require.Equal(t, map[string]int{chatModel.Name: 1, notesModel.Name: 0}, minimum)
}
