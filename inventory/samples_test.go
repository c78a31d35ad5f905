package inventory

import (
	"encoding/json"
	"flag"
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

const samples = "../examples/manifests"

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
