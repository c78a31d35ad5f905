package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSimulateWritesAReport(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.html")
	arguments := []string{"simulate", "--load", "step:minutes=3,low=2,high=30", "--fleet", "chat-h100", "--policy", "static,hpa-rate,clairvoyant", "--sweep"}
	got := execute(t, "", append(arguments, "--report", path, "--jobs", "1")...)
	require.Zero(t, got.code, got.errs)
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, want := range []string{
		"wvactl simulate --fleet chat-h100 --load step:minutes=3,low=2,high=30 --policy static --policy hpa-rate --policy clairvoyant --sweep=true",
		"<h2>step:minutes=3,low=2,high=30</h2>", "Cost at equal attainment", "Worst minutes of static", "Replicas: clairvoyant", "(foresight, estimate)", "All runs",
	} {
		require.Contains(t, string(page), want)
	}
	require.Contains(t, got.out, "(foresight, estimate)")

	got = execute(t, "", append(arguments, "--report", path, "--jobs", "2")...)
	require.Zero(t, got.code, got.errs)
	again, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(page), string(again))

	got = execute(t, "", append(arguments, "-o", "json")...)
	var read struct {
		Bounds []struct {
			Load       string
			Attainment float64
			Cost       float64 `json:"cost_per_hour"`
		}
	}
	require.NoError(t, json.Unmarshal([]byte(got.out), &read))
	require.Len(t, read.Bounds, 1)
	require.InDelta(t, 0.95, read.Bounds[0].Attainment, 0)
	require.Positive(t, read.Bounds[0].Cost)
}

func TestSimulateReportReplacesNoInput(t *testing.T) {
	from := trace(t)
	fleet := filepath.Join(t.TempDir(), "fleet.yaml")
	require.NoError(t, os.WriteFile(fleet, []byte("kind: ScaledObject"), 0o600))
	for path, want := range map[string]string{
		from: "is an input; name another one", fleet: "is an input; name another one", t.TempDir(): "is a directory",
		"": "the report has no file; name one, such as report.html",
	} {
		got := execute(t, "", "simulate", "--trace", from, "--fleet", fleet, "--report", path)
		require.Equal(t, exitUsage, got.code)
		require.Contains(t, got.errs, want)
	}
}
