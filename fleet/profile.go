package fleet

// Profile is what is known beforehand of an engine that serves a model on one kind of accelerator.
type Profile struct {
	// Model is the model's public name, as variants give it in modelID; each * in it stands for any text. Case does not matter.
	Model       string      `json:"model"`
	Accelerator Accelerator `json:"accelerator"`
	// Precision is that of the weights, such as bf16 or fp8; empty where it is not said.
	Precision string `json:"precision,omitzero"`
	// TensorParallel is over how many accelerators each layer is split; >= 1.
	TensorParallel int `json:"tensorParallel"`

	Cost EngineCost `json:"cost"`
	// KVTokens is the room of one replica's KV cache in tokens, MaxSequences its limit of requests in a batch and BatchedTokens
	// that of tokens in one iteration, where neither the engine nor its arguments say them. Zero: not known.
	KVTokens      float64 `json:"kvTokens,omitzero"`
	MaxSequences  int     `json:"maxSequences,omitzero"`
	BatchedTokens int     `json:"batchedTokens,omitzero"`
	// Origin says where the figures come from.
	Origin string `json:"origin,omitzero"`
}

// EngineCost is what one iteration of an engine costs. An iteration in which n requests decode, whose contexts add up to C
// tokens, and chunks of prompts are computed takes
//
//	Alpha + Beta·n + Gamma·C/1000 + Prefill·Σchunk + PrefillSquared·Σchunk·(2·position+chunk)/10⁶
//
// milliseconds, where position is how many tokens of the prompt are in the KV cache already. None is negative, and Alpha is
// above zero.
type EngineCost struct {
	Alpha          float64 `json:"alpha"`          // ms
	Beta           float64 `json:"beta"`           // ms per request in decode
	Gamma          float64 `json:"gamma"`          // ms per thousand tokens of context
	Prefill        float64 `json:"prefill"`        // ms per token of a prompt
	PrefillSquared float64 `json:"prefillSquared"` // ms per million squared tokens of a prompt
}

// Bucket is one bucket of a histogram of lengths.
type Bucket struct {
	// Upper is the largest length that counts; 0 in the last bucket, which has no bound.
	Upper float64 `json:"upper,omitzero"`
	// Count is how much falls into this bucket alone: a rate or a number, only shares matter.
	Count float64 `json:"count"`
}
