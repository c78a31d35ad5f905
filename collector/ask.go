package collector

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"

	"github.com/wva-project/wva/fleet"
)

// answer is the answer to one query. It is never changed once it is made.
type answer struct {
	at   time.Time // the instant of the query
	sent time.Time // by the clock of the caller
	rows
	warnings []string
	err      error // nil if there is an answer
}

// asked is a query with its latest answer.
type asked struct {
	hides fleet.LoadSource // the source of loads that is incomplete if it fails
	query
	answer answer
	tried  time.Time // when the query was last sent, by the clock of the caller; zero: never
	// settle is how long ago the instant of the query is at least, so that every scrape before it
	// has arrived.
	settle time.Duration
	// complete is the latest answer without a failure or a warning.
	complete answer
	// before are the complete answers about earlier instants, of a query by turns, and triedBefore
	// when it was last sent for one that has none.
	before      []answer
	triedBefore map[time.Time]time.Time
}

// at returns the instant of the query in a cycle.
func (a *asked) at(instant time.Time) time.Time { return floorTime(instant.Add(-a.settle), a.step) }

// keep remembers an answer if it is complete.
func (a *asked) keep(latest answer) {
	if latest.isComplete() {
		a.complete = latest
	}
}

// isComplete reports whether all data were read.
func (a answer) isComplete() bool {
	partial := slices.ContainsFunc(a.warnings, func(warning string) bool { return !isAnnotation(warning) })
	return a.err == nil && !partial && !a.at.IsZero()
}

// reusable reports whether the answer is valid for a query about the instant: it is about that
// instant, and is either a good one or a failure that is too recent to be tried again.
func (a *asked) reusable(at, now time.Time, retryAfter time.Duration) bool {
	if a.tried.IsZero() || !a.answer.at.Equal(at) {
		return false
	}
	return a.answer.err == nil || (now.Sub(a.tried) < retryAfter && !now.Before(a.tried))
}

// answerOf is the answer to a query with its name and the source that it hides if it failed.
type answerOf struct {
	query string
	hides fleet.LoadSource
	answer
	complete answer // the latest complete one, this or an older
	// turns are the complete answers about the instants of turns, and step is that of the query
	turns []answer
	step  time.Duration
}

// answers returns an answer to each query of a batch with the options. It sends those whose answer
// cannot be used again, side by side.
func (c *Collector) answers(ctx context.Context, now time.Time, o Options, b batch) []answerOf {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return c.unanswered(now, b.queries(o), ctx.Err())
	}
	begun, queries := time.Now(), c.rewrite(b, o)
	answers := make([]answerOf, len(queries))
	var sending sync.WaitGroup
	for i, q := range queries {
		at := q.at(c.instant(now))
		if q.reusable(at, now, c.options.RetryAfter) {
			answers[i] = q.answerOf(q.answer)
			continue
		}
		sending.Go(func() {
			a := c.ask(ctx, q.query, at, o.Timeout)
			a.sent = now
			q.keep(a)
			answers[i] = q.answerOf(a)
			// a caller that gave up says nothing about Prometheus
			if ctx.Err() == nil || a.err == nil {
				q.keepBefore(o.turns(), c.instant(now))
				q.answer, q.tried = a, now
			}
		})
	}
	sending.Wait()
	if !slices.ContainsFunc(answers, func(a answerOf) bool { return a.err != nil }) {
		limited, cancel := context.WithDeadline(ctx, begun.Add(o.Timeout/beforePart))
		defer cancel()
		c.askBefore(limited, queries, now, o)
	}
	for i, q := range queries {
		answers[i].turns = q.ofTurns()
	}
	return answers
}

// beforePart is the part of the time-out of a query after which none is sent about the instants of
// turns before.
const beforePart = 2

func (a *asked) answerOf(latest answer) answerOf {
	return answerOf{query: a.name, hides: a.hides, answer: latest, complete: a.complete, step: a.step}
}

// unanswered returns the error as the answer to each query.
func (c *Collector) unanswered(now time.Time, queries []*asked, err error) []answerOf {
	var answers []answerOf
	for _, q := range queries {
		answers = append(answers, answerOf{query: q.name, hides: q.hides, answer: answer{at: q.at(c.instant(now)), err: err}})
	}
	return answers
}

// ask sends one query.
func (c *Collector) ask(ctx context.Context, q query, at time.Time, timeout time.Duration) answer {
	asking, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	begun := time.Now()
	reader := newRowReader(c.options)
	api := v1.NewAPI(rowsClient{c.client, c.sender, reader})
	value, warnings, _, err := api.Query(asking, q.text, at, v1.WithTimeout(wholeUnits(timeout)))
	switch {
	case errors.Is(asking.Err(), context.DeadlineExceeded) && ctx.Err() == nil && err != nil:
		err = fmt.Errorf("%s sent no answer within %s; raise prometheus.queryTimeout, or give Prometheus more CPU", c.address, timeout)
	case err != nil:
		err = c.withRemedy(err)
	case value == nil || value.Type() != q.answer:
		err = fmt.Errorf("%s: the answer is not a %s; check that the address is that of Prometheus' HTTP API", c.address, q.answer)
	}
	c.metrics.observe(q.name, time.Since(begun), err)
	if err != nil {
		c.options.Logger.Debug("query failed", "query", q.name, "at", at, "error", err)
	}
	a := answer{at: at, warnings: warnings, err: err}
	if err == nil {
		a.rows = reader.rows
	}
	return a
}

// wholeUnits rounds a timeout up to a duration that Prometheus can parse: "1.5s" is none, "2s" is.
// The exact deadline is the context's.
func wholeUnits(timeout time.Duration) time.Duration {
	unit := time.Millisecond
	if timeout >= time.Second {
		unit = time.Second
	}
	return (timeout + unit - 1) / unit * unit
}
