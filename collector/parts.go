package collector

import (
	"slices"

	"github.com/prometheus/common/model"
)

// partLabel tags the parts of one query's answer. The inner expressions keep only the labels of
// identities.
const partLabel = "wva_part"

// part is one column of the answers.
type part uint8

// The parts: those of pods first, then those of models as engines report them, then as gateways do.
const (
	running part = iota
	waiting
	kv
	sampled     // when the oldest of the gauges was scraped, Unix time
	kvBlocks    // KV cache size in tokens, from blocks
	kvTokens    // KV cache size in tokens, as a value
	firstRate   // of first tokens
	firstFound  // the same of pods without a counter before the window, of its whole value
	firstBorn   // known for those of them whose counter was created within the window
	resets      // counter resets within the window
	scrapes     // samples within the window, of pods that are alive
	growth      // of the waiting requests, per second
	growthFound // the same of pods that reported none at the start of the window: all of them
	leastQueue  // the shortest queue of the window
	podITL      // seconds
	meanRate    // of first tokens, over the peak window
	meanKV      // and the use of the KV cache
	meanITL     // and the time between tokens, seconds
	meanRunning
	meanPrefill // seconds
	longKV      // over half the long window, as the histograms with older lengths
	longRunning
	itlFloor    // the least that podITL was
	peakRate    // the highest rate of first tokens
	throughput  // the highest while the queue was never short
	progressed  // growth of the counters of progress; below zero after a restart
	observedAgo // 1 if the pod had gauges at the start of that window
	twice       // 1 for a pod of which several jobs scrape one address
	reported    // 1 if the pod had gauges at any time of the last silentAfter
	asleep      // 1 for a pod with an engine that sleeps
	copied      // 1 for a pod whose series are copies of those of engines

	peakArrivals
	shortPeak // peakArrivals of the short scale-down window
	peakInFlight
	recentRate  // of first tokens, over the recent window
	peakCovered // steps of the peak window that samples cover
	idleKnown   // 1 if the idle window has a sample at all
	idleGap     // the latest step of the idle window without samples, Unix time
	lastActive  // the latest step of the idle window with any use, Unix time
	promptRecent
	promptHalf // of the long window, as the histograms with older lengths
	promptLong
	outputRecent
	outputHalf
	outputLong
	stepTokens // output tokens of a request for each measured time between tokens
	prefixHits // share of tokens
	modelTTFT
	modelITL

	promptBuckets // cumulative; each bound is a row of its own
	outputBuckets
	longPromptBuckets // of the long window
	longOutputBuckets
	arrivalRate  // over the latest scrape, as a stream
	arrivalCount // in it
	arrivalQueue // by how much the queues grew in it

	partRequests   // with a first token in a part of the error budget, as a stream
	partReplicas   // that reported at its end
	partStarted    // of those that reported, those that had not before
	partScrapes    // samples of the replica with the fewest
	partTTFT       // cumulative; each bound is a stream of its own
	partRequestITL // of means of requests
	partITL        // of tokens

	engineIntervals // the usual distance of two scrapes, seconds
	newestSample    // of all namespaces; about no model

	gatewayRate
	gatewayBorn
	gatewayResets
	gatewayQueued
	gatewaySampled
	gatewayPeak
	gatewayShortPeak
	gatewayRecent
	gatewayLatest // over half of the recent window
	gatewayPeakCovered
	gatewayIdleKnown
	gatewayIdleGap
	gatewayLastActive
	gatewayArrivalRate
	gatewayArrivalCount
	partWait
	gatewayIntervals

	partCount
)

var partNames = [partCount]string{
	running: "running", waiting: "waiting", kv: "kv", sampled: "sampled", kvBlocks: "kv_blocks", kvTokens: "kv_tokens",
	firstRate: "first_rate", firstFound: "first_found", firstBorn: "first_born", resets: "resets", scrapes: "scrapes",
	growth: "growth", growthFound: "growth_found", leastQueue: "least_queue",
	podITL: "pod_itl", meanRate: "mean_rate", meanKV: "mean_kv", meanITL: "mean_itl",
	meanRunning: "mean_running", meanPrefill: "mean_prefill", longKV: "long_kv", longRunning: "long_running",
	itlFloor: "itl_floor", peakRate: "peak_rate", throughput: "throughput",
	progressed: "progressed", observedAgo: "observed_ago", reported: "reported", twice: "twice", asleep: "asleep", copied: "copied",
	peakArrivals: "peak_arrivals", shortPeak: "short_peak", peakInFlight: "peak_in_flight", recentRate: "recent_rate", peakCovered: "peak_covered",
	idleKnown: "idle_known", idleGap: "idle_gap", lastActive: "last_active",
	promptRecent: "prompt_recent", promptHalf: "prompt_half", promptLong: "prompt_long",
	outputRecent: "output_recent", outputHalf: "output_half", outputLong: "output_long",
	stepTokens: "step_tokens",
	prefixHits: "prefix_hits", modelTTFT: "model_ttft", modelITL: "model_itl",
	promptBuckets: "prompt_buckets", outputBuckets: "output_buckets",
	longPromptBuckets: "long_prompt_buckets", longOutputBuckets: "long_output_buckets",
	arrivalRate: "arrival_rate", arrivalCount: "arrival_count", arrivalQueue: "arrival_queue",
	partRequests: "part_requests", partReplicas: "part_replicas", partStarted: "part_started", partScrapes: "part_scrapes",
	partTTFT: "part_ttft", partRequestITL: "part_request_itl", partITL: "part_itl", partWait: "part_wait",
	engineIntervals: "engine_intervals", gatewayIntervals: "gateway_intervals", newestSample: "newest_sample",
	gatewayRate: "gateway_rate", gatewayBorn: "gateway_born", gatewayResets: "gateway_resets",
	gatewayQueued: "gateway_queued", gatewaySampled: "gateway_sampled", gatewayPeak: "gateway_peak", gatewayShortPeak: "gateway_short_peak", gatewayRecent: "gateway_recent", gatewayLatest: "gateway_latest",
	gatewayPeakCovered: "gateway_peak_covered", gatewayIdleKnown: "gateway_idle_known", gatewayIdleGap: "gateway_idle_gap",
	gatewayLastActive: "gateway_last_active", gatewayArrivalRate: "gateway_arrival_rate", gatewayArrivalCount: "gateway_arrival_count",
}

// ofModel reports whether the part names a model.
func (p part) ofModel() bool { return p != kvBlocks && p != copied && p != newestSample }

// ofPod reports whether the part is one of pods.
func (p part) ofPod() bool { return p <= copied }

// ofGateway reports whether the part is one of gateways.
func (p part) ofGateway() bool { return p >= gatewayRate }

// ofScrapes reports whether the part is one of the query for scrape intervals.
func (p part) ofScrapes() bool {
	return p == engineIntervals || p == gatewayIntervals || p == newestSample
}

// ofHistogram reports whether the part is the buckets of a histogram.
func (p part) ofHistogram() bool { return p >= promptBuckets && p <= longOutputBuckets }

// ofLatencies reports whether the part is the buckets of a histogram at several instants.
func (p part) ofLatencies() bool { return p >= partTTFT && p <= partITL || p == partWait }

// partNamed has the part of each name.
var partNamed = func() map[string]part {
	named := make(map[string]part, partCount)
	for p, name := range partNames {
		named[name] = part(p)
	}
	return named
}()

// facts are the answers about one pod or model.
type facts struct {
	values []float64 // those of a pod end with copied
	known  []bool
	// buckets and streams are of models; they make no part known.
	buckets       map[part][]bucket
	streams       map[part][]model.SamplePair
	bucketStreams map[part][]bucketStream
}

func newFacts(who identity) *facts {
	count := partCount
	if who.pod != "" {
		count = copied + 1
	}
	return &facts{values: make([]float64, count), known: make([]bool, count)}
}

// add adds the value: of the parts only kvBlocks comes in several rows.
func (f *facts) add(p part, value float64) {
	f.values[p] += value
	f.known[p] = true
}

func (f *facts) value(p part) (float64, bool) { return f.values[p], f.known[p] }

func (f *facts) has(parts ...part) bool {
	return slices.ContainsFunc(parts, func(p part) bool { return f.known[p] })
}
