package solver

// layout is the places of the second derivatives of the smoothed dual: one for each pair of limits
// that some competitor uses together.
type layout struct {
	pairs    [][]int32 // of each competitor, the pair of each two of its terms, row by row
	count    int       // of the pairs of classes
	parts    []part    // of all pairs of classes
	rows     [][]entry // of each limit, the entries of its row of the curvature
	entries  int
	diagonal []int32   // of each limit, its own entry
	largest  []float64 // of each limit, the largest amount of a class
}

// entry is one of a row of the curvature: the other limit, and the index of the value.
type entry struct{ limit, at int32 }

// part is the share of a pair's covariance in an entry.
type part struct {
	pair, at int32
	factor   float64
}

// mostPaired is the largest number of terms of a competitor of which pairs are counted: of more,
// only each by itself.
const mostPaired = 64

func newLayout(k *component) *layout {
	y := &layout{
		pairs: make([][]int32, k.size()), rows: make([][]entry, len(k.slack)), diagonal: make([]int32, len(k.slack)),
		largest: make([]float64, len(k.slack)),
	}
	known, entries := newPairTable(len(k.classes)), newPairTable(len(k.slack))
	for i := range k.slack {
		y.diagonal[i] = y.entryOf(entries, int32(i), int32(i))
	}
	for i := range y.pairs {
		terms := k.competitor(i).terms
		y.pairs[i] = make([]int32, 0, len(terms)*(len(terms)+1)/2)
		for a := range terms {
			for b := range terms[:a+1] {
				pair := int32(none)
				if a == b || len(terms) <= mostPaired {
					pair = y.pairOf(k, known, entries, [2]int32{max(terms[a], terms[b]), min(terms[a], terms[b])})
				}
				y.pairs[i] = append(y.pairs[i], pair)
			}
		}
	}
	for i := range k.classes {
		for _, u := range k.classes[i].uses {
			y.largest[u.limit] = max(y.largest[u.limit], float64(u.amount))
		}
	}
	return y
}

// entryOf returns the entry of two limits, and adds it if it is new.
func (y *layout) entryOf(known *pairTable, a, b int32) int32 {
	at := known.at(a, b)
	if *at == 0 {
		y.entries++
		*at = int32(y.entries)
		y.rows[a] = append(y.rows[a], entry{b, *at - 1})
	}
	return *at - 1
}

// pairOf returns the pair of two classes, and adds it if it is new.
func (y *layout) pairOf(k *component, known, entries *pairTable, classes [2]int32) int32 {
	at := known.at(classes[0], classes[1])
	if *at > 0 {
		return *at - 1
	}
	pair := int32(y.count)
	y.count++
	*at = pair + 1
	for _, u := range k.classes[classes[0]].uses {
		for _, w := range k.classes[classes[1]].uses {
			product := float64(u.amount * w.amount)
			y.parts = append(y.parts, part{pair, y.entryOf(entries, u.limit, w.limit), product})
			if classes[0] != classes[1] {
				y.parts = append(y.parts, part{pair, y.entryOf(entries, w.limit, u.limit), product})
			}
		}
	}
	return pair
}

// pairTable is a number for each pair of indices.
type pairTable struct {
	n      int32
	dense  []int32 // if there are few
	sparse map[[2]int32]*int32
}

// mostDense is the largest number of indices for which all pairs are stored.
const mostDense = 256

func newPairTable(n int) *pairTable {
	if n <= mostDense {
		return &pairTable{n: int32(n), dense: make([]int32, n*n)}
	}
	return &pairTable{sparse: map[[2]int32]*int32{}}
}

func (t *pairTable) at(a, b int32) *int32 {
	if t.dense != nil {
		return &t.dense[a*t.n+b]
	}
	value := t.sparse[[2]int32{a, b}]
	if value == nil {
		value = new(int32)
		t.sparse[[2]int32{a, b}] = value
	}
	return value
}
