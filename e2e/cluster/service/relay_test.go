package service

import (
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// greeter writes a greeting to each connection, then all that it reads.
func greeter(t *testing.T, greeting string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(connection, greeting)
			_, _ = io.Copy(connection, connection)
			_ = connection.Close()
		}
	}()
	t.Cleanup(func() {
		require.NoError(t, listener.Close())
		<-ended
	})
	return listener.Addr().String()
}

// talk sends a text over one connection and returns the whole answer.
func talk(t *testing.T, address, text string) string {
	t.Helper()
	connection, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer connection.Close()
	_, _ = io.WriteString(connection, text) // it may be closed
	_ = connection.(*net.TCPConn).CloseWrite()
	answer, _ := io.ReadAll(connection) // a reset is an empty answer
	return string(answer)
}

func TestRelayLeadsToItsTargetsAndToNothingWithoutOne(t *testing.T) {
	r, err := startRelay("127.0.0.1:0")
	require.NoError(t, err)
	defer r.close()
	address := r.listener.Addr().String()
	require.Empty(t, talk(t, address, "text"))
	r.set([]string{greeter(t, "first: ")})
	require.Equal(t, "first: text", talk(t, address, "text"))
	r.set([]string{greeter(t, "second: ")})
	require.Equal(t, "second: text", talk(t, address, "text"))
}

func TestClosedRelayEndsItsConnections(t *testing.T) {
	r, err := startRelay("127.0.0.1:0")
	require.NoError(t, err)
	r.set([]string{greeter(t, "hello")})
	connection, err := net.Dial("tcp", r.listener.Addr().String())
	require.NoError(t, err)
	defer connection.Close()
	greeting := make([]byte, len("hello"))
	_, err = io.ReadFull(connection, greeting)
	require.NoError(t, err)
	r.close()
	_, err = connection.Read(greeting)
	require.Error(t, err)
}
