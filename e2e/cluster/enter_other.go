//go:build !linux

package cluster

import "errors"

const unsupported = "a cluster needs Linux's namespaces; run the tests on Linux"

func probe(string) error { return deniedError{unsupported} }

func again(string) (int, error) { return 0, errors.New(unsupported) }

func furnish(string) error { return errors.New(unsupported) }
