// Command build builds components of a test cluster into e2e/cluster/bin.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/wva-project/wva/e2e/cluster"
)

const usage = `Usage: go run ./cmd/build [component...]

Builds the named components into e2e/cluster/bin, or all of them, unless they are there already in the version that
e2e/cluster/components names. A cold build of all takes 10 to 40 minutes on two cores and 3 GB of memory.

Components:
  `

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	var wrong usageError
	switch {
	case errors.As(err, &wrong):
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	case err != nil:
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// usageError is an error in the arguments.
type usageError struct{ error }

func run(ctx context.Context, arguments []string, output io.Writer) error {
	flags := flag.NewFlagSet("build", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // errors are printed once, by main
	switch err := flags.Parse(arguments); {
	case errors.Is(err, flag.ErrHelp):
		_, err := fmt.Fprintln(output, usage+strings.Join(cluster.Known(), "\n  "))
		return err
	case err != nil:
		return usageError{fmt.Errorf("%w; see --help", err)}
	}
	names := flags.Args()
	if len(names) == 0 {
		names = cluster.Known()
	}
	return cluster.Build(ctx, output, names...)
}
