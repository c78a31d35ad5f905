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
	exitError = 1
	exitUsage = 2 // wrong flags or arguments
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, newCommand())
	stop()
	os.Exit(code)
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
	return code
}

func newCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "wvactl",
		Short: "The operators' tool of WVA, the autoscaler for LLM inference on Kubernetes",
		Long: `The operators' tool of WVA, the autoscaler for LLM inference on Kubernetes.

The exit code is 0 if all went well, 1 after an error, and 2 if the flags or arguments are wrong.`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(newDemoCommand(), newFitCommand(), newLintCommand(), newPlanCommand(), newRenderCommand(), newSizeCommand())
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
