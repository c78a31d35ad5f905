package textbook

import (
	"fmt"
	"testing"
)

func BenchmarkQueue(b *testing.B) {
	for _, batch := range []int{256, 4096} {
		q, err := New(batching(batch, 0.01), 1000)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s, err := q.At(0.9 * q.Capacity())
				if err != nil || s.Wait == 0 {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkWaitQuantile(b *testing.B) {
	q, err := New(batching(256, 0.01), 1000)
	if err != nil {
		b.Fatal(err)
	}
	s, err := q.At(1.001 * q.Capacity())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		s.WaitQuantile(0.95)
	}
}
