package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/wva-project/wva/e2e/cluster/kubelet"
)

// The variables by which a program and its second process, inside the namespaces, communicate.
const (
	// directoryVariable is set inside: it names the directory that exists there only.
	directoryVariable = "WVA_CLUSTER_DIRECTORY"
	// stageVariable is the task of the second process; it is unset afterwards.
	stageVariable = "WVA_CLUSTER_STAGE"
	// deniedVariable is why there are no namespaces.
	deniedVariable = "WVA_CLUSTER_DENIED"
)

const (
	stageProbe = "probe" // enter, and end
	stageRun   = "run"   // enter, and go on
)

// Enter moves the program into namespaces of its own. It is called before anything else, in
// TestMain or main, with all options that a [Start] of the program uses: their components are built
// first, since inside there is no network to fetch modules.
//
// Enter returns inside only: outside it starts the program again, with the same arguments and
// streams, and exits with its code. If the system grants no namespaces it returns as well, and
// Start then skips its test.
func Enter(options Options) {
	kubelet.Enter() // the first process of a pod's container is this program too
	if os.Getenv(stageVariable) != "" {
		arrive()
		return
	}
	if os.Getenv(directoryVariable) != "" { // started by a program that is inside
		return
	}
	code, err := outside(options)
	var denial deniedError
	switch {
	case errors.As(err, &denial):
		_ = os.Setenv(deniedVariable, err.Error()) // the name is valid
	case err != nil:
		_, _ = fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	default:
		os.Exit(code)
	}
}

// deniedError is an error of a system that grants no namespaces.
type deniedError struct{ reason string }

func (e deniedError) Error() string { return e.reason }

// outside runs the program's second process and returns its exit code.
func outside(options Options) (int, error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	directory, err := os.MkdirTemp("", "wva-cluster-")
	if err != nil {
		return 0, err
	}
	defer os.Remove(directory) // empty: the mount on it exists inside only
	if err := probe(directory); err != nil {
		return 0, err
	}
	if err := Build(ctx, os.Stderr, options.Components()...); err != nil {
		return 0, err
	}
	if options.WVA {
		if err := prepareImage(ctx); err != nil {
			return 0, err
		}
	}
	stop() // from here on signals are passed on
	return again(directory)
}

// arrive sets up the namespaces that the program is in.
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

// denied returns why there can be no cluster; nil inside.
func denied() error {
	if os.Getenv(directoryVariable) != "" {
		return nil
	}
	if reason := os.Getenv(deniedVariable); reason != "" {
		return deniedError{reason}
	}
	return errors.New("the program has not entered; call cluster.Enter first in TestMain")
}
