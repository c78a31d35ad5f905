package queueing

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math"
)

const (
	mixBins  = 12 // parts of the prompts, and of the outputs, for the time per output token
	tailBins = 64 // parts of the prompts for the time to first token
)

// Mix is the distributions of prompt and output lengths, which are assumed to be independent, with
// all tables that depend on nothing else. It is immutable.
type Mix struct {
	prompts, outputs Lengths

	promptBins, outputBins, tailCount int
	promptShare, promptMean           [mixBins]float64
	outputShare, outputMean           [mixBins]float64
	tailShare, tailMean               [tailBins]float64
	windows                           [mixBins]window  // of the outputs
	lateShare                         [mixBins]float64 // of outputs with two tokens and more

	prompt, prompt2                float64 // E[I], E[I²]
	output, output2, output3       float64 // E[O] and so on
	decode, decode2, decodeContext float64 // E[D], E[D²], E[D·(I+1+D/2)] with D = O-1
}

// NewMix prepares the tables of a mix of prompts and outputs.
func NewMix(prompts, outputs Lengths) (*Mix, error) {
	if prompts, outputs = prompts.full(), outputs.full(); len(prompts.sorted) == 0 || len(outputs.sorted) == 0 {
		return nil, errors.New("a mix without prompt or output lengths; give both, or assume them by their means")
	}
	m := &Mix{
		prompts: prompts.compact(), outputs: outputs.compact(),
		prompt: prompts.mean, prompt2: prompts.moment(2),
		output: outputs.mean, output2: outputs.moment(2), output3: outputs.moment(3),
	}
	m.decode = m.output - 1
	m.decode2 = max(0, m.output2-2*m.output+1)
	m.decodeContext = m.decode*(m.prompt+1) + m.decode2/2
	m.promptBins = prompts.bins(m.promptShare[:], m.promptMean[:])
	m.outputBins = outputs.bins(m.outputShare[:], m.outputMean[:])
	m.tailCount = prompts.bins(m.tailShare[:], m.tailMean[:])
	for j := range m.outputBins {
		n := m.outputMean[j] - 1
		m.windows[j] = m.windowOf(max(1, n))
		m.lateShare[j] = m.outputShare[j] * min(1, n) // part of a bin may have a single token
	}
	return m, nil
}

// PrefillOnly is the mix with a single token in every output, as a prefill replica serves it.
func (m *Mix) PrefillOnly() *Mix {
	only, err := NewMix(m.prompts, Lengths{sorted: []float64{1}, mean: 1})
	if err != nil {
		return m // never: a mix has prompts
	}
	return only
}

// fingerprint is equal for mixes of the same lengths.
func (m *Mix) fingerprint() (sum [sha256.Size]byte) {
	hash := sha256.New()
	var word [8]byte
	for _, part := range []Lengths{m.prompts.full(), m.outputs.full()} {
		count := uint64(len(part.sorted)) << 1
		if part.dense {
			count |= 1
		}
		binary.LittleEndian.PutUint64(word[:], count)
		hash.Write(word[:])
		for _, length := range part.sorted {
			binary.LittleEndian.PutUint64(word[:], math.Float64bits(length))
			hash.Write(word[:])
		}
	}
	hash.Sum(sum[:0])
	return sum
}

// window holds the decoding of other requests in the next n iterations. A request that began to
// decode s iterations ago and decodes for D = O-1 in total decodes k(s) = min((D-s)⁺, n) iterations
// of these. Integrals are over s.
type window struct {
	iterations float64    // n
	sum        float64    // A1 = E∫k
	position   float64    // A2 = E∫k·(s+k/2): output tokens in the context, over all iterations
	square     [3]float64 // Q = E∫k²(s+k/2)ʲ for j = 0, 1, 2
	meanSquare float64    // R = ∫(E k)²
	later      [5]float64 // E min(D, nU)ʲ, U uniform, for requests of later, for j = 1 to 4
}

func (m *Mix) windowOf(n float64) window {
	w := window{iterations: n}
	for a := range m.outputBins {
		share, d := m.outputShare[a], m.outputMean[a]-1
		short, rest := min(d, n), max(0, d-n)
		w.sum += share * (short*short/2 + n*rest)
		w.position += share * (d*short*short/2 - short*short*short/6 + n*((d+n/2)*rest-(d*d-n*n)/2*step(rest)))
		cube, middle := short*short*short, rest+n/2
		w.square[0] += share * (cube/3 + n*n*rest)
		w.square[1] += share * (d*cube/3 - cube*short/8 + n*n*rest*(rest+n)/2)
		w.square[2] += share * (cube*(d*d/3-d*short/4+short*short/20) + n*n*(middle*middle*middle-n*n*n/8)/3)
		for j, power := 1, short; j < len(w.later); j, power = j+1, power*short {
			w.later[j] += share * power * (1 - short/n*float64(j)/float64(j+1))
		}
		for b := range m.outputBins {
			w.meanSquare += share * m.outputShare[b] * overlap(d, m.outputMean[b]-1, n)
		}
	}
	return w
}

// step is 1 above 0.
func step(x float64) float64 {
	if x > 0 {
		return 1
	}
	return 0
}

// overlap is ∫ min((a-s)⁺, n)·min((b-s)⁺, n) ds.
func overlap(a, b, n float64) float64 {
	shorter, apart := min(a, b), math.Abs(a-b)
	// With u = shorter-s: min(u, n)·min(u+apart, n).
	first := min(shorter, max(0, n-apart)) // both decode to their end
	middle := min(shorter, n)              // the longer one lasts for the whole window
	return first*first*first/3 + apart*first*first/2 + n*(middle*middle-first*first)/2 + n*n*(shorter-middle)
}
