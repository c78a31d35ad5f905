package evaluation

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/simulation"
)

func TestSaturationRuleStepsByOne(t *testing.T) {
	for name, test := range map[string]struct {
		loads []sample
		want  int
	}{
		"no replica is observed":                 {nil, 0},
		"spare KV cache of 0.10, as the trigger": {[]sample{{0.70, 0}}, 0},
		"spare KV cache below 0.10":              {[]sample{{0.71, 0}}, +1},
		"spare queue of 2.5, below 3":            {[]sample{{0.10, 2}, {0.10, 3}}, +1},
		"all are saturated by KV cache":          {[]sample{{0.80, 0}, {0.95, 0}}, +1},
		"all are saturated by queue":             {[]sample{{0.10, 5}}, +1},
		"saturated ones do not count":            {[]sample{{0.99, 50}, {0.60, 1}}, 0},
		"one alone stays":                        {[]sample{{0.01, 0}}, 0},
		"two at 0.35 would be one at 0.70":       {[]sample{{0.35, 0}, {0.35, 0}}, -1},
		"two at 0.36 would be one at 0.72":       {[]sample{{0.36, 0}, {0.36, 0}}, 0},
		"queues of two would be too long":        {[]sample{{0.10, 1}, {0.10, 2}}, 0},
	} {
		l := &llmdController{kv: llmdKV}
		require.Equal(t, test.want, l.step(test.loads), name)
	}
}

func TestSaturationRuleAddsTheCheapestAndRemovesTheMostExpensive(t *testing.T) {
	c := plain(t, "chat", "constant:rate=1,minutes=10", SetupOptions{})
	p := llmd()
	choice := p.Choices(c.Setup)[2]
	require.Equal(t, "all", choice.Name)
	cheap := byPrice(c.Setup, choice)[0].ID
	dear := byPrice(c.Setup, choice)[1].ID
	f, err := newFleet(c, p, Setting{Choice: choice})
	require.NoError(t, err)
	l := &llmdController{kv: llmdKV, variants: byPrice(c.Setup, choice)}

	l.samples = map[string][]sample{"a": {{0.9, 0}, {0.1, 0}}} // the highest of a minute
	require.NoError(t, l.decide(f))
	require.Equal(t, 2, stateOf(f, cheap).Replicas)
	require.NoError(t, l.decide(f))
	require.Equal(t, 2, stateOf(f, cheap).Replicas, "one is starting")

	require.NoError(t, f.Scale(dear, 1))
	f.Advance(10 * time.Minute.Seconds())
	l.samples = map[string][]sample{"a": {{0.1, 0}}, "b": {{0.1, 0}}, "c": {{0.1, 0}}}
	require.NoError(t, l.decide(f))
	require.Equal(t, []int{2, 0}, []int{stateOf(f, cheap).Replicas, stateOf(f, dear).Replicas})
}

func TestSaturationRuleDecidesOnceAMinute(t *testing.T) {
	c := plain(t, "chat-h100", "constant:rate=60,minutes=6", SetupOptions{})
	choice := eachVariant(c.Setup)[0]
	o, err := Run(t.Context(), c, llmd(), Setting{Knob: 0.02, Choice: choice})
	require.NoError(t, err)
	for i, change := range o.Replicas[1:] {
		// one step in a decision at most, 7 s after a scrape
		require.Equal(t, i+2, change.Replicas)
		require.GreaterOrEqual(t, change.Seconds, float64(52+60*i))
		require.InDelta(t, 52, int(change.Seconds)%60, 0.1)
	}
	require.Greater(t, len(o.Replicas), 3)
	require.InDelta(t, simulation.ScrapeInterval*llmdScrapes, llmdInterval, 0)
}

// plain returns the case of an embedded fleet and a load.
func plain(t *testing.T, fleet, load string, o SetupOptions) Case {
	t.Helper()
	objects, err := EmbeddedFleet(fleet)
	require.NoError(t, err)
	setup, err := NewSetup(fleet, objects, o)
	require.NoError(t, err)
	l, err := ParseLoad(load)
	require.NoError(t, err)
	c, err := NewCase(l, setup, 1)
	require.NoError(t, err)
	return c
}
