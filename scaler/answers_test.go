package scaler

import (
	"bytes"
	"net"
	"testing"
	"time"

	"github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// untaking is a client that calls, and lets no byte of an answer come.
type untaking struct {
	testing.TB
	framer *http2.Framer
	stream uint32
}

func newUntaking(t testing.TB, address string) *untaking {
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	_, err = conn.Write([]byte(http2.ClientPreface))
	require.NoError(t, err)
	c := &untaking{TB: t, framer: http2.NewFramer(conn, conn), stream: 1}
	require.NoError(t, c.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}))
	return c
}

// call reports whether the server answered, although the answer cannot leave; else it rejected it.
func (c *untaking) call() bool {
	var headers bytes.Buffer
	encoder := hpack.NewEncoder(&headers)
	for _, field := range [][2]string{
		{":method", "POST"}, {":scheme", "http"}, {":authority", "wva"},
		{":path", externalscaler.ExternalScaler_GetMetrics_FullMethodName}, {"content-type", "application/grpc"}, {"te", "trailers"},
	} {
		require.NoError(c, encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}))
	}
	require.NoError(c, c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: c.stream, BlockFragment: headers.Bytes(), EndHeaders: true}))
	message := requestOf(c, 0)
	require.NoError(c, c.framer.WriteData(c.stream, true, append([]byte{0, 0, 0, 0, byte(len(message))}, message...)))
	defer func() { c.stream += 2 }()
	for {
		frame, err := c.framer.ReadFrame()
		require.NoError(c, err)
		switch frame := frame.(type) {
		case *http2.HeadersFrame:
			require.False(c, frame.StreamEnded())
			return true
		case *http2.RSTStreamFrame:
			require.Equal(c, http2.ErrCodeRefusedStream, frame.ErrCode)
			return false
		}
	}
}

// TestAnswersThatAreNotTakenAreBounded counts the answers of a connection that wait for their
// client: the calls have ended, and are not among the open ones.
func TestAnswersThatAreNotTakenAreBounded(t *testing.T) {
	board := NewBoard(BoardOptions{})
	_, address := onTCP(t, board, func(o *ServerOptions) { o.MaxCalls, o.MaxStreams = 300, 10 })
	board.Post(planAt(time.Now(), decided("a", 1)))
	client := newUntaking(t, address)
	waiting := 0
	for waiting < 1_000 && client.call() {
		waiting++
	}
	require.Equal(t, 200+10+43, waiting, "the calls, streams and dialogues that one address can have open")
}
