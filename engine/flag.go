package engine

// Limit is a limit of one replica that a command-line flag sets.
type Limit string

// The limits.
const (
	MaxSequences   Limit = "max sequences"
	BatchedTokens  Limit = "max batched tokens"
	TensorParallel Limit = "tensor parallel"
	Ranks          Limit = "data-parallel ranks"
	PodRanks       Limit = "data-parallel ranks of a pod"
	CacheTokens    Limit = "KV cache size"
	CacheBlocks    Limit = "KV cache blocks"
	BlockTokens    Limit = "block size"
	Quantization   Limit = "quantization"
	ServedNames    Limit = "served model names"
	Adapters       Limit = "LoRA adapters"
)

// Flag is a command-line flag.
type Flag struct {
	Limit Limit
	// Names are without leading dashes and with '-' for '_', in order of precedence.
	Names []string
	// Default is the engine's own value without the flag, in prose. WVA does not use it: it depends
	// on the version and the hardware.
	Default string
}

// LimitDescription describes a limit.
type LimitDescription struct {
	Limit Limit
	Unit  string
	// PerRank is true if the limit is that of one data-parallel rank: a replica has it times its
	// ranks, which are PodRanks, or else Ranks; of a replica of several pods they are Ranks, or
	// else PodRanks times its pods.
	PerRank bool
}

// Limits returns the descriptions of the limits.
func Limits() []LimitDescription {
	return []LimitDescription{
		{MaxSequences, "requests in a batch", true},
		{BatchedTokens, "tokens in an iteration of one rank", false},
		{TensorParallel, "accelerators", false},
		{Ranks, "engines", false},
		{PodRanks, "engines in a pod", false},
		{CacheTokens, "tokens", true},
		{CacheBlocks, "blocks", true},
		{BlockTokens, "tokens in a block", false},
		{Quantization, "the engine's word, such as fp8", false},
		{ServedNames, "names, of which metrics have the first", false},
		{Adapters, "names, which a gateway has for models", false},
	}
}

// PerRank reports whether the limit is that of one data-parallel rank.
func (l Limit) PerRank() bool {
	for _, description := range Limits() {
		if description.Limit == l {
			return description.PerRank
		}
	}
	return false
}
