package scaler

import (
	"cmp"
	"context"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/wva-project/wva/fleet"
)

// The rate of pushes. KEDA acts on the first `true`; each one costs it a write to the API server,
// of which it has 20 a second.
const (
	pushesPerSecond = 5
	firstDelay      = time.Second
	longestDelay    = 30 * time.Second
	// jitter is the random share of a delay, so that replicas of the server do not push at the same
	// time.
	jitter = 0.2
)

// pusher decides when an open stream is told that its object is active: as soon as the decision is
// above zero while the workload is inactive, then again with growing delays for as long as it is
// inactive. One pusher serves all streams; a stream costs it a few words and no timer. All methods
// may be called at the same time.
type pusher struct {
	board      *Board
	seed       uint64
	maxUnknown int
	wake       chan struct{} // capacity 1: something became due, or may have

	mu      sync.Mutex
	seen    *boardState // the state of the board that the streams' state comes from
	streams map[*stream]struct{}
	opened  uint64     // streams ever opened
	unknown int        // open streams of objects that the plan does not have
	later   streamHeap // wanted, and not due yet
	due     streamHeap // wanted and due, waiting for the rate limit
	recent  [pushesPerSecond]time.Time
	granted uint64 // pushes ever granted
	sending int    // pushes granted, Send has not returned
	idle    chan struct{}
	sent    uint64 // pushes whose Send succeeded
}

// stream is one open stream. Its handler waits for turns; everything else belongs to the pusher.
type stream struct {
	id     fleet.VariantID
	pushes bool          // false for a stream that is only counted
	turn   chan struct{} // capacity 1: send one `true`

	number   uint64 // in the order of opening
	unknown  bool
	wanted   bool
	edge     bool // became wanted again while a push was being sent
	sending  bool
	attempts int
	at       time.Time   // when the next push is due
	heap     *streamHeap // in which it waits; nil if it does not
	position int
}

func newPusher(board *Board, seed uint64, maxUnknown int) *pusher {
	return &pusher{
		board:      board,
		seed:       seed,
		maxUnknown: maxUnknown,
		wake:       make(chan struct{}, 1),
		streams:    make(map[*stream]struct{}),
		later:      streamHeap{before: func(a, b *stream) bool { return compareDue(a, b) < 0 }},
		due: streamHeap{before: func(a, b *stream) bool {
			// a new edge goes before repeats
			return cmp.Or(cmp.Compare(a.attempts, b.attempts), compareDue(a, b)) < 0
		}},
	}
}

func compareDue(a, b *stream) int {
	return cmp.Or(a.at.Compare(b.at), a.id.Compare(b.id), cmp.Compare(a.number, b.number))
}

// run hands out turns until the context ends.
func (p *pusher) run(ctx context.Context) {
	for ctx.Err() == nil {
		changed := p.board.Changed() // before step, so that no plan is missed
		next, waits := p.step()
		p.await(ctx, changed, next.Sub(p.board.clock.Now()), waits)
	}
}

// await returns when there may be something to do: the plan changed, a stream did, or (if timed)
// the time passed.
func (p *pusher) await(ctx context.Context, changed <-chan struct{}, wait time.Duration, timed bool) {
	var passed <-chan time.Time
	if timed {
		if wait <= 0 {
			return
		}
		timer := p.board.clock.NewTimer(wait)
		defer timer.Stop()
		passed = timer.C()
	}
	select {
	case <-ctx.Done():
	case <-changed:
	case <-p.wake:
	case <-passed:
	}
}

// open registers a stream. A stream of an object that is to be activated gets its first turn at
// once.
func (p *pusher) open(id fleet.VariantID, pushes bool) (*stream, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refresh()
	_, known := p.seen.lookup(id)
	unknown := p.seen.posted && !known
	if unknown && p.unknown >= p.maxUnknown {
		return nil, newError(limitExceeded, "too many streams are open for objects that are not decided yet: "+id.String()+
			" has to wait; check that wva watches their namespaces")
	}
	p.opened++
	s := &stream{id: id, pushes: pushes, turn: make(chan struct{}, 1), number: p.opened}
	p.streams[s] = struct{}{}
	p.evaluate(s)
	if s.heap != nil {
		p.signal()
	}
	return s, nil
}

// close forgets a stream.
func (p *pusher) close(s *stream) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.streams, s)
	if s.unknown {
		p.unknown--
	}
	if s.heap != nil {
		s.heap.remove(s)
	}
	if s.sending {
		p.returned(s)
	}
}

// done takes back a turn: the stream's Send has returned.
func (p *pusher) done(s *stream, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.returned(s)
	if err != nil {
		return // the handler ends, and closes the stream
	}
	p.sent++
	if !s.wanted {
		return
	}
	now := p.board.clock.Now()
	if s.edge {
		s.edge, s.attempts, s.at = false, 0, now
	} else {
		s.attempts++
		s.at = now.Add(p.delay(s.id, s.attempts))
	}
	p.later.add(s)
	p.signal()
}

// step hands out the turns that are due now. It returns when there will be more to do, and whether
// there will be.
func (p *pusher) step() (next time.Time, waits bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refresh()
	now := p.board.clock.Now()
	for !p.later.empty() && !p.later.first().at.After(now) {
		s := p.later.first()
		p.later.remove(s)
		p.due.add(s)
	}
	// An old plan activates nothing; the next plan makes run step again.
	if p.board.ready(p.seen) != nil {
		return time.Time{}, false
	}
	for !p.due.empty() && !p.allowance().After(now) {
		p.grant(now)
	}
	switch {
	case !p.due.empty():
		return p.allowance(), true
	case !p.later.empty():
		return p.later.first().at, true
	}
	return time.Time{}, false
}

// settle hands out every turn that is due at the clock's present time and waits until the streams
// have taken them. Turns that the rate limit delays are not due.
func (p *pusher) settle(ctx context.Context) error {
	for {
		p.step()
		p.mu.Lock()
		idle := p.idle
		p.mu.Unlock()
		if idle == nil {
			return nil
		}
		select {
		case <-idle:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// refresh brings all streams up to the latest plan.
func (p *pusher) refresh() {
	latest := p.board.latest.Load()
	if latest == p.seen {
		return
	}
	p.seen = latest
	for s := range p.streams {
		p.evaluate(s)
	}
}

// evaluate derives one stream's state from the plan.
func (p *pusher) evaluate(s *stream) {
	decision, known := p.seen.lookup(s.id)
	if unknown := p.seen.posted && !known; unknown != s.unknown {
		s.unknown = unknown
		if unknown {
			p.unknown++
		} else {
			p.unknown--
		}
	}
	wanted := s.pushes && decision.Known && !decision.Unsupported && decision.Replicas > 0 && decision.Facts.Inactive
	if wanted == s.wanted {
		return
	}
	s.wanted = wanted
	switch {
	case s.sending:
		s.edge = wanted
	case wanted:
		s.attempts, s.at = 0, p.board.clock.Now()
		p.later.add(s)
	case s.heap != nil:
		s.heap.remove(s)
	}
}

// grant gives the first due stream its turn. It never blocks: a stream with a turn is in no heap.
func (p *pusher) grant(now time.Time) {
	s := p.due.first()
	p.due.remove(s)
	p.recent[p.granted%pushesPerSecond] = now
	p.granted++
	if p.sending == 0 {
		p.idle = make(chan struct{})
	}
	p.sending++
	s.sending = true
	s.turn <- struct{}{}
}

func (p *pusher) returned(s *stream) {
	s.sending = false
	p.sending--
	if p.sending == 0 {
		close(p.idle)
		p.idle = nil
	}
}

// allowance returns the earliest instant of the next push: any second has at most pushesPerSecond.
func (p *pusher) allowance() time.Time {
	oldest := p.recent[p.granted%pushesPerSecond]
	if oldest.IsZero() {
		return oldest
	}
	return oldest.Add(time.Second)
}

// delay returns how long to wait after the given number of pushes: 1 s, 2 s, 4 s and so on up to 30
// s, less up to a fifth. The random part depends on seed, variant and number only, never on the
// order of events.
func (p *pusher) delay(id fleet.VariantID, attempts int) time.Duration {
	delay := longestDelay
	if doublings := attempts - 1; doublings < 5 {
		delay = firstDelay << doublings
	}
	name := fnv.New64a()
	name.Write([]byte(id.String()))
	chance := rand.New(rand.NewPCG(p.seed, name.Sum64()+uint64(attempts))).Float64()
	return delay - time.Duration(jitter*chance*float64(delay))
}

// signal makes run take another step.
func (p *pusher) signal() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// pushes returns how many pushes were sent.
func (p *pusher) pushes() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sent
}
