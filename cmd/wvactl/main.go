// Command wvactl is the operators' tool of WVA.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// The exit codes.
const (
	exitError  = 1
	exitUsage  = 2   // wrong flags or arguments
	exitSignal = 128 // and the number of the signal
)

func main() {
	os.Exit(run(untilSignal(context.Background()), newCommand()))
}

// interruption is the cause with which a signal ends a context.
type interruption struct{ syscall.Signal }

func (i interruption) Error() string { return i.String() }

// untilSignal returns a context that the first SIGINT or SIGTERM ends. A second one ends the
// process at once.
func untilSignal(parent context.Context) context.Context {
	ctx, end := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		first := <-signals
		signal.Stop(signals) // the default action is back
		number, _ := first.(syscall.Signal)
		end(interruption{number})
	}()
	return ctx
}

// run executes the command and returns the exit code.
func run(ctx context.Context, root *cobra.Command) int {
	code := exitUsage
	// The command line is valid from here on.
	root.PersistentPreRun = func(*cobra.Command, []string) { code = exitError }
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintln(root.ErrOrStderr(), "wvactl:", err)
	if _, wrong := errors.AsType[usageError](err); wrong {
		return exitUsage
	}
	if by, interrupted := errors.AsType[interruption](context.Cause(ctx)); interrupted {
		return exitSignal + int(by.Signal)
	}
	return code
}

func newCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "wvactl",
		Short: "The operators' tool of WVA, the autoscaler for LLM inference on Kubernetes",
		Long: `The operators' tool of WVA, the autoscaler for LLM inference on Kubernetes.

The exit code is 0 if all went well, 1 after an error, and 2 if the flags or arguments are wrong. A signal ends a command with
128 and its number.`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(newDemoCommand(), newFitCommand(), newLintCommand(), newPlanCommand(), newRecordCommand(), newRenderCommand(),
		newSimulateCommand(), newSizeCommand(), newVersionCommand())
	return root
}

// usageError is an error of the command line.
type usageError struct{ error }

// usage makes an error one of the command line; nil stays nil.
func usage(err error) error {
	if err == nil {
		return nil
	}
	return usageError{err}
}

// checkOutput returns an error if the value of --output is none of the formats.
func checkOutput(output string, formats ...string) error {
	if slices.Contains(formats, output) {
		return nil
	}
	last := len(formats) - 1
	return usage(fmt.Errorf("output %q is unknown; it is %s or %s", output, strings.Join(formats[:last], ", "), formats[last]))
}
