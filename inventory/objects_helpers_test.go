package inventory

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/inventory/manifesttest"
)

// objectsOf reads valid manifests.
func objectsOf(t testing.TB, manifests ...string) Objects {
	t.Helper()
	var objects Objects
	for _, u := range manifesttest.Decode(manifests...) {
		object, err := Decode(u)
		require.NoError(t, err)
		objects.Append(object)
	}
	return objects
}

// workloadOf returns the only workload of the tables.
func workloadOf(t *testing.T, manifests ...string) fleet.Workload {
	t.Helper()
	tables := objectsOf(t, manifests...).Tables(Options{})
	require.Len(t, tables.Workloads, 1)
	return tables.Workloads[0]
}

// podNames returns the names of a workload's pods.
func podNames(w fleet.Workload) []string {
	names := []string{}
	for _, pod := range w.Pods {
		names = append(names, pod.Name)
	}
	return names
}

// invalidText returns the validation errors of a variant, one a line.
func invalidText(v fleet.Variant) string {
	var lines []string
	for _, p := range v.Invalid {
		lines = append(lines, p.String())
	}
	return strings.Join(lines, "\n")
}
