package inventory

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/scaledobject"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	samples    = "../examples/manifests"
	deployable = "../deploy/samples" // a folder for each set
)

func TestSamplesReadAsTheirGoldenTables(t *testing.T) {
	d, err := OpenDirectory(DirectoryOptions{Path: samples})
	require.NoError(t, err)
	require.Empty(t, d.Tables().Problems)
	require.Equal(t, Counts{Files: 4, Objects: 11}, d.Counts())

	tables := d.Tables()
	got, err := json.MarshalIndent(tables, "", "  ")
	require.NoError(t, err)
	golden := filepath.Join("testdata", "samples.golden")
	if *update {
		require.NoError(t, os.WriteFile(golden, append(got, '\n'), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got)+"\n")
}

func TestSamplesHaveNoFindings(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(samples, "scaledobjects.yaml"))
	require.NoError(t, err)
	read := readManifests("scaledobjects.yaml", data)
	require.Empty(t, read.problems)
	require.Len(t, read.manifests, 3)
	for _, m := range read.manifests {
		for _, object := range m.objects.ScaledObjects {
			require.Empty(t, scaledobject.Lint(object), object.Metadata.Name)
		}
	}
}

// TestTablesFitIntoASnapshot guards the demands of a snapshot's JSON form on its rows: times in
// UTC, above all.
func TestTablesFitIntoASnapshot(t *testing.T) {
	d, err := OpenDirectory(DirectoryOptions{Path: samples})
	require.NoError(t, err)
	tables := d.Tables()
	snapshot := fleet.Snapshot{Variants: tables.Variants, Workloads: tables.Workloads, Pools: tables.Pools}
	data, err := fleet.EncodeSnapshot(snapshot, nil)
	require.NoError(t, err)
	back, err := fleet.DecodeSnapshot(data, nil)
	require.NoError(t, err)
	require.Equal(t, snapshot, back)
}

func TestDeployableSamplesAreReadAsVariants(t *testing.T) {
	for set, want := range map[string][]string{
		"two-gpu-types":   {"llm/llama-8b-h100 on H100, 1 each", "llm/llama-8b-l40s on L40S, 1 each"},
		"scale-to-zero":   {"llm-zero/granite-8b-l40s on L40S, 1 each"},
		"leaderworkerset": {"llm-large/llama-405b-h100 on H100, 16 each"},
		"mtls":            {"llm-mtls/llama-8b-l40s on L40S, 1 each"},
	} {
		d, err := OpenDirectory(DirectoryOptions{Path: filepath.Join(deployable, set)})
		require.NoError(t, err)
		tables := d.Tables()
		require.Empty(t, tables.Problems, set)
		require.Len(t, tables.Workloads, len(want), set)
		var got []string
		for _, v := range tables.Variants {
			require.Empty(t, v.Invalid, set)
			require.Empty(t, v.Unsupported, set)
			got = append(got, fmt.Sprintf("%s on %s, %d each", v.ID, v.Accelerator, v.GPUsPerReplica))
		}
		require.Equal(t, want, got, set)
	}
}
