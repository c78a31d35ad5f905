package textbook

// Quantities of a queue that only tests compare.

// InSystem returns the mean number of requests, waiting or in service.
func (s State) InSystem() float64 { return s.Waiting + s.InService }

// Response returns the mean time in seconds from arrival to the end of service.
func (s State) Response() float64 { return s.Wait + s.Service }

// WaitTail returns the probability that an accepted request waits longer than t seconds, first come
// first served.
func (s State) WaitTail(t float64) float64 {
	switch {
	case t < 0:
		return 1
	case s.waits.share == 0:
		return 0
	}
	return s.waits.share * s.waits.beyond(s.waits.service*t)
}
