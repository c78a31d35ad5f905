package service

import (
	"io"
	"math/rand/v2"
	"net"
	"sync"
)

// relay passes the connections to one address on to others.
type relay struct {
	listener net.Listener
	group    sync.WaitGroup

	mu      sync.Mutex
	targets []string
	open    map[net.Conn]struct{}
	closed  bool
}

func startRelay(address string) (*relay, error) {
	listener, err := net.Listen("tcp", address) //nolint:noctx // it does not wait
	if err != nil {
		return nil, err
	}
	r := &relay{listener: listener, open: map[net.Conn]struct{}{}}
	r.group.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			r.group.Go(func() { r.serve(near) })
		}
	})
	return r, nil
}

// set replaces the targets. Existing connections keep theirs, as in a real cluster.
func (r *relay) set(targets []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.targets = targets
}

// serve passes one connection on. Without a target it is closed.
func (r *relay) serve(near net.Conn) {
	defer near.Close()
	r.mu.Lock()
	targets := r.targets
	r.mu.Unlock()
	if len(targets) == 0 || !r.hold(near) {
		return
	}
	defer r.release(near)
	far, err := net.Dial("tcp", targets[rand.IntN(len(targets))]) //nolint:noctx,gosec // close ends it; any target is good
	if err != nil {
		return
	}
	defer far.Close()
	if !r.hold(far) {
		return
	}
	defer r.release(far)
	var group sync.WaitGroup
	group.Go(func() { pass(far, near) })
	pass(near, far)
	group.Wait()
}

// pass copies one direction, and tells its end.
func pass(to, from net.Conn) {
	_, _ = io.Copy(to, from) // an error ends the connection, and no one waits for it
	if half, ok := to.(*net.TCPConn); ok {
		_ = half.CloseWrite() // it may be closed
	}
}

func (r *relay) hold(connection net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.open[connection] = struct{}{}
	return true
}

func (r *relay) release(connection net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, connection)
}

// close ends all connections and waits for them.
func (r *relay) close() {
	_ = r.listener.Close() // nothing is written
	r.mu.Lock()
	r.closed = true
	for connection := range r.open {
		_ = connection.Close() // it may be closed
	}
	r.mu.Unlock()
	r.group.Wait()
}
