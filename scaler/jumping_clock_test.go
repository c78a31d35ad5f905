package scaler

import (
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// jumpingClock is a wall clock that somebody sets. Its times have no monotonic reading, as if the
// machine had slept.
type jumpingClock struct {
	clock.RealClock

	offset atomic.Int64
}

func (c *jumpingClock) jump(d time.Duration) { c.offset.Add(int64(d)) }

// Now returns the time on the clock.
func (c *jumpingClock) Now() time.Time {
	return time.Now().Round(0).Add(time.Duration(c.offset.Load()))
}

// Since returns the time since another one on the clock.
func (c *jumpingClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }
