package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDemoReportsAllErrorsOfPoolsAndFaultsAtOnce(t *testing.T) {
	err := runDemo(t, "--pools", "L40S=0x1,H100", "--pools", "H100=1x8", "--fault", "moon@1m+1m")
	require.ErrorContains(t, err, `pool "L40S=0x1": "0" is no number of nodes`)
	require.ErrorContains(t, err, `pool "H100": write it as ACCELERATOR=NODESxGPUS`)
	require.ErrorContains(t, err, `fault "moon@1m+1m": type "moon" is unknown`)
	require.NotContains(t, err.Error(), "H100=1x8")
}

func TestDemoRejectsAnEmptyListOfPools(t *testing.T) {
	require.EqualError(t, runDemo(t, "--pools", ""), `pool "": write it as ACCELERATOR=NODESxGPUS, such as L40S=2x1`)
}

func TestDemoTakesPoolsInOneFlagOrSeveral(t *testing.T) {
	for _, flags := range []string{"--pools L40S=1x1,A100=1x1,L40S=1x2", "--pools L40S=1x1 --pools A100=1x1 --pools L40S=1x2"} {
		err := runDemo(t, strings.Fields(flags)...)
		require.ErrorContains(t, err, `pool of "A100": no variant of the demo runs on it; use one of [H100 L40S]`)
		require.ErrorContains(t, err, "pool of L40S: it is defined twice")
	}
}

func TestDemoRejectsZeros(t *testing.T) {
	err := runDemo(t, "--scale", "0", "--seed", "0", "--ttft", "0s", "--itl", "0", "--percentile", "0")
	require.EqualError(t, err, "scale 0: set a value above 0\nseed 0: set a value above 0\nttft 0: set a value above 0\n"+
		"itl 0: set a value above 0\npercentile 0: set a value above 0")
}

// runDemo runs wvactl demo with flags that it rejects.
func runDemo(t *testing.T, flags ...string) error {
	t.Helper()
	var out bytes.Buffer
	command := newDemoCommand()
	command.SetOut(&out)
	command.SetErr(&out)
	command.SetArgs(append(flags, "--grpc-address", "127.0.0.1:0", "--operators-address", "127.0.0.1:0"))
	command.SilenceUsage = true
	return command.ExecuteContext(t.Context())
}
