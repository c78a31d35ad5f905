package simulation

import (
	"math"
	"slices"
)

// blockSize is the number of tokens in a block of the KV cache.
const blockSize = 16

// engine serves requests in iterations, by the rules of vLLM's scheduler.
//
// To simulate an iteration costs a constant amount of work, plus some for each chunk of a prompt in
// it. The number of sequences in decode does not matter: each of them gets one token, so that sums
// and the number of the iteration describe them all.
type engine struct {
	profile      Profile
	maxSequences int
	maxTokens    int
	blocks       int     // KV cache size
	prefixHits   float64 // share of each prompt that is found in the prefix cache
	noise        draws

	waiting    []*sequence // first come, first served; preempted ones in front
	running    []*sequence // in the order of admission
	prefilling []*sequence // those of running whose prompt is not done yet
	decoding   decoding    // those of running whose prompt is done
	contexts   int64       // sum of the contexts of decoding
	// offsets counts the decoding sequences by (tokens stored - step) modulo the block size, which
	// is constant while a sequence decodes. A sequence needs a new block in the iteration after
	// which its stored tokens pass a multiple of the block size.
	offsets [blockSize]int
	free    int // blocks that are neither allocated nor reserved for the rest of a prompt

	step     int     // iterations done
	admitted int     // sequences admitted so far, preempted ones again
	began    float64 // the running iteration
	end      float64 // +Inf: idle
	done     []*sequence

	metrics engineMetrics
}

func newEngine(spec VariantSpec, noise draws) engine {
	blocks := spec.KVTokens / blockSize
	return engine{
		profile:      spec.Profile,
		maxSequences: spec.MaxSequences,
		maxTokens:    spec.MaxBatchedTokens,
		blocks:       blocks,
		prefixHits:   spec.PrefixHits,
		noise:        noise,
		free:         blocks,
		end:          math.Inf(1),
		metrics:      newEngineMetrics(),
	}
}

// inFlight returns how many requests the engine has.
func (e *engine) inFlight() int { return len(e.waiting) + len(e.running) }

// fits reports whether a sequence fits into the KV cache to its end.
func (e *engine) fits(s *sequence) bool { return blocksOf(s.longest()) <= e.blocks }

// kvUsage returns the KV cache usage. A prompt has only the blocks of its chunks so far, though the
// rest is reserved for it: vLLM admits a prompt if all of it fits, and allocates chunk by chunk.
func (e *engine) kvUsage() float64 {
	used := e.blocks - e.free
	for _, s := range e.prefilling {
		used -= blocksOf(s.prefill) - blocksOf(s.position+s.chunk)
	}
	return float64(used) / float64(e.blocks)
}

// claimed returns the share of the KV cache that is in use or that waiting prompts need. It may
// exceed 1.
func (e *engine) claimed() float64 {
	blocks := e.blocks - e.free
	for _, s := range e.waiting {
		blocks += blocksOf(s.Prompt)
	}
	return float64(blocks) / float64(e.blocks)
}

// submit adds a sequence to the queue. An idle engine begins an iteration at once.
func (e *engine) submit(s *sequence, now float64) {
	s.dispatched, s.order = now, 0
	e.waiting = append(e.waiting, s)
	if math.IsInf(e.end, 1) {
		e.begin(now)
	}
}

// begin sets the work of the next iteration and its end.
func (e *engine) begin(now float64) {
	e.preemptUntilFits(now)
	e.free -= e.newBlocks()
	b := batch{decodes: len(e.decoding), contexts: e.contexts}
	budget := e.maxTokens - b.decodes
	for _, s := range e.prefilling {
		budget -= e.take(s, budget, &b)
	}
	e.admit(now, budget, &b)
	e.began, e.end = now, math.Inf(1)
	if len(e.running) > 0 {
		e.end = now + float64(e.profile.duration(&b)*e.noise.lognormal(e.profile.Noise))
	}
}

// preemptUntilFits preempts the sequences that were admitted last, until every decoding one can
// store its next token. A single one always can. The blocks that become free are too few to admit a
// preempted sequence again in the same iteration.
func (e *engine) preemptUntilFits(now float64) {
	for e.free < e.newBlocks() {
		e.preempt(e.running[len(e.running)-1], now)
	}
}

// preempt moves the sequence that was admitted last to the head of the queue. Its KV cache is
// computed again later.
func (e *engine) preempt(s *sequence, now float64) {
	e.running = e.running[:len(e.running)-1]
	if s.position < s.prefill {
		e.free += blocksOf(s.prefill)
		e.prefilling = e.prefilling[:len(e.prefilling)-1]
	} else {
		s.generated = s.decoded(e.step)
		s.lastToken = now
		e.decoding.remove(s)
		e.leaveDecode(s, s.generated)
	}
	s.position, s.chunk = 0, 0
	e.waiting = slices.Insert(e.waiting, 0, s)
	e.metrics.preemptions++
}

// newBlocks returns the number of blocks that the decoding sequences need for their next tokens.
func (e *engine) newBlocks() int { return e.offsets[offset(0, e.step)] }

// take adds the next chunk of a sequence's prompt to the batch, as far as the budget goes, and
// returns its tokens.
func (e *engine) take(s *sequence, budget int, b *batch) int {
	s.chunk = min(budget, s.prefill-s.position)
	if s.chunk == 0 {
		return 0
	}
	b.prompts++
	b.tokens += s.chunk
	b.squares += int64(s.chunk) * int64(2*s.position+s.chunk)
	return s.chunk
}

// admit moves sequences from the queue into the batch while the budget, max_num_seqs and the free
// blocks allow it. The blocks must suffice for the whole prompt.
func (e *engine) admit(now float64, budget int, b *batch) {
	for len(e.waiting) > 0 && budget > 0 && len(e.running) < e.maxSequences {
		s := e.waiting[0]
		prefill := s.Prompt + s.generated
		if blocksOf(prefill) > e.free {
			return
		}
		e.waiting = e.waiting[1:]
		e.free -= blocksOf(prefill)
		s.position = cached(s.Prompt, e.prefixHits)
		if s.order == 0 { // it was not preempted
			s.scheduled = now
			e.metrics.prefixQueries += s.Prompt
			e.metrics.prefixHits += s.position
		}
		e.admitted++
		s.order, s.prefill = e.admitted, prefill
		e.running = append(e.running, s)
		e.prefilling = append(e.prefilling, s)
		budget -= e.take(s, budget, b)
	}
}

// complete ends the running iteration and returns the sequences that are finished with it. The
// slice is reused.
func (e *engine) complete() []*sequence {
	now := e.end
	e.step++
	e.done = e.done[:0]
	e.contexts += int64(len(e.decoding))
	e.metrics.generationTokens += len(e.decoding)
	e.metrics.itl.observe(now-e.began, len(e.decoding))
	for s, ok := e.decoding.pop(e.step); ok; s, ok = e.decoding.pop(e.step) {
		e.leaveDecode(s, s.Output)
		e.retire(s, now)
	}
	e.completeChunks(now)
	return e.done
}

// completeChunks ends the chunks of prompts. The last chunk of a prompt gives the next token, which
// is the first one of a new request.
func (e *engine) completeChunks(now float64) {
	kept := e.prefilling[:0]
	for _, s := range e.prefilling {
		s.position += s.chunk
		s.chunk = 0
		if s.position < s.prefill {
			kept = append(kept, s)
			continue
		}
		e.emit(s, now)
		if s.generated == s.Output {
			e.free += blocksOf(s.prefill)
			e.retire(s, now)
			continue
		}
		e.enterDecode(s)
	}
	clear(e.prefilling[len(kept):])
	e.prefilling = kept
}

// emit gives a sequence the token that ends its prefill.
func (e *engine) emit(s *sequence, now float64) {
	s.generated++
	e.metrics.generationTokens++
	if s.generated == 1 {
		s.firstToken = now
		e.metrics.promptTokens += s.Prompt
		e.metrics.ttft.observe(now-s.dispatched, 1)
	} else {
		e.metrics.itl.observe(now-s.lastToken, 1)
	}
	s.lastToken = now
}

func (e *engine) enterDecode(s *sequence) {
	s.finish = e.step + s.Output - s.generated
	e.decoding.add(s)
	e.contexts += int64(s.Prompt + s.generated)
	e.offsets[offset(s.Prompt+s.generated-1, e.step)]++
}

// leaveDecode frees the blocks of a sequence that has generated so many tokens.
func (e *engine) leaveDecode(s *sequence, generated int) {
	stored := s.Prompt + generated - 1
	e.contexts -= int64(s.Prompt + generated)
	e.offsets[offset(stored, e.step)]--
	e.free += blocksOf(stored)
}

func (e *engine) retire(s *sequence, now float64) {
	at := slices.Index(e.running, s)
	e.running = slices.Delete(e.running, at, at+1)
	s.lastToken = now
	e.done = append(e.done, s)
	e.metrics.finish(s)
}

// release removes a sequence from the queue that was submitted to another engine.
func (e *engine) release(s *sequence) {
	at := slices.Index(e.waiting, s)
	e.waiting = slices.Delete(e.waiting, at, at+1)
	e.metrics.aborted++
}

func blocksOf(tokens int) int { return (tokens + blockSize - 1) / blockSize }

func offset(stored, step int) int { return (stored - step) & (blockSize - 1) }

// cached returns how many tokens of a prompt are found in the prefix cache, in whole blocks. Since
// hits is below 1, these are never all: the output of the last token is needed.
func cached(prompt int, hits float64) int {
	return int(float64(prompt)*hits) / blockSize * blockSize
}
