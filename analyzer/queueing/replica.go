package queueing

// Profile is the cost of one iteration of an engine, in seconds. An iteration in which n sequences
// decode, whose contexts add up to C tokens, and chunks of prompts are computed takes
//
//	Iteration + PerSequence·n + PerContextToken·C +
//	PerPromptToken·Σchunk + PerPromptTokenSquared·Σchunk·(2·position+chunk)
//
// with position the number of tokens of the prompt that are in the KV cache already. The work of a
// prompt does not depend on the number of its chunks.
type Profile struct {
	Iteration             float64 // alpha; > 0
	PerSequence           float64 // beta
	PerContextToken       float64 // gamma
	PerPromptToken        float64
	PerPromptTokenSquared float64
}

// Replica is one engine with its limits.
type Replica struct {
	Profile
	// MaxSequences is the engine's limit of requests in a batch, those in prefill included
	// (max_num_seqs); >= 1.
	MaxSequences int
	// BatchedTokens is its limit of tokens in one iteration: one for each sequence in decode, the
	// rest chunks of prompts (max_num_batched_tokens); >= 1.
	BatchedTokens int
	// KVTokens is the size of its KV cache in tokens. Zero means no limit.
	KVTokens float64
	// PrefixHits is the share of each prompt that is found in the prefix cache and not computed, in
	// [0, 1].
	PrefixHits float64
}
