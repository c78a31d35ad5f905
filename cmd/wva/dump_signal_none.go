//go:build !unix

package main

import "os"

// dumpSignals returns nothing: the system has no signal for users.
func dumpSignals() []os.Signal { return nil }
