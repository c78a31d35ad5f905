package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// sampleSets returns the folders of deploy/samples, with their number of variants.
func sampleSets() map[string]int {
	return map[string]int{"two-gpu-types": 2, "scale-to-zero": 1, "leaderworkerset": 1, "mtls": 1}
}

// sampleFiles returns the files of a folder, in the order in which kubectl reads them.
func sampleFiles(t *testing.T, set string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../../deploy/samples", set, "*.yaml"))
	require.NoError(t, err)
	slices.Sort(files)
	return files
}

func TestLintFindsNothingInTheDeployableSamples(t *testing.T) {
	for set, variants := range sampleSets() {
		got := execute(t, "", append([]string{"lint"}, sampleFiles(t, set)...)...)
		require.Zero(t, got.code, got.out+got.errs)
		require.Empty(t, got.out)
		require.Regexp(t, fmt.Sprintf("^%d variants?: 0 errors, 0 unsupported, 0 findings\\n$", variants), got.errs)
	}
}

func TestEveryFolderOfSamplesIsChecked(t *testing.T) {
	folders, err := filepath.Glob("../../deploy/samples/*/00-namespace.yaml")
	require.NoError(t, err)
	require.Len(t, folders, len(sampleSets()))
}

// A set is as a user writes it: the namespace first, no fields of the server, and scaled workloads
// without replicas, which applying the set again would reset.
func TestSamplesCanBeApplied(t *testing.T) {
	for set := range sampleSets() {
		namespace := ""
		var targets []string
		hasReplicas := map[string]bool{} // by kind and name
		for _, object := range sampleObjects(t, set) {
			metadata := object["metadata"].(map[string]any)
			name := fmt.Sprintf("%s %s", object["kind"], metadata["name"])
			require.Empty(t, serverFields(object), "%s: %s has fields of the server", set, name)
			if object["kind"] == "Namespace" {
				namespace = metadata["name"].(string)
				continue
			}
			require.Equal(t, namespace, metadata["namespace"], "%s: %s", set, name)
			spec, _ := object["spec"].(map[string]any)
			_, hasReplicas[name] = spec["replicas"]
			if target, scaled := spec["scaleTargetRef"].(map[string]any); scaled {
				targets = append(targets, fmt.Sprintf("%s %s", target["kind"], target["name"]))
			}
		}
		require.NotEmpty(t, targets, set)
		for _, target := range targets {
			require.Contains(t, hasReplicas, target, set)
			require.False(t, hasReplicas[target], "%s: %s has replicas", set, target)
		}
	}
}

func sampleObjects(t *testing.T, set string) []map[string]any {
	t.Helper()
	var objects []map[string]any
	for _, file := range sampleFiles(t, set) {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		for document := range bytes.SplitSeq(data, []byte("\n---\n")) {
			var object map[string]any
			require.NoError(t, yaml.UnmarshalStrict(document, &object), file)
			objects = append(objects, object)
		}
	}
	return objects
}

// serverFields returns the fields of an object that a server or a controller sets. A manifest with
// them cannot be applied, or overwrites the value of the controller.
func serverFields(object map[string]any) []string {
	metadata, _ := object["metadata"].(map[string]any)
	var found []string
	for _, field := range []string{"status", "items"} {
		if _, set := object[field]; set {
			found = append(found, field)
		}
	}
	for _, field := range []string{
		"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "managedFields", "selfLink",
		"finalizers", "ownerReferences",
	} {
		if _, set := metadata[field]; set {
			found = append(found, "metadata."+field)
		}
	}
	return found
}

func TestFieldsOfTheServerAreFound(t *testing.T) {
	object := map[string]any{"status": nil, "metadata": map[string]any{"name": "a", "uid": "1", "finalizers": nil}}
	require.Equal(t, []string{"status", "metadata.uid", "metadata.finalizers"}, serverFields(object))
}
