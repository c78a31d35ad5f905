// Package fit estimates the cost of an engine's iteration (fleet.EngineCost) from measured rows of
// a benchmark.
//
// # The rows
//
// A closed-loop benchmark has N clients. Each sends a prompt of I tokens, waits for all O output
// tokens, and sends the next. A row holds N, I, O, the mean TTFT F, and the mean time per output
// token T after the first.
//
// # Time per output token
//
// A request stays F + (O-1)·T, of which it decodes (O-1)·T. By Little's law the batch in decode is,
// on average,
//
//	n = N·(O-1)·T / (F + (O-1)·T)
//
// The other requests do not matter, so a full KV cache does not spoil the estimate. Requests leave
// at the rate n/((O-1)·T), and each is followed by a prompt: an iteration, which takes T, computes
// n/(O-1) prompts on average. Hence
//
//	T = α + experts·touched(n) + n·(β + γ·(I + O/2)) + n/(O-1)·(b·I + c·I²)
//
// which is linear in the parameters of fleet.EngineCost.
//
// # Models with experts
//
// In a mixture-of-experts model each token uses k of the E experts of a layer, and an iteration
// reads the weights of all experts that its batch uses. If tokens choose independently,
//
//	touched(n) = 1 - (1 - k/E)^n
//
// is the expected share of the experts that n tokens use. T rises steeply until n is about the
// sparsity E/k (16 to 51 in the models of today) and slowly above. Prompts use all experts; that is
// part of b. The sparsity is that of the model's published configuration. The requests in decode
// take at least a twentieth of the iteration of the largest batch: rows of batches below the
// sparsity tell the two apart poorly, and a batch that is free could grow without end.
//
// # Time to the first token
//
//	F = s·T + (1 + w·N)·(b·I + c·I²)
//
// A request waits s iterations, for the current one and for the front end. All clients of a
// benchmark start at once, so in the first wave half of the N prompts go before one, on average: w
// is one half over the number of waves. Both s and w belong to the benchmark and are fitted with
// the cost. For w, which multiplies b and c, some values are tried.
//
// # The estimate
//
// It minimises the squares of relative errors of T and, with less weight, of F. No parameter is
// below zero, and alpha is not below the least valid value.
//
// # Contradictions
//
// Rows are rejected, with their lines, if TPOT falls with concurrency at equal lengths by more than
// runs of a benchmark differ, or if the median error of TPOT is too large to be of use.
//
// Times are milliseconds and lengths are tokens, as in fleet.EngineCost. Everything here is a pure
// function.
package fit
