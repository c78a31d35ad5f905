package collector

import (
	"slices"
	"time"

	"github.com/wva-project/wva/fleet"
)

// loads returns a row for each model that engines report, and one for each that gateways report.
func (t *tables) loads() []fleet.Load {
	var loads []fleet.Load
	for _, who := range t.sortedIdentities() {
		if who.pod != "" {
			continue
		}
		about := t.facts[who]
		load := fleet.Load{Namespace: who.namespace, Model: who.model, Time: t.at}
		if about.ofEngine() && t.decides(fleet.SourceEngine, who) {
			loads = append(loads, t.engineLoad(load, who, about))
		}
		if about.ofGateway() && t.decides(fleet.SourceGateway, who) {
			loads = append(loads, t.gatewayLoad(load, who, about))
		}
	}
	return loads
}

func (f *facts) ofEngine() bool  { return slices.Contains(f.known[:gatewayRate], true) }
func (f *facts) ofGateway() bool { return slices.Contains(f.known[gatewayRate:], true) }

func (t *tables) engineLoad(load fleet.Load, who identity, about *facts) fleet.Load {
	load.Source = fleet.SourceEngine
	load.PeakArrivals, load.ShortPeak = gauge(about, peakArrivals, false), t.shortPeak(who, about, shortPeak)
	load.PeakInFlight = gauge(about, peakInFlight, false)
	load.PeakCovered = t.covers(about, peakCovered)
	load.LastActive = moment(about, lastActive)
	load.IdleCovered = t.idleCovered(about, idleKnown, idleGap, lastActive)
	seconds, mix := t.options.PeakWindow.Seconds(), t.readings.lengthsOf(who, about, t.options.PeakWindow)
	load.PromptTokens, load.PromptLengths = mix.lengthsOf(lengthParts{promptRecent, promptHalf, promptLong, promptBuckets, longPromptBuckets}, seconds)
	load.OutputTokens, load.OutputLengths = mix.lengthsOf(lengthParts{outputRecent, outputHalf, outputLong, outputBuckets, longOutputBuckets}, seconds)
	if t.options.LongWindow/2 > t.options.PeakWindow { // else it is no past
		load.PastPromptTokens, load.PastOutputTokens = mean(mix, promptHalf), mean(mix, outputHalf)
	}
	load.StepTokens, load.PrefixHits = mean(mix, stepTokens), share(mix, prefixHits)
	arrivals := t.arrivals(about, sourceOfArrivals{rate: arrivalRate, count: arrivalCount, queue: arrivalQueue})
	load.Dispersion = arrivals.dispersion()
	load.PeakError = t.peakError(load.PeakArrivals, arrivals.stretch)
	load.RecentArrivals, load.RecentError = t.recent(about, arrivals, recentRate)
	load.TTFT = mean(about, modelTTFT)
	load.ITL = mean(about, modelITL)
	load.Latencies = t.ofParts(who.namespace).latencies(who)
	return load
}

func (t *tables) gatewayLoad(load fleet.Load, who identity, about *facts) fleet.Load {
	load.Source = fleet.SourceGateway
	rate, hasRate := about.value(gatewayRate)
	born, isBorn := about.value(gatewayBorn)
	load.Arrivals = counted(rate+born, hasRate || isBorn, about.has(gatewayResets))
	load.Queued = gauge(about, gatewayQueued, t.stale(about, gatewaySampled))
	load.PeakArrivals, load.ShortPeak = gauge(about, gatewayPeak, false), t.shortPeak(who, about, gatewayShortPeak)
	arrivals := t.arrivals(about, sourceOfArrivals{rate: gatewayArrivalRate, count: gatewayArrivalCount, queue: none})
	load.Dispersion = arrivals.dispersion()
	load.PeakError = t.peakError(load.PeakArrivals, arrivals.stretch)
	load.RecentArrivals, load.RecentError = t.recent(about, arrivals, gatewayRecent, gatewayLatest)
	load.PeakCovered = t.covers(about, gatewayPeakCovered)
	load.LastActive = moment(about, gatewayLastActive)
	load.Latencies = t.ofParts(who.namespace).waits(who)
	load.IdleCovered = t.idleCovered(about, gatewayIdleKnown, gatewayIdleGap, gatewayLastActive)
	return load
}

// shortPeak returns the highest rate of the short scale-down window, if the parts of the error
// budget allow one.
func (t *tables) shortPeak(who identity, about *facts, p part) fleet.Reading {
	if t.ofParts(who.namespace).options.shortScaleDown == 0 {
		return fleet.Reading{}
	}
	return gauge(about, p, false)
}

// covers reports whether there are samples at every step of the peak window, its start included.
func (t *tables) covers(about *facts, p part) bool {
	step := t.options.step(t.options.scaleDown)
	count, known := about.value(p)
	return known && int(count) >= stepsIn(t.at, t.options.scaleDown+step, step)
}

// idleCovered returns the length of the idle window that samples cover without a gap, counted back
// from the instant. An answer that contradicts itself, by a moment outside the window, covers
// nothing.
func (t *tables) idleCovered(about *facts, known, gap, active part) time.Duration {
	if observed, _ := about.value(known); observed != 1 || !t.inIdleWindow(about, gap) || !t.inIdleWindow(about, active) {
		return 0
	}
	if at, broken := about.value(gap); broken {
		step := t.options.step(t.options.IdleWindow)
		return max(0, t.at.Sub(unixTime(at).Add(step)))
	}
	return t.options.IdleWindow
}

// inIdleWindow reports whether a moment, if there is one, is within the idle window.
func (t *tables) inIdleWindow(about *facts, p part) bool {
	at, known := about.value(p)
	age := float64(t.at.UnixMilli())/1e3 - at
	return !known || age >= 0 && age <= (t.options.IdleWindow+2*t.options.step(t.options.IdleWindow)).Seconds()
}

func firstKnown(readings ...fleet.Reading) fleet.Reading {
	for _, reading := range readings {
		if reading.State != fleet.Absent {
			return reading
		}
	}
	return fleet.Reading{}
}
