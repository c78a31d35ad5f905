package collector

import (
	"time"

	"github.com/wva-project/wva/fleet"
)

// usages returns a row for each pod and model that reports, and for each that is gone but whose
// first tokens are still in the window: those requests were demand. The row of a pod that is gone
// has nothing but FirstTokens.
func (t *tables) usages() []fleet.Usage {
	var usages []fleet.Usage
	for _, who := range t.sortedIdentities() {
		if who.pod == "" || who.model == "" {
			continue
		}
		usage := fleet.Usage{Namespace: who.namespace, Pod: who.pod, Model: who.model, Time: t.at}
		about := t.facts[who]
		if about.alive() {
			t.fill(&usage, about)
			usages = append(usages, usage)
			continue
		}
		usage.FirstTokens = firstTokens(about)
		if rate, known := usage.FirstTokens.Known(); known && rate > 0 {
			usages = append(usages, usage)
		}
	}
	return usages
}

// alive reports whether instant series of the pod answered. The others remain for the length of
// their windows.
func (f *facts) alive() bool { return f.has(running, waiting, kv, kvTokens, scrapes, growth) }

func (t *tables) fill(usage *fleet.Usage, about *facts) {
	stale := t.stale(about, sampled)
	usage.Running = gauge(about, running, stale)
	usage.Waiting = gauge(about, waiting, stale)
	usage.KV = gauge(about, kv, stale)
	usage.WaitingGrowth = gauge(about, growth, stale)
	usage.KVTokens = t.cacheSize(usage, about)
	usage.FirstTokens = firstTokens(about)
	if count, known := about.value(scrapes); known {
		usage.Scrapes = int(count)
	}
	usage.ITL = mean(about, podITL)
	usage.MeanRate, usage.MeanKV, usage.MeanITL = mean(about, meanRate), mean(about, meanKV), mean(about, meanITL)
	usage.MeanRunning, usage.MeanPrefill = mean(about, meanRunning), mean(about, meanPrefill)
	usage.Progress = t.progress(about, stale)
	usage.ITLFloor, usage.PeakRate, usage.PeakThroughput = mean(about, itlFloor), mean(about, peakRate), mean(about, throughput)
}

// progress returns the growth of the counters of progress per second; absent if the pod has none,
// if it was not observed at both ends of the window, or if it was restarted between them.
func (t *tables) progress(about *facts, stale bool) fleet.Reading {
	grown, known := about.value(progressed)
	if !known || stale || grown < 0 || !about.has(observedAgo) {
		return fleet.Reading{}
	}
	return fleet.Observed(grown / t.options.scaleDown.Seconds())
}

// cacheSize returns the pod's KV cache size. A size does not age with its sample.
func (t *tables) cacheSize(usage *fleet.Usage, about *facts) fleet.Reading {
	if tokens, known := about.value(kvTokens); known {
		return fleet.Observed(tokens)
	}
	if ofPod := t.facts[identity{namespace: usage.Namespace, pod: usage.Pod}]; ofPod != nil {
		return gauge(ofPod, kvBlocks, false)
	}
	return fleet.Reading{}
}

// stale reports whether the samples of the gauges are too old to act on. Their age is of the same
// query.
func (t *tables) stale(about *facts, when part) bool {
	at, known := about.value(when)
	return known && t.at.Sub(unixTime(at)) > t.options.StaleAfter
}

// firstTokens returns the rate at which requests got their first token. An older pod that is alive
// needs four scrapes.
func firstTokens(about *facts) fleet.Reading {
	born, isBorn := about.value(firstBorn)
	rate, hasRate := about.value(firstRate)
	if count, alive := about.value(scrapes); alive && count < minScrapes && !isBorn {
		return fleet.Reading{}
	}
	return counted(rate+born, hasRate || isBorn, about.has(resets))
}

// counted returns the reading of a rate of a counter.
func counted(rate float64, known, reset bool) fleet.Reading {
	reading := fleet.Reading{}
	if known {
		reading = fleet.Observed(rate)
	}
	if reset && reading.State == fleet.Present {
		reading.State = fleet.Reset
	}
	return reading
}

// gauge returns the reading of a gauge.
func gauge(about *facts, p part, stale bool) fleet.Reading {
	value, known := about.value(p)
	switch {
	case !known:
		return fleet.Reading{}
	case stale:
		return fleet.Reading{State: fleet.Stale}
	default:
		return fleet.Observed(value)
	}
}

// mean returns the reading of a quotient: one that is not a number had nothing to divide by, and is
// absent.
func mean(about *facts, p part) fleet.Reading {
	if reading := gauge(about, p, false); reading.State == fleet.Present {
		return reading
	}
	return fleet.Reading{}
}

// moment returns the time of a part; zero if it is not known.
func moment(about *facts, p part) time.Time {
	if at, known := about.value(p); known {
		return unixTime(at)
	}
	return time.Time{}
}
