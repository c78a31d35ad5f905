package scaler

import (
	"math"
	"sync"
)

// quota bounds how many of something are open, in all and for each address: an address may open one
// more while it has fewer than a multiple of those that are free. With twice as many it gets two
// thirds of all if it is alone, so that no address takes everything. It ends nothing: the next
// address gets a part of the rest.
type quota struct {
	most int
	// multiple of those that are free
	multiple float64

	mu    sync.Mutex
	open  int
	hosts map[string]int
}

func newQuota(most int, multiple float64) *quota {
	return &quota{most: most, multiple: multiple, hosts: make(map[string]int)}
}

// alone returns how many an address gets if there is no other.
func alone(most int, multiple float64) int {
	return int(math.Ceil(multiple * float64(most) / (1 + multiple)))
}

// enter reports whether the address may open one more, which then counts until it leaves.
func (q *quota) enter(host string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if float64(q.hosts[host]) >= q.multiple*float64(q.most-q.open) {
		return false
	}
	q.add(host, 1)
	return true
}

// leave takes back one enter.
func (q *quota) leave(host string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.add(host, -1)
}

// move counts those that are open already from now on, whatever the limit, or not any more.
func (q *quota) move(host string, count int, counts bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !counts {
		count = -count
	}
	q.add(host, count)
}

func (q *quota) add(host string, count int) {
	q.open += count
	q.hosts[host] += count
	if q.hosts[host] == 0 {
		delete(q.hosts, host)
	}
}
