package scaler

import (
	"context"
	"testing"
	"time"

	"github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"github.com/stretchr/testify/require"
)

func TestTenThousandStreamsOpenedAndCancelledLeaveNothing(t *testing.T) {
	w := newWorld(t)
	client := w.keda()
	for range 10_000 {
		ctx, cancel := context.WithCancel(t.Context())
		stream, err := client.StreamIsActive(ctx, &externalscaler.ScaledObjectRef{Namespace: "prod", Name: "chat"})
		require.NoError(t, err)
		_, err = stream.Header() // the server has it
		require.NoError(t, err)
		cancel()
	}
	open := func() int {
		w.server.pusher.mu.Lock()
		defer w.server.pusher.mu.Unlock()
		return len(w.server.pusher.callers)
	}
	// The server hears of the last ones a moment later.
	require.Eventually(t, func() bool { return open() == 0 }, time.Minute, time.Millisecond)
	require.Zero(t, w.server.pusher.unknown.count())
	// A limit hears of the end of a stream after the pusher.
	require.Eventually(t, func() bool { return w.server.keda.admission.streams.count() == 0 }, time.Minute, time.Millisecond)
}
