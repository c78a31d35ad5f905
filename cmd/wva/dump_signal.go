//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// dumpRequests returns the signals that ask for a dump, from now on until stop is called. Before
// and after, they are lost.
func dumpRequests() (requests <-chan os.Signal, stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	return signals, func() { signal.Stop(signals) }
}
