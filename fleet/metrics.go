package fleet

import "time"

// Means are readings of a pod over the peak window that calibrate profiles. Units are those of the
// means of a Usage.
type Means struct {
	Rate    Reading `json:"rate"`
	KV      Reading `json:"kv"`
	ITL     Reading `json:"itl"`
	Running Reading `json:"running"`
	Prefill Reading `json:"prefill"`
	// LongKV and LongRunning are KV and Running over half the long window; absent if unknown.
	LongKV      Reading `json:"longKV,omitzero"`
	LongRunning Reading `json:"longRunning,omitzero"`
}

// Calibrating returns the means that calibrate profiles.
func (u *Usage) Calibrating() Means {
	if u.Calibration != (Means{}) {
		return u.Calibration
	}
	return Means{Rate: u.MeanRate, KV: u.MeanKV, ITL: u.MeanITL, Running: u.MeanRunning, Prefill: u.MeanPrefill}
}

// Usage is the report of one pod's engine. Several engines in one pod are one row: counts are added
// up, KV is the largest.
type Usage struct {
	Namespace string    `json:"namespace"`
	Pod       string    `json:"pod"`
	Model     string    `json:"model"` // the served name
	Time      time.Time `json:"time"`  // the instant of the query

	Running Reading `json:"running"` // requests in the batch
	Waiting Reading `json:"waiting"` // requests that wait for capacity in the engine's queue
	KV      Reading `json:"kv"`      // share of the KV cache in use, 0 to 1
	// KVTokens is the KV cache size in tokens, over all engines of the pod.
	KVTokens Reading `json:"kvTokens"`
	// Asleep is true if an engine of the pod is in sleep mode: the pod is ready and serves nothing.
	Asleep bool `json:"asleep,omitzero"`
	// FirstTokens is the rate at which requests got their first token over the latest window, per
	// second. It counts all requests of a pod that began to serve within the window; Reset if its
	// engine restarted within it; absent if fewer than three scrapes of an older pod fall into the
	// window (Scrapes says how many).
	FirstTokens Reading `json:"firstTokens"`
	// Scrapes is how many samples the latest window holds.
	Scrapes int `json:"scrapes,omitzero"`
	// WaitingGrowth is by how much the engine's queue grew over the latest window, requests per
	// second; may be negative.
	WaitingGrowth Reading `json:"waitingGrowth"`
	// LeastWaiting is the shortest queue of the engine in the latest window, in requests.
	LeastWaiting Reading `json:"leastWaiting,omitzero"`
	// ITL is the mean time between output tokens over the latest window, seconds.
	ITL Reading `json:"itl"`
	// MeanRate, MeanKV and MeanITL are first tokens per second, share of the KV cache in use and
	// seconds between output tokens on average over the peak window, or the pod's life if that is
	// shorter: capacity changes slowly, and one minute of it is noisy. MeanRate is that of whole
	// windows: absent if the pod is younger than one.
	MeanRate Reading `json:"meanRate"`
	MeanKV   Reading `json:"meanKV"`
	MeanITL  Reading `json:"meanITL"`
	// MeanRunning is the mean number of requests in the batch over the same window. MeanPrefill is
	// the mean time from a request's entry into the batch to its first token, seconds: its prefill,
	// without the wait before.
	MeanRunning Reading `json:"meanRunning"`
	MeanPrefill Reading `json:"meanPrefill"`
	// Calibration has the same means as they were at the latest turn of the model, at which the
	// lengths of its requests are read, or the latest if they have changed by more than chance.
	// Zero: the latest means count.
	Calibration Means `json:"calibration,omitzero"`
	// ITLFloor is the lowest mean time between output tokens of the pod in any window of the long
	// window, seconds: that of a nearly empty batch.
	ITLFloor Reading `json:"itlFloor"`
	// PeakRate is the pod's highest rate of first tokens in any window of the long window, per
	// second.
	PeakRate Reading `json:"peakRate"`
	// PeakThroughput is the same over those windows in which its queue was never short: it was busy
	// all the time. Absent if there was no such window.
	PeakThroughput Reading `json:"peakThroughput"`
	// Progress is by how much the prompt tokens, generated tokens and finished requests of the pod
	// together grew over the peak window, per second: zero if it did nothing. Absent if unknown or
	// if its samples do not cover the window.
	Progress Reading `json:"progress,omitzero"`
	// Missed is true if the latest scrape of the pod failed, or the pod is gone since: the gauges
	// are those of the scrape before.
	Missed bool `json:"missed,omitzero"`
	// ScrapedTwice is true if several jobs of Prometheus scrape the pod. It counts once.
	ScrapedTwice bool `json:"scrapedTwice,omitzero"`
}

// LoadSource says who reported a load.
type LoadSource string

// The sources of loads.
const (
	SourceEngine  LoadSource = "engine"
	SourceGateway LoadSource = "gateway"
)

// Load is the demand of one model in one namespace, as one source reports it. Of two rows of the
// same source for the same model the one with the later Time counts, reading by reading.
type Load struct {
	Namespace string     `json:"namespace"`
	Model     string     `json:"model"` // the served name
	Source    LoadSource `json:"source"`
	Time      time.Time  `json:"time"` // the instant of the query

	// Arrivals is the rate of requests over the latest window, per second. Engines report none:
	// theirs is the sum over the usages of their pods.
	Arrivals Reading `json:"arrivals"`
	// Queued is how many requests the source holds back now (gateway).
	Queued Reading `json:"queued"`
	// PeakArrivals and PeakInFlight are the highest of the peak window (rate per second; running
	// and waiting requests).
	PeakArrivals Reading `json:"peakArrivals"`
	PeakInFlight Reading `json:"peakInFlight"`
	// ShortPeak is the highest rate of the short scale-down window, per second. Absent: not known,
	// and PeakArrivals counts.
	ShortPeak Reading `json:"shortPeak,omitzero"`
	// PeakError is the standard error of PeakArrivals if arrivals are Poisson, per second. The rate
	// of a constant load deviates by it in each latest window, and the highest of them is about one
	// above it. Absent: not known.
	PeakError Reading `json:"peakError,omitzero"`
	// RecentArrivals is the rate of requests over the last half of the latest window, per second,
	// and RecentError its standard error. A rate that is above Arrivals by a few errors is a burst.
	// Absent: not known.
	RecentArrivals Reading `json:"recentArrivals,omitzero"`
	RecentError    Reading `json:"recentError,omitzero"`
	// PeakCovered is true if samples cover the whole peak window.
	PeakCovered bool `json:"peakCovered,omitzero"`
	// LastActive is when the model was last in use (arrivals, or a request in flight) within the
	// idle window; zero if it was not. IdleCovered is how much of the idle window, counted back
	// from Time, samples cover without a gap.
	LastActive  time.Time     `json:"lastActive,omitzero"`
	IdleCovered time.Duration `json:"-"`
	// PromptTokens and OutputTokens are the mean lengths of a request.
	PromptTokens Reading `json:"promptTokens"`
	OutputTokens Reading `json:"outputTokens"`
	// PastPromptTokens and PastOutputTokens are those means over half of the long window. Absent:
	// not known.
	PastPromptTokens Reading `json:"pastPromptTokens,omitzero"`
	PastOutputTokens Reading `json:"pastOutputTokens,omitzero"`
	// StepTokens is how many output tokens a request gets for each measured time between tokens: 1,
	// or more with speculative decoding. Absent: not known.
	StepTokens Reading `json:"stepTokens,omitzero"`
	// PromptLengths and OutputLengths are the histograms of the same, in ascending order; empty if
	// unknown.
	PromptLengths []Bucket `json:"promptLengths,omitzero"`
	OutputLengths []Bucket `json:"outputLengths,omitzero"`
	// PrefixHits is the share of prompt tokens found in the prefix cache, 0 to 1.
	PrefixHits Reading `json:"prefixHits"`
	// Dispersion is the index of dispersion of the arrivals: the variance of their number in an
	// interval over its mean, 1 for a Poisson process.
	Dispersion Reading `json:"dispersion"`
	// TTFT is the 95th percentile of the time to first token, and ITL the mean time between output
	// tokens, over the latest window, seconds.
	TTFT Reading `json:"ttft"`
	ITL  Reading `json:"itl"`
	// Latencies are the requests of the error budget's window by their latency: of engines all but
	// the wait at the gateway, of gateways that alone.
	Latencies Latencies `json:"latencies,omitzero"`
}
