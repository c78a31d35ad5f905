package scaler

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// shareBook keeps the holdings of each address that were neither left nor lost, the oldest first.
type shareBook struct {
	*testing.T
	shares   *shares
	holdings map[string][]*holding
	loser    string // the address that lost one to the latest stream
	lost     int
}

func newShareBook(t *testing.T, most int) *shareBook {
	return &shareBook{T: t, shares: newShares(most), holdings: make(map[string][]*holding)}
}

// enter opens one for an address and checks who is rejected, and who loses one.
func (b *shareBook) enter(host string) bool {
	before, open := len(b.holdings[host]), b.count()
	hosts := len(b.holdings)
	if before == 0 {
		hosts++
	}
	equal, largest := b.shares.most/hosts, b.largest()
	b.loser = ""
	entered := b.shares.enter(host, func() { b.loser = host })
	if entered == nil {
		require.Equal(b, b.shares.most, open, "rejected although some are free")
		require.GreaterOrEqual(b, before, equal, "rejected below an equal part")
		return false
	}
	if b.loser != "" {
		b.lost++
		require.Equal(b, b.shares.most, open, "one was ended although some are free")
		require.Len(b, b.holdings[b.loser], largest, "another address has more")
		require.Greater(b, largest, equal, "an address lost a part of its equal part")
		newest := largest - 1
		require.Nil(b, b.holdings[b.loser][newest].element, "an older one was ended")
		b.holdings[b.loser] = b.holdings[b.loser][:newest]
	}
	b.holdings[host] = append(b.holdings[host], entered)
	require.Equal(b, b.count(), b.shares.count())
	require.LessOrEqual(b, b.shares.count(), b.shares.most)
	return true
}

// leave closes a random one of an address.
func (b *shareBook) leave(host string, random *rand.Rand) {
	holdings := b.holdings[host]
	if len(holdings) == 0 {
		return
	}
	i := random.IntN(len(holdings))
	b.shares.leave(holdings[i])
	b.shares.leave(holdings[i]) // the end of a stream that was lost, or twice: nothing
	b.holdings[host] = append(holdings[:i:i], holdings[i+1:]...)
	if len(holdings) == 1 {
		delete(b.holdings, host)
	}
}

func (b *shareBook) count() (open int) {
	for _, holdings := range b.holdings {
		open += len(holdings)
	}
	return open
}

func (b *shareBook) largest() (largest int) {
	for _, holdings := range b.holdings {
		largest = max(largest, len(holdings))
	}
	return largest
}

// count returns how many are open.
func (s *shares) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

func TestNobodyBelowAnEqualPartIsRejected(t *testing.T) {
	lost := 0
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		book := newShareBook(t, 1+random.IntN(40))
		hosts := 1 + random.IntN(8)
		for range 400 {
			host := fmt.Sprint(min(random.IntN(hosts), random.IntN(hosts))) // some ask more often
			if random.IntN(4) == 0 {
				book.leave(host, random)
			} else {
				book.enter(host)
			}
		}
		lost += book.lost
		for host := range book.holdings {
			for len(book.holdings[host]) > 0 {
				book.leave(host, random)
			}
		}
		require.Empty(t, book.shares.hosts)
		require.Empty(t, book.shares.byOpen)
		require.Zero(t, book.shares.count())
	}
	require.Greater(t, lost, 1_000, "the test ends few streams")
}

func TestAddressesThatAllAskForMoreComeToRest(t *testing.T) {
	book := newShareBook(t, 100)
	for i := range 7 {
		for book.enter(fmt.Sprint(i)) { // as many as it gets, then the next one
		}
	}
	for range 100 {
		for i := range 7 {
			for book.enter(fmt.Sprint(i)) {
			}
		}
	}
	require.Less(t, book.lost, 200)
	for _, holdings := range book.holdings {
		require.InDelta(t, 100/7, len(holdings), 1)
	}
}
