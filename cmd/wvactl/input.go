package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
)

// maxInput is the size from which on a file is rejected, in bytes. The snapshot of 10,000 variants
// has some 50 MB.
const maxInput = 1 << 30

// readInput reads a file, or standard input if its name is "-".
func readInput(command *cobra.Command, file string) ([]byte, error) {
	from := command.InOrStdin()
	if file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer opened.Close()
		from = opened
	}
	data, err := io.ReadAll(io.LimitReader(from, maxInput+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", file, err)
	case len(data) > maxInput:
		return nil, fmt.Errorf("reading %s: the file has more than %d bytes; give a file that wva wrote", file, maxInput)
	}
	return data, nil
}
