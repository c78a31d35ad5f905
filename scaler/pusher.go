package scaler

import (
	"context"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/wva-project/wva/fleet"
)

// The rate of pushes to one connection. KEDA has one, acts on the first `true`, and each one costs
// it a write to the API server, of which it has 20 a second.
const (
	pushesPerSecond = 5
	firstDelay      = time.Second
	longestDelay    = 30 * time.Second
	// jitter is the random share of a delay, so that replicas of the server do not push at the same
	// time.
	jitter = 0.2
)

// pusher decides when an object is pushed to a caller as active: as soon as the decision is above
// zero while the workload is inactive, then again with growing delays for as long as it is
// inactive. One pusher serves all streams; a stream costs it a few words and no timer. Each
// connection has a rate of its own, so that no caller delays the pushes to another one. All methods
// may be called at the same time.
type pusher struct {
	board    *Board
	seed     uint64
	rejected prometheus.Counter // streams of unknown objects
	wake     chan struct{}      // capacity 1: something became due, or may have

	mu      sync.Mutex
	seen    *boardState // the state of the board that the state below comes from
	callers map[caller]*pushQueue
	unknown *quota // open streams of objects that the plan does not have
	sending int    // pushes granted, Send has not returned
	idle    chan struct{}
	sent    uint64 // pushes whose Send succeeded
}

func newPusher(board *Board, seed uint64, maxUnknown int) *pusher {
	return &pusher{
		board:    board,
		seed:     seed,
		rejected: prometheus.NewCounter(prometheus.CounterOpts{Name: "rejected"}),
		wake:     make(chan struct{}, 1),
		callers:  make(map[caller]*pushQueue),
		unknown:  newQuota(maxUnknown, twice),
	}
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
func (p *pusher) open(from caller, id fleet.VariantID, pushes bool) (*stream, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refresh()
	o := p.objectOf(from, id, pushes)
	if o.unknown && !p.unknown.enter(from.host) {
		p.forgetUnused(o)
		p.rejected.Inc()
		return nil, newError(limitExceeded, "too many streams are open for objects that are not decided yet: "+id.String()+
			" has to wait; check that wva watches their namespaces")
	}
	s := &stream{object: o, turn: make(chan struct{}, 1)}
	o.streams = append(o.streams, s)
	if o.wanted {
		o.restart(p.board.clock.Now())
		p.signal()
	}
	return s, nil
}

// objectOf returns the streams of one caller for one object, which may be none yet.
func (p *pusher) objectOf(from caller, id fleet.VariantID, pushes bool) *pushedObject {
	queue, found := p.callers[from]
	if !found {
		queue = newPushQueue(from)
		p.callers[from] = queue
	}
	key := objectKey{id: id, pushes: pushes}
	o, found := queue.objects[key]
	if !found {
		o = &pushedObject{objectKey: key, queue: queue}
		queue.objects[key] = o
		p.evaluate(o)
	}
	return o
}

// close forgets a stream.
func (p *pusher) close(s *stream) {
	p.mu.Lock()
	defer p.mu.Unlock()
	o := s.object
	o.streams = slices.DeleteFunc(o.streams, func(other *stream) bool { return other == s })
	if o.unknown {
		p.unknown.leave(o.queue.caller.host)
	}
	if s.sending {
		p.returned(s)
	}
	if o.heap != nil && !o.hasIdle() {
		o.heap.remove(o)
	}
	p.forgetUnused(o)
}

// forgetUnused removes an object without streams, and a caller without objects.
func (p *pusher) forgetUnused(o *pushedObject) {
	if len(o.streams) > 0 {
		return
	}
	delete(o.queue.objects, o.objectKey)
	if len(o.queue.objects) == 0 {
		delete(p.callers, o.queue.caller)
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
	o := s.object
	if !o.wanted {
		return
	}
	if o.heap != nil {
		return // another stream of the object has the next turn
	}
	if o.attempts > 0 { // else it became wanted again meanwhile, and is due
		o.at = p.board.clock.Now().Add(p.delay(o.id, o.attempts))
	}
	o.queue.later.add(o)
	p.signal()
}

// step hands out the turns that are due now. It returns when there will be more to do, and whether
// there will be.
func (p *pusher) step() (next time.Time, waits bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refresh()
	// An old plan activates nothing; the next plan makes run step again.
	if p.board.ready(p.seen) != nil {
		return time.Time{}, false
	}
	now := p.board.clock.Now()
	for _, queue := range p.callers {
		if at, more := queue.step(now, p.grant); more && (!waits || at.Before(next)) {
			next, waits = at, true
		}
	}
	return next, waits
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

// refresh brings all objects up to the latest plan.
func (p *pusher) refresh() {
	latest := p.board.latest.Load()
	if latest == p.seen {
		return
	}
	p.seen = latest
	for _, queue := range p.callers {
		for _, o := range queue.objects {
			p.evaluate(o)
		}
	}
}

// evaluate derives an object's state from the plan.
func (p *pusher) evaluate(o *pushedObject) {
	decision, known := p.seen.lookup(o.id)
	if unknown := p.seen.posted && !known; unknown != o.unknown {
		o.unknown = unknown
		p.unknown.move(o.queue.caller.host, len(o.streams), unknown)
	}
	wanted := o.pushes && decision.Known && !decision.Unsupported && decision.Replicas > 0 && decision.Facts.Inactive
	if wanted == o.wanted {
		return
	}
	o.wanted = wanted
	switch {
	case wanted:
		o.restart(p.board.clock.Now())
	case o.heap != nil:
		o.heap.remove(o)
	}
}

// grant gives a stream of an object its turn. It never blocks: the stream is idle.
func (p *pusher) grant(o *pushedObject, now time.Time) {
	s := o.next()
	if p.sending == 0 {
		p.idle = make(chan struct{})
	}
	p.sending++
	s.sending = true
	s.turn <- struct{}{}
	o.attempts++
	o.at = now.Add(p.delay(o.id, o.attempts))
	if o.hasIdle() {
		o.queue.later.add(o)
	}
}

func (p *pusher) returned(s *stream) {
	s.sending = false
	p.sending--
	if p.sending == 0 {
		close(p.idle)
		p.idle = nil
	}
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
