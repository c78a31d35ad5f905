package scenarios

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/e2e/cluster"
)

// TestSamplesAreAccepted has an API server check every object of the samples. Their namespaces are
// made, since a dry run makes none.
func TestSamplesAreAccepted(t *testing.T) {
	c := cluster.Start(t, cluster.Options{KEDACRDs: true, LeaderWorkerSetCRD: true})
	namespaces, err := filepath.Glob("../../../deploy/samples/*/00-namespace.yaml")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(namespaces), 4)
	for _, namespace := range namespaces {
		set := filepath.Dir(namespace)
		out, err := c.Kubectl(t.Context(), nil, "apply", "-f", namespace)
		require.NoError(t, err, out)
		out, err = c.Kubectl(t.Context(), nil, "apply", "--dry-run=server", "--validate=strict", "--warnings-as-errors", "-f", set)
		require.NoError(t, err, out)
		require.GreaterOrEqual(t, strings.Count(out, "(server dry run)"), 3, set)
	}
}
