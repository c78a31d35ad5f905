package scaler

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

// TestRejectedCallsTakeNoMemory has a client whose calls may last for days: no timer of a rejected
// one is kept that long.
func TestRejectedCallsTakeNoMemory(t *testing.T) {
	server, address := onTCP(t, NewBoard(BoardOptions{}), func(o *ServerOptions) { o.MaxCalls, o.RequestTimeout = 3, time.Hour })
	conn := dialFrom(t, strangerHost, address)
	beginCall(t, conn)
	beginCall(t, conn)
	require.Eventually(t, func() bool { return server.keda.admission.calls.count() == 2 }, time.Minute, time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Hour)
	defer cancel()
	client := externalscaler.NewExternalScalerClient(conn)
	reject := func(calls int) {
		for range calls {
			_, err := client.IsActive(ctx, ref("a"))
			requireStatus(t, err, codes.ResourceExhausted, "too many calls are open")
		}
	}
	reject(1_000) // buffers and pools are filled
	before := liveHeap()
	reject(20_000)
	require.Less(t, liveHeap()-before, int64(20_000*100))
}

// liveHeap returns the bytes of the heap that are in use.
func liveHeap() int64 {
	runtime.GC()
	runtime.GC() // pools too
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
