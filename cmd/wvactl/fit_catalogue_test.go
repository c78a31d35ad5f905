package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/analyzer/fit"
	"github.com/wva-project/wva/config"
	"github.com/wva-project/wva/fleet"
)

// The measured rows of the shipped catalogue are those that the command prints.
func TestCatalogueIsTheFitToTheMeasuredRows(t *testing.T) {
	const measured = "../../../shared/data/silicon_sample.csv"
	if _, err := os.Stat(measured); errors.Is(err, fs.ErrNotExist) {
		t.Skip("no measured rows beside the checkout; this test fits the catalogue again")
	}
	var f fitFlags
	table, err := f.readTable(newFitCommand(), measured)
	require.NoError(t, err)
	shipped, err := config.ShippedProfiles()
	require.NoError(t, err)
	origin := regexp.MustCompile(`^fit to (\d+) measured rows of .*, (\w+), (MAPE [\d.]+ %)`)
	compared := 0
	for _, p := range shipped {
		parts := origin.FindStringSubmatch(p.Origin)
		if parts == nil {
			continue
		}
		var costs []string
		for _, g := range table.Groups {
			if g.Engine != parts[2] || !ofProfile(g.Key, p) {
				continue
			}
			result, err := fit.Fit(g.Rows, f.sparsity(g.Model))
			require.NoError(t, err, p.Origin)
			require.Equal(t, parts[1], fmt.Sprint(result.Rows), p.Origin)
			require.Equal(t, parts[3], "MAPE "+percent(result.TPOT.Mean), p.Origin)
			costs = append(costs, rounded(result.Cost).String())
		}
		require.Equal(t, []string{p.Cost.String()}, costs, p.Model)
		compared++
	}
	require.Equal(t, 15, compared)
}

// ofProfile reports whether rows are of a profile. Rows without a precision are in 16 bits.
func ofProfile(k fit.Key, p fleet.Profile) bool {
	named := fleet.NewProfiles([]fleet.Profile{p})
	_, found := named.Find(fleet.ProfileKey{
		Model: strings.TrimSuffix(k.Model, "-FP8"), Accelerator: fleet.Accelerator(acceleratorName(k.GPU)), Precision: p.Precision, TensorParallel: k.TensorParallel,
	})
	return found && (k.Precision == p.Precision || k.Precision == "" && p.Precision == "bf16")
}
