package scaler

import "time"

// triggerQueue is the reason of a trigger by requests that wait for a model that is scaled to zero.
const triggerQueue = "queue"

const (
	// triggersPerInterval is how many cycles changes can add to each one of a short interval.
	triggersPerInterval = 3
	// maxDistance is the most that changes wait for each other, also if the interval is long.
	maxDistance = 5 * time.Second
	// queueDistance is the least time between two cycles for queues. Changes do not delay them: a
	// request waits.
	queueDistance = time.Second
)

// triggers are the requests for cycles outside the interval. Whatever their number, cycles keep a
// distance: a cycle costs as much for one change as for thousands.
type triggers struct {
	changed chan string // capacity 1: the reason of the first change of a burst
	queued  chan string // capacity 1: a queue does not wait behind changes

	// The rest is the loop's.
	first           trigger   // the first that is due; no reason: none is
	ended, endedFor time.Time // end of the last triggered cycle, and of the last one for queues
}

// trigger is a request for a cycle, and when it is due.
type trigger struct {
	reason string
	due    time.Time
}

func newTriggers() triggers {
	return triggers{changed: make(chan string, 1), queued: make(chan string, 1)}
}

// put adds a request. It never blocks.
func (t *triggers) put(reason string) {
	into := t.changed
	if reason == triggerQueue {
		into = t.queued
	}
	select {
	case into <- reason:
	default:
	}
}

// note sets when the cycle of a request is due, unless another one is due before. It waits for the
// rest of a burst, since one change often fires several watches.
func (t *triggers) note(reason string, now time.Time, gather, interval time.Duration) {
	distance, ended := min(interval/triggersPerInterval, maxDistance), t.ended
	if reason == triggerQueue {
		distance, ended = min(distance, queueDistance), t.endedFor
	}
	due := now.Add(gather)
	// A distance above the longest possible one follows from a clock that was set back.
	if wait := ended.Add(distance).Sub(now); !ended.IsZero() && wait > gather && wait <= distance {
		due = now.Add(wait)
	}
	if t.first.reason == "" || due.Before(t.first.due) {
		t.first = trigger{reason, due}
	}
}

// begin removes the requests: the cycle that begins now sees their causes.
func (t *triggers) begin() {
	t.first = trigger{}
	for _, requests := range []chan string{t.changed, t.queued} {
		select {
		case <-requests:
		default:
		}
	}
}

// end notes the end of a cycle.
func (t *triggers) end(cause string, now time.Time) {
	switch cause {
	case "start", "interval", "retry":
		return
	case triggerQueue:
		t.endedFor = now
	}
	t.ended = now
}
