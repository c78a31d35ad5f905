package simulation

import "github.com/wva-project/wva/fleet"

// Profile is the time that one engine on one accelerator type needs for its work. One iteration
// that decodes n sequences, whose contexts add up to KV tokens, and prefills chunks of prompts
// takes
//
//	Iteration + PerSequence·n + PerContextToken·KV + PerPromptToken·Σchunk
//	  + PerPromptTokenSquared·Σchunk·(2·position+chunk)
//
// and PerRequest for every request of the iteration, all in seconds, times the noise. The work of a
// prompt does not depend on the number of its chunks.
type Profile struct {
	Accelerator fleet.Accelerator
	Model       string // the model's public name

	Iteration             float64 // > 0
	PerSequence           float64
	PerContextToken       float64
	PerPromptToken        float64
	PerPromptTokenSquared float64
	PerRequest            float64 // overhead of the host
	// Noise is the standard deviation of the logarithm of a factor, of mean 1, on each iteration.
	// Zero means no noise.
	Noise float64
	// KVTokens is the KV cache size.
	KVTokens int
}

// defaultNoise is the noise of the embedded profiles.
const defaultNoise = 0.05

// hostOverhead is the time of a server beside the kernels for each request of an iteration, in
// seconds.
const hostOverhead = 0.026e-3

// weights is the need of a model for memory of its accelerator, in bytes.
type weights struct {
	model    string
	size     float64
	perToken float64 // of KV cache
}

// fit is one row of the published fits: milliseconds per iteration, per sequence, per thousand
// tokens of context, per token of prompt and per million squared tokens of prompt. Memory is in GB.
type fit struct {
	accelerator         fleet.Accelerator
	memory              float64
	alpha, beta, gamma  float64
	perToken, perSquare float64
}

// Profiles returns the embedded profiles: bf16 on one accelerator, sorted by model and accelerator.
// They are fits to public kernel tables of ai-dynamo/aiconfigurator (Apache-2.0), plus the host's
// overhead.
func Profiles() []Profile {
	llama := weights{model: "Llama-3.1-8B", size: 16e9, perToken: 131072}
	qwen := weights{model: "Qwen3-14B", size: 28e9, perToken: 163840}
	return []Profile{
		llama.profile(fit{"A100", 80, 10.62886, 0.02826, 0.08141, 0.0481, 1.82621}),
		llama.profile(fit{"H100", 80, 6.07357, 0.0084, 0.04238, 0.01336, 0.82904}),
		llama.profile(fit{"L40S", 48, 21.80229, 0.02655, 0.19708, 0.04172, 3.45348}),
		qwen.profile(fit{"A100", 80, 19.52482, 0.04935, 0.10606, 0.08753, 2.68747}),
		qwen.profile(fit{"H100", 80, 10.87891, 0.01222, 0.05433, 0.02592, 1.46564}),
		qwen.profile(fit{"L40S", 48, 39.82013, 0.05222, 0.24792, 0.0834, 4.94937}),
	}
}

// ProfileOf returns the embedded profile of a model, by its public name, on an accelerator.
func ProfileOf(model string, accelerator fleet.Accelerator) (Profile, bool) {
	for _, p := range Profiles() {
		if p.Model == model && p.Accelerator == accelerator {
			return p, true
		}
	}
	return Profile{}, false
}

// profile converts a fit to seconds. The KV cache gets 90 % of the memory, less the weights.
func (w weights) profile(f fit) Profile {
	return Profile{
		Accelerator:           f.accelerator,
		Model:                 w.model,
		Iteration:             f.alpha / 1e3,
		PerSequence:           f.beta / 1e3,
		PerContextToken:       f.gamma / 1e6,
		PerPromptToken:        f.perToken / 1e3,
		PerPromptTokenSquared: f.perSquare / 1e9,
		PerRequest:            hostOverhead,
		Noise:                 defaultNoise,
		KVTokens:              int((float64(f.memory*0.9e9) - w.size) / w.perToken),
	}
}

// batch is the work of one iteration.
type batch struct {
	decodes  int   // sequences that get their next token
	contexts int64 // sum of their contexts
	prompts  int   // sequences of which a chunk of the prompt is done
	tokens   int   // sum of the chunks
	squares  int64 // sum of chunk * (2 * position + chunk)
}

// duration returns how long a batch takes without noise.
func (p *Profile) duration(b *batch) float64 {
	return p.Iteration +
		float64(p.PerSequence*float64(b.decodes)) +
		float64(p.PerContextToken*float64(b.contexts)) +
		float64(p.PerPromptToken*float64(b.tokens)) +
		float64(p.PerPromptTokenSquared*float64(b.squares)) +
		float64(p.PerRequest*float64(b.decodes+b.prompts))
}

// lognormal draws a factor of mean 1 whose logarithm has the given standard deviation.
func (d draws) lognormal(deviation float64) float64 {
	if deviation == 0 {
		return 1
	}
	return exponential(float64(deviation*d.normal()) - float64(deviation*deviation)/2)
}
