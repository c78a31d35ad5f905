package simulation

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"time"
)

// traceTime is the form of the dates that WriteTrace writes, with microseconds.
const traceTime = "2006-01-02T15:04:05.000000Z07:00"

// WriteTrace writes requests as the CSV that ReadTrace reads. The time of day of an arrival of 0 is
// begin. Models are not written: a trace is of one model.
func WriteTrace(w io.Writer, begin time.Time, requests []Request) error {
	buffered := bufio.NewWriter(w)
	fmt.Fprintf(buffered, "%s,%s,%s\n", columnTime, columnPrompt, columnOutput)
	for _, r := range requests {
		at := begin.Add(time.Duration(math.Round(r.Arrival * float64(time.Second))))
		fmt.Fprintf(buffered, "%s,%d,%d\n", at.UTC().Format(traceTime), r.Prompt, r.Output)
	}
	return buffered.Flush()
}
