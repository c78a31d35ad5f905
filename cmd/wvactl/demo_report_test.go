package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// trace writes a trace of three requests, and returns its path.
func trace(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "my trace.csv")
	require.NoError(t, os.WriteFile(path, []byte("TIMESTAMP,ContextTokens,GeneratedTokens\n0,100,10\n5,100,10\n9,100,10\n"), 0o600))
	return path
}

func TestReportIsTheSameAtAnyPathAndSpeed(t *testing.T) {
	dir, from := t.TempDir(), trace(t)
	pages := map[string]string{}
	for name, speed := range map[string]string{"a.html": "0", "b.html": "1000"} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte("an older report"), 0o600))
		require.NoError(t, runDemo(t, "--trace", from, "--report", path, "--speed", speed, "--pools", "L40S=2x1,H100=1x8", "--seed", "3"))
		page, err := os.ReadFile(path)
		require.NoError(t, err)
		pages[name] = string(page)
	}
	require.Equal(t, pages["a.html"], pages["b.html"])
	require.Contains(t, pages["a.html"], "wvactl demo --pools L40S=2x1 --pools H100=1x8 --seed 3 --trace &#39;"+from+"&#39;")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 2, "a temporary file is left")
}

func TestReportThatCannotBeWrittenIsRejectedBeforeTheRun(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for path, want := range map[string]string{
		dir:                                "is a directory; name a file, such as " + dir + "/report.html",
		filepath.Join(dir, "no", "r.html"): "name a file in a directory that can be written to",
		filepath.Join(file, "r.html"):      "name another file",
		os.DevNull:                         "is no regular file",
		"":                                 "the report has no file",
	} {
		err := runDemo(t, "--speed", "0", "--report", path)
		require.ErrorContains(t, err, want)
		require.ErrorAs(t, err, new(usageError), path)
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1)
}

func TestReportReplacesNeitherTheTraceNorASymbolicLink(t *testing.T) {
	from := trace(t)
	requests, err := os.ReadFile(from)
	require.NoError(t, err)
	dir := t.TempDir()
	link, hard := filepath.Join(dir, "link.html"), filepath.Join(dir, "hard.html")
	require.NoError(t, os.Symlink(filepath.Join(dir, "elsewhere.html"), link))
	require.NoError(t, os.Link(from, hard))
	for path, want := range map[string]string{from: "is an input", hard: "is an input", link: "is a symbolic link"} {
		err := runDemo(t, "--speed", "0", "--trace", from, "--report", path)
		require.ErrorContains(t, err, want)
		require.ErrorAs(t, err, new(usageError), path)
	}
	after, err := os.ReadFile(from)
	require.NoError(t, err)
	require.Equal(t, requests, after)
	_, err = os.Readlink(link)
	require.NoError(t, err)
}

func TestFailedRunKeepsTheOlderReport(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.html")
	require.NoError(t, os.WriteFile(path, []byte("an older report"), 0o600))
	require.Error(t, runDemo(t, "--report", path, "--pools", "A100=1x1"))
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "an older report", string(page))
}

func TestFlagsThatMakeNoSenseAreUsageErrors(t *testing.T) {
	from := trace(t)
	for flags, want := range map[string]string{
		"--scale 0":                             "scale 0: set a value above 0",
		"--scale -2 --trace " + from:            "scale -2: set a number above 0",
		"--scale Inf --trace " + from:           "scale +Inf: set a number above 0",
		"--scale NaN --trace " + from:           "scale NaN: set a number above 0",
		"--scale 2":                             "there is no trace to scale",
		"--speed Inf":                           "speed +Inf: set a number of virtual seconds",
		"--speed NaN":                           "speed NaN: set",
		"--speed -1":                            "speed -1: set",
		"--seed 0":                              "seed 0: set a value above 0",
		"--output xml":                          `output "xml" is unknown; it is table or json`,
		"--fault wva@38m+1m":                    "fault wva@38m0s+1m0s: the load ends at 38m0s; let the fault begin earlier",
		"--fault scrape@10s+1m --trace " + from: "the load ends at 10s",
		"--itl -1ms":                            "set times above 0",
		"--percentile 95":                       "percentile 95: set a share below 1, such as 0.95",
		"--pools A100=1x1":                      "no variant of the demo runs on it",
		"--output xml --scale 0 --fault moon@1m+1": "",
	} {
		args := strings.Split(strings.ReplaceAll(flags, from, "TRACE"), " ")
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "TRACE", from)
		}
		err := runDemo(t, args...)
		require.ErrorAs(t, err, new(usageError), flags)
		if !strings.Contains(flags, "moon") {
			require.ErrorContains(t, err, want, flags)
			continue
		}
		for _, part := range []string{"scale 0", `output "xml"`, `type "moon"`} {
			require.ErrorContains(t, err, part)
		}
	}
}

func TestErrorsOfATraceNameItsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "load.csv")
	require.NoError(t, os.WriteFile(path, []byte("when,in,out\n"), 0o600))
	err := runDemo(t, "--trace", path)
	require.ErrorContains(t, err, path+": line 1: no column TIMESTAMP, no column ContextTokens, no column GeneratedTokens; "+
		`the columns found are "when", "in", "out"; write a header`)
}
