package scaler

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"github.com/wva-project/wva/fleet"
)

// pushQueue holds the objects of one caller's streams, and those of them that wait for a push.
type pushQueue struct {
	caller  caller
	objects map[objectKey]*pushedObject
	later   objectHeap // wanted, and not due yet
	due     objectHeap // wanted and due, waiting for the rate limit
	rate    *rate.Limiter
}

// objectKey tells the streams of an object that are pushed to from those that are only counted.
type objectKey struct {
	id     fleet.VariantID
	pushes bool
}

// pushedObject is an object for which a caller has streams open. Each push goes to one of them:
// KEDA would pay for a second one, and has a second stream only while it replaces the first.
type pushedObject struct {
	objectKey

	queue    *pushQueue
	streams  []*stream // in the order of opening
	unknown  bool      // the plan does not have it
	wanted   bool
	attempts int         // pushes since it became wanted, or a stream was opened
	at       time.Time   // when the next push is due
	heap     *objectHeap // in which it waits; nil if it does not
	position int
}

// stream is one open stream. Its handler waits for turns; everything else belongs to the pusher.
type stream struct {
	object  *pushedObject
	turn    chan struct{} // capacity 1: send one `true`
	sending bool
}

func newPushQueue(from caller) *pushQueue {
	return &pushQueue{
		caller:  from,
		objects: make(map[objectKey]*pushedObject),
		later:   objectHeap{compare: compareDue},
		// a new edge goes before repeats
		due:  objectHeap{compare: func(a, b *pushedObject) int { return cmp.Or(cmp.Compare(a.attempts, b.attempts), compareDue(a, b)) }},
		rate: rate.NewLimiter(pushesPerSecond, pushesPerSecond),
	}
}

func compareDue(a, b *pushedObject) int { return cmp.Or(a.at.Compare(b.at), a.id.Compare(b.id)) }

// step grants the pushes that are due and that the rate allows. It returns when there will be more
// to do, and whether there will be.
func (q *pushQueue) step(now time.Time, grant func(*pushedObject, time.Time)) (next time.Time, waits bool) {
	for !q.later.empty() && !q.later.first().at.After(now) {
		o := q.later.first()
		q.later.remove(o)
		q.due.add(o)
	}
	for !q.due.empty() && q.rate.AllowN(now, 1) {
		o := q.due.first()
		q.due.remove(o)
		grant(o, now)
	}
	switch {
	case !q.due.empty():
		return now.Add(q.wait(now)), true
	case !q.later.empty():
		return q.later.first().at, true
	}
	return time.Time{}, false
}

// wait returns the time until the rate allows the next push, above zero.
func (q *pushQueue) wait(now time.Time) time.Duration {
	reserved := q.rate.ReserveN(now, 1)
	defer reserved.CancelAt(now)
	return max(time.Microsecond, reserved.DelayFrom(now))
}

// restart makes the next push due, to the stream that was opened last.
func (o *pushedObject) restart(now time.Time) {
	if o.heap != nil {
		o.heap.remove(o)
	}
	o.attempts, o.at = 0, now
	if o.hasIdle() {
		o.queue.later.add(o)
	}
}

func (o *pushedObject) hasIdle() bool { return slices.ContainsFunc(o.streams, isIdle) }

func isIdle(s *stream) bool { return !s.sending }

// next returns the stream of the next push, which must be idle: the latest one first, since older
// ones may be dead, then the others in turn.
func (o *pushedObject) next() *stream {
	for i := range o.streams {
		s := o.streams[len(o.streams)-1-(o.attempts+i)%len(o.streams)]
		if isIdle(s) {
			return s
		}
	}
	panic("no stream of the object is idle")
}

// objectHeap is a priority queue of objects. An object is in at most one.
type objectHeap struct {
	objects []*pushedObject
	compare func(a, b *pushedObject) int
}

func (h *objectHeap) first() *pushedObject { return h.objects[0] }

func (h *objectHeap) add(o *pushedObject) {
	o.heap = h
	heap.Push((*heapOrder)(h), o)
}

func (h *objectHeap) remove(o *pushedObject) {
	heap.Remove((*heapOrder)(h), o.position)
	o.heap = nil
}

func (h *objectHeap) empty() bool { return len(h.objects) == 0 }

// heapOrder is an objectHeap in the form that container/heap needs.
type heapOrder objectHeap

func (o *heapOrder) Len() int           { return len(o.objects) }
func (o *heapOrder) Less(i, j int) bool { return o.compare(o.objects[i], o.objects[j]) < 0 }

func (o *heapOrder) Swap(i, j int) {
	o.objects[i], o.objects[j] = o.objects[j], o.objects[i]
	o.objects[i].position, o.objects[j].position = i, j
}

func (o *heapOrder) Push(x any) {
	added := x.(*pushedObject)
	added.position = len(o.objects)
	o.objects = append(o.objects, added)
}

func (o *heapOrder) Pop() any {
	last := len(o.objects) - 1
	removed := o.objects[last]
	o.objects[last] = nil
	o.objects = o.objects[:last]
	return removed
}
