package cluster

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wva-project/wva/inventory"
	"github.com/wva-project/wva/scaledobject"
)

var update = flag.Bool("update", false, "write the tables of the pages anew")

func TestRowsOfTheTableAreComplete(t *testing.T) {
	seen := map[watchID]bool{}
	for _, r := range resources {
		name := r.objects
		id := watchID{r.gvr, r.namespace, r.labels}
		require.False(t, seen[id] && r != tenantConfig, "%s twice", name)
		seen[id] = true
		require.NotEmpty(t, r.cause, name)
		require.NotEmpty(t, r.fields, name)
		require.NotEmpty(t, r.without, name)
		require.NotEmpty(t, r.objects)
		require.NotEmpty(t, r.use, name)
		require.Equal(t, r.without == variantsHeld, r.isTarget || r == pods, name)
		require.Equal(t, r.cause == causeWorkload, r.isTarget, name)
		if r != furtherTargets {
			require.NotEmpty(t, r.kind, name)
			require.NotEmpty(t, r.gvr.Version, name)
			require.NotEmpty(t, r.gvr.Resource, name)
			require.Equal(t, r != namespaces, inventory.Decodes(r.groupKind()), name)
		}
		if r.isAwaited {
			require.True(t, r.holdsVariants || r == globalConfig, name)
		}
	}
}

func TestKindOfATargetHasItsRow(t *testing.T) {
	require.Same(t, statefulSets, targetOf(schema.GroupKind{Group: "apps", Kind: "StatefulSet"}))
	other := targetOf(schema.GroupKind{Group: "example.com", Kind: "StatefulSet"})
	require.Equal(t, "StatefulSet", other.kind)
	require.Equal(t, furtherTargets.fields, other.fields, "the whole spec")
	require.Equal(t, deployments.fields, targetOf(schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}).fields)
	require.Empty(t, furtherTargets.kind)
}

// TestMaskOfScaledObjectsKeepsEveryFieldOfTheirType finds a field that package scaledobject begins
// to read.
func TestMaskOfScaledObjectsKeepsEveryFieldOfTheirType(t *testing.T) {
	requireKept(t, reflect.TypeFor[scaledobject.Object](), scaledObjects.fields, "ScaledObject")
	require.Equal(t, scaledObjects.fields, scaledJobs.fields)
}

// requireKept fails if a mask lacks a field of a type.
func requireKept(t *testing.T, of reflect.Type, mask fieldMask, path string) {
	t.Helper()
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	if mask == nil || of.Kind() != reflect.Struct {
		return // it is kept whole
	}
	for field := range of.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		inner, kept := mask[name]
		require.True(t, kept, "%s.%s (%s) is read, and not kept", path, name, field.Name)
		requireKept(t, field.Type, inner, path+"."+name)
	}
}

// TestPageListsTheWatchedResources compares the table of docs/cluster.md with the rows, or rewrites
// it.
func TestPageListsTheWatchedResources(t *testing.T) {
	const page = "../../docs/cluster.md"
	const begin, end = "<!-- resources: written by go test ./inventory/cluster -update -->\n", "<!-- end of the resources -->"
	document, err := os.ReadFile(page)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(document), begin)
	require.True(t, found, "%s lacks the line %s", page, begin)
	old, after, ended := strings.Cut(rest, end)
	require.True(t, ended, "%s lacks the line %s", page, end)
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(before+begin+resourcesTable()+end+after), 0o644))
		return
	}
	require.Equal(t, resourcesTable(), old, "run go test ./inventory/cluster -update and read the diff")
}

// resourcesTable returns the rows as a table of a page.
func resourcesTable() string {
	var b bytes.Buffer
	fmt.Fprintln(&b, "\n| object | resource, as roles name it | use | if it was never read | after `--kubernetes-max-cache-age` |\n|---|---|---|---|---|")
	for _, r := range resources {
		name, old := "its own", "its last state is used"
		if r != furtherTargets {
			name = "`" + r.gvr.GroupResource().String() + "`"
		}
		if r.isClusterScoped {
			name += " (a cluster role)"
		}
		if r.holdsVariants {
			old = variantsHeld
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", r.objects, name, r.use, r.without, old)
	}
	return b.String() + "\n"
}
