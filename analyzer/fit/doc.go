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
//	T = α + n·(β + γ·(I + O/2)) + n/(O-1)·(b·I + c·I²)
//
// which is linear in the five parameters of fleet.EngineCost.
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
// # Expert models
//
// A batch of n tokens touches about 1-exp(-n·k/E) of a model's E experts if each token uses k of
// them, and an iteration reads the weights of those. T rises steeply until n is about E/k (16 to 50
// in the models of today) and slowly above. A sixth term,
//
//	experts·(1 - exp(-n/32))
//
// describes that. fleet.EngineCost does not have it, so its parameters are the best straight line
// through the predictions of the six-term form, for every pair of lengths in the rows and all
// doublings of concurrency within their range. A dense model has a small term or none.
//
// Times are milliseconds and lengths are tokens, as in fleet.EngineCost. Everything here is a pure
// function.
package fit
