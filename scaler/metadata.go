package scaler

import (
	"context"
	"fmt"
	"time"

	"k8s.io/utils/clock"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/scaledobject"
)

// maxMetadata bounds the trigger metadata that are read, in bytes of keys and values.
const maxMetadata = 256 << 10

// metadataReader validates trigger metadata. It is the only part of an answer whose time grows with
// the size of the request, so it has the deadline: all others look up the board.
type metadataReader struct {
	read     func(fleet.VariantID, map[string]string) error
	clock    clock.Clock
	deadline time.Duration
}

func newMetadataReader(options ServerOptions) metadataReader {
	return metadataReader{read: readMetadata, clock: options.Board.clock, deadline: options.Deadline}
}

func readMetadata(id fleet.VariantID, metadata map[string]string) error {
	_, err := scaledobject.ReadMetadata(id, metadata)
	return err
}

// validate returns the first validation error of the trigger metadata of an object that has no
// number in the plan; nil if there is none. Values may be secrets: only the reader's own short text
// leaves this method.
func (m metadataReader) validate(ctx context.Context, id fleet.VariantID, metadata map[string]string) error {
	size := 0
	for key, value := range metadata {
		size += len(key) + len(value)
	}
	if size > maxMetadata {
		return newError(limitExceeded, fmt.Sprintf("trigger metadata have %d bytes in %d keys: shorten them to %d bytes", size, len(metadata), maxMetadata))
	}
	if len(metadata) == 0 {
		return nil // somebody asks by name: KEDA always sends the trigger's metadata
	}
	return m.withinDeadline(ctx, func() error {
		if err := m.read(id, metadata); err != nil {
			return newError(invalidMetadata, id.String()+": "+scaledobject.Short(err))
		}
		return nil
	})
}

// withinDeadline waits for the reader no longer than the deadline: KEDA sets none, and would hang
// with the method. An answer that arrives together with the deadline counts.
func (m metadataReader) withinDeadline(ctx context.Context, read func() error) error {
	done := make(chan error, 1)
	go func() { done <- recoverPanic(read) }()
	timer := m.clock.NewTimer(m.deadline)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C():
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-done:
		return err
	default:
		return newError(deadlineMissed, fmt.Sprintf("no answer within %s: wva is overloaded; see its log and its CPU limit", m.deadline))
	}
}
