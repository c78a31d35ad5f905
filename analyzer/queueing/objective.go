package queueing

// Objective is a latency objective (SLO) in seconds. A zero limit is no limit.
type Objective struct {
	TTFT float64 // from the arrival of a request to its first token
	ITL  float64 // mean time between a request's output tokens (its TPOT)
	// Percentile is the share of requests, in (0, 1), that must meet both limits.
	Percentile float64
}

// Limit names the resource or objective that limits the rate of a replica.
type Limit string

// The limits.
const (
	LimitTTFT      Limit = "TTFT"
	LimitITL       Limit = "ITL"
	LimitKV        Limit = "KV cache"
	LimitSequences Limit = "max_num_seqs"
	LimitCompute   Limit = "compute" // work arrives as fast as the engine can do it
)
