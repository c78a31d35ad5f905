package queueing

// Objective is a latency promise in seconds. A zero limit is no limit.
type Objective struct {
	TTFT float64 // from the arrival of a request to its first token
	ITL  float64 // mean time between a request's output tokens (its TPOT)
	// Percentile is the share of requests, in (0, 1), that must meet both limits.
	Percentile float64
}

// Limit is what binds the rate of a replica.
type Limit string

// The limits.
const (
	LimitTTFT      Limit = "TTFT"
	LimitITL       Limit = "ITL"
	LimitKV        Limit = "KV cache"
	LimitSequences Limit = "sequences"
	LimitStability Limit = "stability" // work arrives as fast as it can be done
)
