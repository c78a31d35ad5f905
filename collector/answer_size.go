package collector

import (
	"fmt"
	"io"
	"sync"
)

// budget limits the bytes of the answers that are being read.
type budget struct {
	each     int64
	together int64

	mu   sync.Mutex
	used int64 // guarded by mu, as is the state of each answerBody
}

func (b *budget) exceeded() error { return &sizeError{each: b.each, together: b.together} }

// answerBody is a body that fails if it exceeds its budget. It may be closed while it is read.
type answerBody struct {
	io.ReadCloser
	budget *budget
	used   int64
	closed bool
}

// Read reads on, and counts the bytes.
func (b *answerBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if full := b.count(int64(n)); full != nil {
		return 0, full
	}
	return n, err
}

func (b *answerBody) count(n int64) error {
	b.budget.mu.Lock()
	defer b.budget.mu.Unlock()
	if b.closed {
		return nil
	}
	b.used += n
	b.budget.used += n
	switch {
	case b.used > b.budget.each, b.budget.used > b.budget.together:
		return b.budget.exceeded()
	default:
		return nil
	}
}

// Close ends the reading and releases the bytes.
func (b *answerBody) Close() error {
	b.budget.mu.Lock()
	if !b.closed {
		b.budget.used -= b.used
		b.closed = true
	}
	b.budget.mu.Unlock()
	return b.ReadCloser.Close()
}

// sizeError is the error of an answer that is not read to its end. Its text is the same whichever
// limit was exceeded.
type sizeError struct{ each, together int64 }

func (e *sizeError) Error() string {
	return fmt.Sprintf("an answer is larger than %d bytes, or those read at once are larger than %d; raise the limit if the fleet is that large, or check the address of Prometheus",
		e.each, e.together)
}

func beginningOf(text string) string {
	const most = 120
	if len(text) > most {
		return text[:most] + "..."
	}
	return text
}
