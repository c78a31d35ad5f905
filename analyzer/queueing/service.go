package queueing

import (
	"fmt"
	"math"

	"github.com/wva-project/wva/analyzer/queueing/textbook"
)

// Request is the mean work of a request.
type Request struct {
	Tokens   float64 // prompt tokens to compute, without those found in the prefix cache
	Output   float64 // output tokens; >= 1
	Prefill  float64 // seconds that computing its prompt adds to iterations
	Decode   float64 // seconds that its Output-1 iterations in decode add to them
	KVTokens float64 // tokens of the KV cache that it occupies
}

// Request returns the work of a request of this length in a replica:
//
//	Prefill = (b + c·(2hI + tok))·tok, tok = I(1-h)
//	Decode  = (O-1)·(β + γ·(I + O/2))
//
// with b PerPromptToken, c PerPromptTokenSquared and h PrefixHits. The prompt's last chunk gives
// the first token, so that O-1 iterations are left, whose contexts I+1 .. I+O-1 are I+O/2 on
// average. Tokens found in the prefix cache shorten the prefill, but are read with the context like
// the rest.
func (r Replica) Request(prompt, output float64) Request {
	tokens := prompt * (1 - r.PrefixHits)
	return Request{
		Tokens:   tokens,
		Output:   output,
		Prefill:  (r.PerPromptToken + r.PerPromptTokenSquared*(2*r.PrefixHits*prompt+tokens)) * tokens,
		Decode:   (output - 1) * (r.PerSequence + r.PerContextToken*(prompt+output/2)),
		KVTokens: prompt + output,
	}
}

// Service is the time that a replica takes for a request if n of them are in its batch all the
// time, for n = 1 .. Batch. It is immutable.
//
// A request stays for m iterations: P that compute a part of its prompt and O-1 in decode. In that
// time each of the n slots of the batch does the work of one whole request, w = Prefill + Decode.
// With iterations scheduled as by Orca (Yu et al., OSDI 2022, section 3) a request stays for
//
//	S(n) = m·α + n·w = m·T(n),  T(n) = α + n·w/m
//
// which without prompts is T(n) = α + n(β + γc), c = I + O/2.
//
// An iteration computes at most M tokens (max_num_batched_tokens): first one for each sequence in
// decode, then parts of prompts, each with the budget that the one before left (Agrawal et al.,
// Sarathi-Serve, OSDI 2024, section 4.2, and vLLM's scheduler). Of n requests n(O-1)/m decode, so
// C = M - n(O-1)/m tokens are left for prompts. A prompt that starts anywhere in C is computed in
//
//	P = 1 + tok/C
//
// iterations on average, which with m = P + O-1 is a quadratic equation for m. The limit of M
// tokens also means m >= n(tok + O-1)/M; if this bound holds with equality, the prompts of the
// batch wait for each other.
type Service struct {
	rates     []float64 // μ(n) = n/S(n) at n-1
	prefill   []float64
	itl       []float64
	decodes   float64 // O-1
	limitedBy Limit
}

// NewService returns the times of service in a replica. The batch is limited by MaxSequences, by
// the KV cache, n·q.KVTokens <= r.KVTokens, and by BatchedTokens, of which each sequence in decode
// takes one. The error names the limit if no request fits.
func NewService(r Replica, q Request) (Service, error) {
	if err := q.check(); err != nil {
		return Service{}, err
	}
	if !(r.Iteration > 0) || r.MaxSequences < 1 || r.BatchedTokens < 1 {
		return Service{}, fmt.Errorf("a replica with an iteration of %g s, %d sequences and %d tokens an iteration; all must be above zero",
			r.Iteration, r.MaxSequences, r.BatchedTokens)
	}
	batch, limitedBy := min(r.MaxSequences, r.BatchedTokens), LimitSequences
	if r.KVTokens > 0 && float64(batch)*q.KVTokens > r.KVTokens {
		batch, limitedBy = int(r.KVTokens/q.KVTokens), LimitKV
	}
	if batch < 1 {
		return Service{}, fmt.Errorf("a request needs %g tokens of a KV cache of %g; give the replica more memory or limit request lengths",
			q.KVTokens, r.KVTokens)
	}
	s := Service{rates: make([]float64, batch), prefill: make([]float64, batch), itl: make([]float64, batch), decodes: q.Output - 1, limitedBy: limitedBy}
	for i := range s.rates {
		n := float64(i + 1)
		stay := q.iterations(n, float64(r.BatchedTokens))
		work := q.Prefill + q.Decode
		others := r.Iteration + (n-1)*work/stay // an iteration without the work of this request
		s.rates[i] = n / (stay*r.Iteration + n*work)
		s.prefill[i] = max(0, stay-s.decodes)*others + q.Prefill
		s.itl[i] = others
		if s.decodes > 0 {
			s.itl[i] += q.Decode / s.decodes
		}
	}
	return s, nil
}

func (q Request) check() error {
	for _, x := range []float64{q.Tokens, q.Prefill, q.Decode, q.KVTokens} {
		if !(x >= 0) || math.IsInf(x, 1) {
			return fmt.Errorf("a request of %+v; its work must be finite and not below zero", q)
		}
	}
	if !(q.Output >= 1) || math.IsInf(q.Output, 1) || q.Tokens+q.Output-1 == 0 {
		return fmt.Errorf("a request of %g prompt and %g output tokens; it needs an output, and a prompt or a second output token",
			q.Tokens, q.Output)
	}
	return nil
}

// iterations returns m, the iterations that a request stays for: the larger root of (m - start -
// D)(budget·m - nD) = tok·m with D = O-1. A request without a prompt has start = 0, it needs no
// iteration to start.
func (q Request) iterations(n, budget float64) float64 {
	decodes, start := q.Output-1, min(1, q.Tokens)
	half := (n*decodes + budget*(start+decodes) + q.Tokens) / (2 * budget)
	product := n * decodes * (start + decodes) / budget
	m := half + math.Sqrt(max(0, half*half-product))
	return max(m, n*(q.Tokens+decodes)/budget)
}

// Rates returns μ(1) .. μ(Batch) in requests per second. The slice must not be changed.
func (s Service) Rates() []float64 { return s.rates }

// Prefill returns the seconds from a request's admission to a batch of n, itself included, to its
// first token.
func (s Service) Prefill(n int) float64 { return s.prefill[n-1] }

// ITL returns the mean seconds between the tokens of a request in a batch of n, itself included;
// the time of an iteration if requests have a single token.
func (s Service) ITL(n int) float64 { return s.itl[n-1] }

// Queue returns the queue in front of the replica, with at most maxWaiting waiting requests, or
// Unlimited.
func (s Service) Queue(maxWaiting int) (textbook.Queue, error) {
	return textbook.New(s.rates, maxWaiting)
}

// Latency returns the mean TTFT and the mean ITL of the accepted requests in seconds, each at the
// size of the batch that it enters. q is this service's queue and state one of its states.
func (s Service) Latency(q textbook.Queue, state textbook.State) (ttft, itl float64) {
	prefill := q.RequestMean(state.Rate, s.prefill)
	if s.decodes < 1 {
		return state.Wait + prefill, q.RequestMean(state.Rate, s.itl)
	}
	return state.Wait + prefill, (state.Service - prefill) / s.decodes
}

// MaxMeanRate returns the highest rate at which the mean TTFT and the mean ITL stay within limits
// in seconds, and the limit that is reached first. A zero limit is none. The rate is 0 if a limit
// is missed even without load. q is this service's queue. It is the answer of sizing by means, for
// comparison: a percentile of the requests needs a lower rate.
func (s Service) MaxMeanRate(q textbook.Queue, limits Objective) (float64, Limit) {
	shares := func(state textbook.State) (ttft, itl float64) {
		ttft, itl = s.Latency(q, state)
		return usedUp(ttft, limits.TTFT), usedUp(itl, limits.ITL)
	}
	rate := q.MaxRate(1, func(state textbook.State) float64 {
		ttft, itl := shares(state)
		return max(ttft, itl)
	})
	if rate == q.Highest() {
		return rate, LimitCompute
	}
	state, err := q.At(rate)
	if err != nil {
		return rate, LimitCompute // never: the search solved the queue at this rate
	}
	if ttft, itl := shares(state); itl > ttft {
		return rate, LimitITL
	}
	return rate, LimitTTFT
}

// usedUp returns x as a share of a limit, 0 without one.
func usedUp(x, limit float64) float64 {
	if limit > 0 {
		return x / limit
	}
	return 0
}
