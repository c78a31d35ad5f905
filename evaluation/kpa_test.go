package evaluation

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// observeFor adds so many seconds of one load.
func (k *kpaRule) observeFor(seconds int, inFlight float64) {
	for range seconds {
		k.observe(inFlight)
	}
}

func TestKPAFollowsTheMeanOfAMinute(t *testing.T) {
	k := kpaRule{target: 10}
	k.observeFor(60, 25)
	require.Equal(t, 3, k.decide(60, 3))
	k.observeFor(30, 35) // mean 30 over 60 s, 35 over 6 s: not twice the replicas
	require.Equal(t, 3, k.decide(90, 3))
	require.False(t, k.panicked)
}

func TestKPAScalesDownByHalfAtMost(t *testing.T) {
	k := kpaRule{target: 10}
	k.observeFor(60, 1)
	require.Equal(t, 4, k.decide(60, 9))
}

func TestKPAPanicsFromTwiceTheReadyReplicasOn(t *testing.T) {
	k := kpaRule{target: 10}
	k.observeFor(60, 20)
	require.Equal(t, 2, k.decide(60, 2))
	k.observeFor(6, 31) // 4 of 2 replicas by 6 s, ceil((54 × 20 + 6 × 31) / 60 / 10) = 3 by 60 s
	require.Equal(t, 4, k.decide(66, 2))
	k.observeFor(6, 50)
	require.Equal(t, 5, k.decide(72, 3)) // 5 of 3 is below twice, and added all the same
	k.observeFor(54, 0)
	require.Equal(t, 5, k.decide(126, 5), "60 s after the last exceeding, nothing is removed")
	require.Equal(t, 2, k.decide(128, 5), "and then it is: half of the replicas at most, the mean is 5 → 1")
}

func TestKPAStartsFromOneReplica(t *testing.T) {
	k := kpaRule{target: 10}
	k.observe(95)
	require.Equal(t, 10, k.decide(0, 0), "no replica is ready: one counts")
}
