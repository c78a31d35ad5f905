package queueing

// MeanRate returns λ_mean, the rate in requests per second at which the mean iteration of a replica
// takes the limit on ITL in seconds. A limit of zero is none; then it is the rate at which work
// arrives as fast as it can be done. A request adds promptWork seconds to iterations by its prompt
// and decodeWork by decoding, each a mean over the requests. With w their sum
//
//	T = α + λT·w,  λ_mean = (1 - α/ITL)/w
//
// It is 0 if an iteration without work takes the limit, and +Inf without work. It is the answer of
// sizing by means, with which other answers are compared.
func MeanRate(r Replica, promptWork, decodeWork, itl float64) float64 {
	share := 1.0
	if itl > 0 {
		share = max(0, 1-r.Iteration/itl)
	}
	if share == 0 {
		return 0
	}
	return share / (promptWork + decodeWork)
}
