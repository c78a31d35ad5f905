package simulation

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/wva-project/wva/fleet"
)

// The columns of a trace, as the Azure LLM inference traces name them.
const (
	columnTime   = "TIMESTAMP"
	columnPrompt = "ContextTokens"
	columnOutput = "GeneratedTokens"
)

const (
	// maxErrors is how many errors of a trace are reported at once.
	maxErrors = 10
	// maxTokens is the longest prompt or output of a trace.
	maxTokens = 10_000_000
	// maxSpan is the longest trace, in seconds: a year and a day. More indicates a wrong timestamp.
	maxSpan = 366 * 24 * 3600
	// maxLine is the longest line of a trace in bytes. A device or another kind of file may have no
	// line at all, and would be read into memory.
	maxLine = 1 << 20
)

// timeLayouts are the forms of a date that a trace may use, besides plain seconds. Fractions of a
// second may follow the seconds in all of them.
var timeLayouts = [...]string{"2006-01-02 15:04:05", "2006-01-02 15:04:05Z07:00", time.RFC3339}

// ReadTrace reads the requests of one model from CSV. The header has the columns TIMESTAMP,
// ContextTokens and GeneratedTokens, in any order and among others. A timestamp is a date with a
// time ("2023-11-16 18:15:46.6805900", or RFC 3339; UTC if it names no zone) or a number of
// seconds, in the same form in all lines. Lines need not be sorted. A byte order mark and CRLF are
// accepted.
//
// The requests are sorted, the first at 0. A count of 0 tokens is read as 1, since engines work on
// at least one token and such a request was served too. Up to ten validation errors are reported at
// once, each with its line.
func ReadTrace(r io.Reader, model fleet.ModelID) ([]Request, error) {
	trace := traceReader{csv: csv.NewReader(&lineLimiter{from: r}), model: model}
	trace.csv.FieldsPerRecord = -1
	trace.csv.ReuseRecord = true
	if err := trace.readHeader(); err != nil {
		return nil, err
	}
	trace.readLines()
	if len(trace.errs) > 0 {
		return nil, errors.Join(trace.errs...)
	}
	return trace.sorted()
}

// traceReader reads one trace. While it reads, arrivals are seconds since the first line.
type traceReader struct {
	csv      *csv.Reader
	model    fleet.ModelID
	columns  [3]int     // the indexes of time, prompt and output in a line
	first    *timestamp // of the first line that has one
	requests []Request
	errs     []error
}

// timestamp is a time in one of the two forms.
type timestamp struct {
	date    time.Time
	seconds float64
	dated   bool
}

// lineLimiter reads lines, and fails at one that is too long.
type lineLimiter struct {
	from io.Reader
	line int // bytes of the line so far
}

func (l *lineLimiter) Read(p []byte) (int, error) {
	n, err := l.from.Read(p)
	for rest := p[:n]; ; {
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			l.line += len(rest)
			break
		}
		l.line, rest = 0, rest[end+1:]
	}
	if l.line > maxLine {
		return 0, fmt.Errorf("a line is longer than %d bytes; give it a CSV file", maxLine)
	}
	return n, err
}

func (t *traceReader) readHeader() error {
	header, err := t.csv.Read()
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("the trace is empty; its first line names the columns %s, %s and %s", columnTime, columnPrompt, columnOutput)
	}
	if err != nil {
		return fmt.Errorf("header: %w", err)
	}
	header[0] = strings.TrimPrefix(header[0], "\ufeff")
	line, _ := t.csv.FieldPos(0)
	var problems []string
	for i, name := range []string{columnTime, columnPrompt, columnOutput} {
		found := 0
		for at, column := range header {
			if strings.EqualFold(strings.TrimSpace(column), name) {
				t.columns[i] = at
				found++
			}
		}
		switch {
		case found == 0:
			problems = append(problems, "no column "+name)
		case found > 1:
			problems = append(problems, fmt.Sprintf("%d columns %s", found, name))
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf("line %d: %s; the columns found are %s; write a header with one column each of %s, %s and %s",
		line, strings.Join(problems, ", "), columnsText(header), columnTime, columnPrompt, columnOutput)
}

// columnsText lists the columns of a header. A file that is no CSV may have a very long one.
func columnsText(header []string) string {
	const most = 12
	var texts []string
	for i, column := range header {
		if i == most {
			texts = append(texts, fmt.Sprintf("%d more", len(header)-most))
			break
		}
		texts = append(texts, quoted(column))
	}
	return strings.Join(texts, ", ")
}

// quoted quotes a field, of which a long one is cut.
func quoted(field string) string {
	const longest = 40
	field = strings.TrimSpace(field)
	if runes := []rune(field); len(runes) > longest {
		field = string(runes[:longest]) + "..."
	}
	return strconv.Quote(field)
}

func (t *traceReader) readLines() {
	for {
		record, err := t.csv.Read()
		if errors.Is(err, io.EOF) {
			return
		}
		if len(t.errs) >= maxErrors {
			t.errs = append(t.errs, fmt.Errorf("reading stopped after %d errors; there may be more", maxErrors))
			return
		}
		var syntax *csv.ParseError
		switch {
		case err == nil:
			t.readLine(record)
		case errors.As(err, &syntax):
			t.errs = append(t.errs, fmt.Errorf("line %d: %w", syntax.Line, syntax.Err))
		default:
			t.errs = append(t.errs, fmt.Errorf("reading the trace: %w", err))
			return
		}
	}
}

// readLine adds the request of one line, or its validation errors.
func (t *traceReader) readLine(record []string) {
	line, _ := t.csv.FieldPos(0)
	if last := max(t.columns[0], t.columns[1], t.columns[2]); last >= len(record) {
		t.errs = append(t.errs, fmt.Errorf("line %d: %d fields; the header requires at least %d", line, len(record), last+1))
		return
	}
	arrival, timeErr := t.arrival(strings.TrimSpace(record[t.columns[0]]))
	prompt, promptErr := parseTokens(columnPrompt, record[t.columns[1]])
	output, outputErr := parseTokens(columnOutput, record[t.columns[2]])
	valid := true
	for _, err := range []error{timeErr, promptErr, outputErr} {
		if err != nil {
			valid = false
			t.errs = append(t.errs, fmt.Errorf("line %d: %w", line, err))
		}
	}
	if valid {
		t.requests = append(t.requests, Request{Arrival: arrival, Model: t.model, Prompt: prompt, Output: output})
	}
}

// arrival returns the seconds between the trace's first timestamp and the given one.
func (t *traceReader) arrival(text string) (float64, error) {
	at, err := parseTimestamp(text)
	if err != nil {
		return 0, err
	}
	if t.first == nil {
		t.first = &at
	}
	if at.dated != t.first.dated {
		return 0, fmt.Errorf("%s %s: dates and seconds are mixed; write all in one form", columnTime, quoted(text))
	}
	since := at.seconds - t.first.seconds
	if at.dated {
		since = at.date.Sub(t.first.date).Seconds()
	}
	if math.Abs(since) > maxSpan {
		return 0, fmt.Errorf("%s %s: over a year away from the trace's first line; correct it or shorten the trace", columnTime, quoted(text))
	}
	return since, nil
}

func parseTimestamp(text string) (timestamp, error) {
	for _, layout := range timeLayouts {
		if date, err := time.Parse(layout, text); err == nil {
			return timestamp{date: date.UTC(), dated: true}, nil
		}
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(seconds) || math.IsInf(seconds, 0) {
		return timestamp{}, fmt.Errorf("%s %s: write it as 2023-11-16 18:15:46.68, as RFC 3339 or as seconds", columnTime, quoted(text))
	}
	return timestamp{seconds: seconds}, nil
}

func parseTokens(column, text string) (int, error) {
	tokens, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || tokens < 0 || tokens > maxTokens {
		return 0, fmt.Errorf("%s %s: write a whole number from 0 to %d", column, quoted(text), maxTokens)
	}
	return max(1, tokens), nil
}

// sorted returns the requests in order, the first at 0.
func (t *traceReader) sorted() ([]Request, error) {
	if len(t.requests) == 0 {
		return nil, errors.New("the trace has a header and no requests; give it a line for each request")
	}
	sortByArrival(t.requests)
	first := t.requests[0].Arrival
	for i := range t.requests {
		t.requests[i].Arrival -= first
	}
	return t.requests, nil
}
