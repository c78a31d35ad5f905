//go:build unix

package main

import (
	"os"
	"syscall"
)

// dumpSignals returns the signals that ask for a dump.
func dumpSignals() []os.Signal { return []os.Signal{syscall.SIGUSR1} }
