package fit

import (
	"strings"

	"github.com/wva-project/wva/fleet"
)

// dense is the sparsity of a model without experts: each token uses all weights.
const dense = 1

// published returns the routed experts of a layer, and how many of them each token uses, by the
// config.json of models on huggingface.co (num_local_experts, num_experts or n_routed_experts, and
// num_experts_per_tok). A name contains the text; of several the first counts.
func published() []struct {
	name      string
	all, used float64
} {
	return []struct {
		name      string
		all, used float64
	}{
		{"deepseek-r1-distill", 1, 1}, {"deepseek-r1-0528-qwen3-8b", 1, 1}, {"deepseek-r1", 256, 8}, {"deepseek-v3", 256, 8},
		{"minimax-m2", 256, 8}, {"kimi-k2", 384, 8}, {"mixtral-8x", 8, 2},
		{"glm-4.5-air", 128, 8}, {"glm-4.5", 160, 8}, {"glm-4.6", 160, 8}, {"glm-5", 256, 8},
		{"gpt-oss-120b", 128, 4}, {"gpt-oss-20b", 32, 4},
		{"qwen3-235b-a22b", 128, 8}, {"qwen3-30b-a3b", 128, 8}, {"qwen3.5-397b-a17b", 512, 10},
		{"llama-3", 1, 1}, {"qwen3-8b", 1, 1}, {"qwen3-14b", 1, 1}, {"qwen3-32b", 1, 1},
	}
}

// Sparsity returns that of a model by its public name: the experts of a layer over those that each
// token uses, 1 for a model without experts; false if its configuration is not known here.
func Sparsity(model string) (float64, bool) {
	name := strings.ToLower(model)
	for _, m := range published() {
		if strings.Contains(name, m.name) {
			return m.all / m.used, true
		}
	}
	return 0, false
}

// worthwhile is the most error of TPOT that a term for experts leaves, as a part of the error
// without it, for the term to be used if a model's sparsity is not known. A term that describes
// noise leaves more.
const worthwhile = 0.7

// chosen returns the sparsity to estimate with. If it is not known, the rows tell whether the model
// has experts, by the rows that were left out if there are enough.
func chosen(rows []Row, sparsity float64) float64 {
	if sparsity > 0 {
		return sparsity
	}
	wrong := func(sparsity float64) float64 {
		if left := leftOut(rows, sparsity); left != nil {
			return left.TPOT
		}
		_, tpot := deviations(rows, estimate(rows, sparsity))
		return tpot.Mean
	}
	if wrong(fleet.UsualSparsity) <= worthwhile*wrong(dense) {
		return fleet.UsualSparsity
	}
	return dense
}
