package scaler

import (
	linked "container/list"
	"sync"
)

// maxInFlight bounds the bytes that are held of requests that are not complete.
const maxInFlight = 64 << 20

// arrivals are the requests that are being received, and the bytes that were read meanwhile. A
// request that is not complete although maxInFlight bytes were read since it was waited for is
// given up: all that is held was read since the oldest one. The bytes of a single request are not
// known before it is complete.
type arrivals struct {
	mu      sync.Mutex
	read    int64       // so far, from all connections
	waiting linked.List // of *arrival, the oldest first
}

// arrival is a request that is waited for.
type arrival struct {
	since      int64         // bytes read before
	superseded chan struct{} // closed when it is given up
	element    *linked.Element
}

func (a *arrivals) begin() *arrival {
	a.mu.Lock()
	defer a.mu.Unlock()
	waiting := &arrival{since: a.read, superseded: make(chan struct{})}
	waiting.element = a.waiting.PushBack(waiting)
	return waiting
}

func (a *arrivals) end(waiting *arrival) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waiting.Remove(waiting.element) // nothing if it was given up
}

// add counts bytes that were read.
func (a *arrivals) add(bytes int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.read += int64(bytes)
	for oldest := a.waiting.Front(); oldest != nil; oldest = a.waiting.Front() {
		waiting := oldest.Value.(*arrival)
		if a.read-waiting.since <= maxInFlight {
			return
		}
		close(waiting.superseded)
		a.waiting.Remove(oldest)
	}
}
