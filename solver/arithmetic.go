package solver

import (
	"math"
	"math/bits"
)

const (
	// whole is a model's demand in parts, and tolerance the number of parts that may stay unserved.
	whole     int64 = 1 << 52
	tolerance       = whole >> 31
	// maxSum bounds every sum of costs, and maxWeight the replicas that are counted in one sum.
	maxSum          = 1 << 60
	maxWeight int64 = 1 << 36
	// unreachable is the cost of an infeasible plan.
	unreachable int64 = math.MaxInt64
)

// parts returns the capacity of one replica in parts of the demand, rounded down, at most the
// whole.
func parts(capacity, demand float64) int64 {
	share := capacity / demand
	if share >= 1 {
		return whole
	}
	return int64(share * float64(whole))
}

// remaining returns the need that is left after n replicas serve their capacity, at least zero.
func remaining(need, capacity, n int64) int64 {
	high, low := bits.Mul64(uint64(capacity), uint64(n))
	if high > 0 || low >= uint64(need) {
		return 0
	}
	return need - int64(low)
}

// divideUp returns ⌈a/b⌉ of a >= 0 and b > 0.
func divideUp(a, b int64) int64 {
	if a == 0 {
		return 0
	}
	return (a-1)/b + 1
}

// roundedRatio returns a/b of a >= 0 and b > 0, rounded to the nearest.
func roundedRatio(a, b int64) int64 { return (a + b/2) / b }

// scale returns a·b/c, rounded to the nearest. The result must fit in int64.
func scale(a, b, c int64) int64 {
	high, low := bits.Mul64(uint64(a), uint64(b))
	low, carry := bits.Add64(low, uint64(c)/2, 0)
	quotient, _ := bits.Div64(high+carry, low, uint64(c))
	return int64(quotient)
}

// floorOf returns a whole number that is at most the exact value of which x is the float. It equals
// the exact value if that is whole and below 2^46: x is off by two roundings at most.
func floorOf(x float64) int64 {
	lower := float64(x*(1-0x1p-50)) - 0x1p-4
	n := int64(lower)
	if float64(n) < lower {
		n++
	}
	return n
}

func greatestDivisor(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
