//go:build unix

package main

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSIGUSR1WritesTheInputOfTheLatestDecision(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	log, stop := serve(t, "--manifests", t.TempDir())
	await(t, log, "first plan posted")
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGUSR1))
	require.Contains(t, await(t, log, `msg="snapshot written"`), "file="+os.TempDir()+"/wva-snapshot-")
	require.NoError(t, stop())
}

// A signal that nobody is notified of would be lost, or end the process.
func TestSIGUSR1IsKeptUntilTheServerRuns(t *testing.T) {
	requests, stop := dumpRequests()
	defer stop()
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGUSR1))
	require.Equal(t, syscall.SIGUSR1, <-requests)
}
