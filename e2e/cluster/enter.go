package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// What a program and its second self inside the namespaces tell each other.
const (
	// directoryVariable is set inside: it names the directory that exists there only.
	directoryVariable = "WVA_CLUSTER_DIRECTORY"
	// stageVariable says what the second self does on arrival; it is unset afterwards.
	stageVariable = "WVA_CLUSTER_STAGE"
	// refusalVariable says why there is no inside.
	refusalVariable = "WVA_CLUSTER_REFUSAL"
)

const (
	stageProbe = "probe" // arrive, and leave
	stageRun   = "run"   // arrive, and go on
)

// Enter moves the program into namespaces of its own. It is called before anything else, in TestMain or main, and names the
// most that a [Start] of the program asks for: that is built first, since inside there is no network to fetch modules.
//
// Enter returns inside only: outside it starts the program again, with the same arguments and streams, and exits with its
// code. Where the system grants no namespaces it returns as well, and Start then skips its test.
func Enter(options Options) {
	if os.Getenv(stageVariable) != "" {
		arrive()
		return
	}
	if os.Getenv(directoryVariable) != "" { // started by a program that is inside
		return
	}
	code, err := outside(options)
	var refused refusedError
	switch {
	case errors.As(err, &refused):
		_ = os.Setenv(refusalVariable, err.Error()) // the name is valid
	case err != nil:
		_, _ = fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	default:
		os.Exit(code)
	}
}

// refusedError says that the system grants no namespaces.
type refusedError struct{ reason string }

func (e refusedError) Error() string { return e.reason }

// outside runs the program's second self and returns its exit code.
func outside(options Options) (int, error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	directory, err := os.MkdirTemp("", "wva-cluster-")
	if err != nil {
		return 0, err
	}
	defer os.Remove(directory) // empty: what is mounted on it is seen inside only
	if err := probe(directory); err != nil {
		return 0, err
	}
	if err := Build(ctx, os.Stderr, options.Components()...); err != nil {
		return 0, err
	}
	stop() // from here on signals are passed on
	return again(directory)
}

// arrive furnishes the namespaces that the program finds itself in.
func arrive() {
	stage := os.Getenv(stageVariable)
	_ = os.Unsetenv(stageVariable) // the name is valid
	if err := furnish(os.Getenv(directoryVariable)); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if stage == stageProbe {
		os.Exit(0)
	}
}

// refusal returns why there is no cluster to be had; nil inside.
func refusal() error {
	if os.Getenv(directoryVariable) != "" {
		return nil
	}
	if reason := os.Getenv(refusalVariable); reason != "" {
		return refusedError{reason}
	}
	return errors.New("the program has not entered; call cluster.Enter first in TestMain")
}
