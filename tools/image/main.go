// Command image builds wva for Linux and writes it as a container image FROM scratch: as an OCI
// layout, as an archive for container engines, to a registry, or as the files of its root file
// system. It needs Go and git, and no container engine. The same commit, built with the same
// version of Go, gives the same digest on every machine.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// Exit codes.
const (
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	err := newCommand().ExecuteContext(ctx)
	stop()
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "image:", err)
	if usage := new(usageError); errors.As(err, &usage) {
		os.Exit(exitUsage)
	}
	os.Exit(exitFailed)
}

// usageError is an error of the command line.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, arguments ...any) error {
	return &usageError{fmt.Errorf(format, arguments...)}
}
