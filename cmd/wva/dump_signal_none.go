//go:build !unix

package main

import "os"

// dumpRequests returns nothing: the system has no signal for users.
func dumpRequests() (requests <-chan os.Signal, stop func()) { return nil, func() {} }
