package collector

import (
	"time"

	"github.com/wva-project/wva/fleet"
)

// usages returns a row for each pod and model that reports, and for each that reported lately:
// first tokens in the window were demand. The row of a pod that reports no more has nothing but
// FirstTokens.
func (t *tables) usages() []fleet.Usage {
	identities := t.sortedIdentities()
	usages := make([]fleet.Usage, 0, len(identities))
	for _, who := range identities {
		if who.pod == "" || who.model == "" || !t.decides(fleet.SourceEngine, who) {
			continue
		}
		usage := fleet.Usage{Namespace: who.namespace, Pod: who.pod, Model: who.model, Time: t.at}
		about := t.facts[who]
		if about.alive() {
			t.fill(&usage, who, about)
			usages = append(usages, usage)
			continue
		}
		usage.FirstTokens = t.firstTokens(who, about)
		if rate, known := usage.FirstTokens.Known(); known && rate > 0 || about.has(reported) {
			usages = append(usages, usage)
		}
	}
	return usages
}

// alive reports whether instant series of the pod answered. The others remain for the length of
// their windows.
func (f *facts) alive() bool {
	return f.has(running, waiting, kv, kvTokens, scrapes, growth, growthFound)
}

func (t *tables) fill(usage *fleet.Usage, who identity, about *facts) {
	stale := t.stale(about, sampled)
	usage.Running = gauge(about, running, stale)
	usage.Waiting = gauge(about, waiting, stale)
	usage.KV = gauge(about, kv, stale)
	usage.WaitingGrowth = gauge(about, growth, stale)
	if t.isYoung(who) && !about.has(growth) {
		usage.WaitingGrowth = gauge(about, growthFound, stale)
	}
	usage.LeastWaiting = gauge(about, leastQueue, stale)
	usage.KVTokens = t.cacheSize(usage, about)
	usage.Asleep = about.has(asleep)
	usage.FirstTokens = t.firstTokens(who, about)
	if count, known := about.value(scrapes); known {
		usage.Scrapes = int(count)
	}
	usage.Missed, usage.ScrapedTwice = !about.has(sampled), about.has(twice)
	usage.ITL = mean(about, podITL)
	usage.MeanRate, usage.MeanKV, usage.MeanITL = mean(about, meanRate), mean(about, meanKV), mean(about, meanITL)
	usage.MeanRunning, usage.MeanPrefill = mean(about, meanRunning), mean(about, meanPrefill)
	ofModel := t.facts[identity{namespace: who.namespace, model: who.model}]
	usage.Calibration = t.readings.meansOf(who, usage.Calibrating(), ofModel, t.options.PeakWindow)
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

// firstTokens returns the rate at which requests got their first token. The counter of a pod that
// was created within the window counts whole: rate() would lose its first value. An older pod that
// is alive needs three scrapes. If some of its scrapes failed, its rate may be of a part of the
// window only, and is at least the mean of the peak window.
func (t *tables) firstTokens(who identity, about *facts) fleet.Reading {
	if found, isNew := about.value(firstFound); isNew && (about.has(firstBorn) || t.isYoung(who)) {
		return counted(found, true, about.has(resets))
	}
	count, alive := about.value(scrapes)
	if alive && count < minScrapes {
		return fleet.Reading{}
	}
	rate, known := about.value(firstRate)
	if alive && known && int(count) < t.scrapes.expected(who.namespace, who.model) {
		rate = max(rate, mean(about, meanRate).Or(0))
	}
	return counted(rate, known, about.has(resets))
}

// isYoung reports whether the pod began to serve within the window, or at most a missed scrape
// before it.
func (t *tables) isYoung(who identity) bool {
	began, known := t.began[Pod{who.namespace, who.pod}]
	return known && t.at.Sub(began) < t.options.Window+t.options.gap()
}

// decides reports whether the tables have the window of a model at a source: the readings of other
// models are taken from the tables with their window.
func (t *tables) decides(source fleet.LoadSource, who identity) bool {
	return t.scrapes.options.Window == 0 || t.scrapes.window(scraped{source, who.namespace, who.model}) == t.options.Window
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
