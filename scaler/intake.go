package scaler

import (
	"context"
	"net"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc/peer"
)

// The bytes a second that are read from clients: each address has a part of its own, which is twice
// the traffic of KEDA at 1,000 objects, and draws further ones from a part that all share. A burst
// is that of half a second.
const (
	ownReadRate    = 1 << 20
	sharedReadRate = 16 << 20
)

// caller is a connection: its address, and its number in the order of accepting.
type caller struct {
	host   string
	number uint64
}

// callerOf returns the connection of a request.
func callerOf(ctx context.Context) caller {
	if from, known := peer.FromContext(ctx); known {
		if address, ours := from.Addr.(remoteAddress); ours {
			return address.caller
		}
	}
	return caller{}
}

// remoteAddress is the remote address of a connection.
type remoteAddress struct {
	net.Addr

	caller caller
}

// intake accepts connections, and bounds how many are open and how fast they are read: gRPC keeps
// the bytes of a request until it is complete, however many requests there are. It delays, and
// rejects no request. A client waits only for itself and, above its own part, for its turn among
// all.
type intake struct {
	net.Listener

	connections *quota
	rejected    func() // called for each connection that is rejected
	arrivals    *arrivals
	shared      *rate.Limiter

	mu       sync.Mutex
	accepted uint64
	own      map[string]*ownPart // by address, of those that have connections
}

// ownPart is the part of one address.
type ownPart struct {
	rate        *rate.Limiter
	connections int
}

func newIntake(listener net.Listener, connections *quota, arrivals *arrivals, rejected func()) *intake {
	return &intake{
		Listener: listener, connections: connections, arrivals: arrivals, rejected: rejected,
		shared: rate.NewLimiter(sharedReadRate, sharedReadRate/2), own: make(map[string]*ownPart),
	}
}

// Accept returns the next connection that is not rejected.
func (i *intake) Accept() (net.Conn, error) {
	for {
		conn, err := i.Listener.Accept()
		if err != nil {
			return nil, err
		}
		host := hostOf(conn.RemoteAddr())
		if i.connections.enter(host) {
			return i.admit(conn, host), nil
		}
		i.rejected()
		_ = conn.Close() // nothing was read or written
	}
}

func (i *intake) admit(conn net.Conn, host string) net.Conn {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.accepted++
	part, found := i.own[host]
	if !found {
		part = &ownPart{rate: rate.NewLimiter(ownReadRate, ownReadRate/2)}
		i.own[host] = part
	}
	part.connections++
	c := &boundedConn{
		Conn: conn, arrivals: i.arrivals, own: part.rate, shared: i.shared,
		address: remoteAddress{conn.RemoteAddr(), caller{host, i.accepted}},
	}
	c.open, c.closed = context.WithCancel(context.Background())
	c.forget = sync.OnceFunc(func() { i.forget(host) })
	return c
}

func (i *intake) forget(host string) {
	i.connections.leave(host)
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.own[host].connections--; i.own[host].connections == 0 {
		delete(i.own, host)
	}
}

// boundedConn is a connection that waits after each read until the rates allow the next one.
type boundedConn struct {
	net.Conn

	address     remoteAddress
	arrivals    *arrivals
	own, shared *rate.Limiter
	open        context.Context //nolint:containedctx // it ends with Close
	closed      context.CancelFunc
	forget      func()
}

func (c *boundedConn) RemoteAddr() net.Addr { return c.address }

func (c *boundedConn) Read(into []byte) (int, error) {
	if most := ownReadRate / 2; len(into) > most { // a limiter grants no more at once
		into = into[:most]
	}
	n, err := c.Conn.Read(into)
	c.arrivals.add(n)
	if n > 0 && !c.own.AllowN(time.Now(), n) {
		// it fails only if the connection is closed, as the next read does
		_ = c.shared.WaitN(c.open, n)
	}
	return n, err
}

func (c *boundedConn) Close() error {
	c.closed()
	c.forget()
	return c.Conn.Close()
}

func hostOf(address net.Addr) string {
	host, _, err := net.SplitHostPort(address.String())
	if err != nil {
		return address.String()
	}
	return host
}
