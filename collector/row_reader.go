package collector

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/wva-project/wva/engine"
)

// rowReader reads the JSON of one answer.
type rowReader struct {
	rows
	labels     [labelCount]string // their names, in JSON
	cacheSizes []engine.Labels    // of engines that have their KV cache size in labels, in JSON
	decoder    *jsontext.Decoder
	texts      []string // values of labels, each once
	textIndex  map[string]int32
	index      map[subject]int32
	series     series
}

// subject is an identity by the indices of its texts.
type subject struct{ namespace, pod, model int32 }

// The labels that are read of every series.
const (
	partName = iota
	namespaceName
	podName
	modelName
	gatewayModelName
	boundName
	labelCount
)

// series is the content of one series of the answer.
type series struct {
	labels      [labelCount]int32 // indices of texts; 0: the empty one
	blockLabels [][2]int32        // the size and the number of blocks
	value       float64
	hasValue    bool
	values      []model.SamplePair
}

func newRowReader(o Options) *rowReader {
	r := &rowReader{texts: []string{""}, textIndex: map[string]int32{"": 0}, index: make(map[subject]int32)}
	for i, name := range [labelCount]string{partLabel, o.NamespaceLabel, o.PodLabel, o.ModelLabel, gatewayModelLabel, bucketBound} {
		r.labels[i] = strconv.Quote(name)
	}
	for _, e := range engine.Engines() {
		if e.Labels.BlockSize != "" {
			r.cacheSizes = append(r.cacheSizes, engine.Labels{BlockSize: strconv.Quote(e.Labels.BlockSize), BlockCount: strconv.Quote(e.Labels.BlockCount)})
		}
	}
	r.series.blockLabels = make([][2]int32, len(r.cacheSizes))
	return r
}

// read reads an answer to its end, and returns it without its rows. An answer that is marked as
// partial, as VictoriaMetrics does it, gets a warning, as Thanos and Mimir give it.
func (r *rowReader) read(body io.Reader) ([]byte, error) {
	r.decoder = jsontext.NewDecoder(body, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	var partial bool
	envelope, err := r.copyObject(func(name jsontext.Value) ([]byte, error) {
		switch string(name) {
		case `"data"`:
			if r.decoder.PeekKind() == '{' {
				return r.copyObject(r.readData)
			}
		case `"isPartial"`:
			value, err := r.decoder.ReadValue()
			partial = partial || string(value) == "true"
			return value, err
		}
		return r.decoder.ReadValue()
	})
	if err != nil {
		return nil, err
	}
	if _, err := r.decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, cmp.Or(err, errTwoAnswers)
	}
	if partial {
		envelope = append(bytes.TrimSuffix(envelope, []byte("}")), `,"warnings":["isPartial is true"]}`...)
	}
	return envelope, nil
}

var errTwoAnswers error = &v1.Error{Type: v1.ErrBadResponse, Msg: "there is more text after the answer"}

// readData reads a member of the data, and returns it without rows.
func (r *rowReader) readData(name jsontext.Value) ([]byte, error) {
	if string(name) != `"result"` || r.decoder.PeekKind() != '[' {
		return r.decoder.ReadValue()
	}
	rest := []byte("[")
	err := r.until(']', func() error {
		if r.decoder.PeekKind() == '{' {
			return r.readSeries()
		}
		value, err := r.decoder.ReadValue() // of a scalar
		rest = append(append(rest, value...), ',')
		return err
	})
	return append(bytes.TrimSuffix(rest, []byte(",")), ']'), err
}

// copyObject returns an object with the values that the function returns for its names.
func (r *rowReader) copyObject(member func(name jsontext.Value) ([]byte, error)) ([]byte, error) {
	text := []byte("{")
	err := r.object(func(name jsontext.Value) error {
		text = append(append(text, name...), ':')
		value, err := member(name)
		text = append(append(text, value...), ',')
		return err
	})
	return append(bytes.TrimSuffix(text, []byte(",")), '}'), err
}

// object calls the function with the name of each member of an object, in JSON, to read its value.
// The name is valid until then.
func (r *rowReader) object(member func(name jsontext.Value) error) error {
	return r.until('}', func() error {
		name, err := r.decoder.ReadValue()
		if err != nil {
			return err
		}
		return member(name)
	})
}

// until reads the beginning of an object or array, calls the function for each member, and reads
// the end.
func (r *rowReader) until(end jsontext.Kind, member func() error) error {
	if _, err := r.decoder.ReadToken(); err != nil {
		return err
	}
	for {
		if next := r.decoder.PeekKind(); next == end || next == jsontext.KindInvalid {
			_, err := r.decoder.ReadToken() // the end, or the error
			return err
		}
		if err := member(); err != nil {
			return err
		}
	}
}

// readSeries reads one series and adds it to the rows, if it is one of ours that has a value.
func (r *rowReader) readSeries() error {
	s := &r.series
	s.labels, s.hasValue, s.values = [labelCount]int32{}, false, nil
	clear(s.blockLabels)
	err := r.object(func(name jsontext.Value) error {
		switch string(name) {
		case `"metric"`:
			return r.object(r.readLabel)
		case `"value"`:
			_, text, err := r.readPair()
			if err == nil {
				s.value, err = parseNumber(text)
			}
			s.hasValue = true
			return err
		case `"values"`:
			return r.until(']', func() error {
				instant, text, err := r.readPair()
				if err != nil {
					return err
				}
				seconds, instantErr := parseNumber(instant)
				value, valueErr := parseNumber(text)
				s.values = append(s.values, model.SamplePair{
					Timestamp: model.Time(math.Round(seconds * 1e3)), Value: model.SampleValue(value),
				})
				return cmp.Or(instantErr, valueErr)
			})
		}
		return r.decoder.SkipValue() // such as a native histogram
	})
	if err == nil {
		r.add(s)
	}
	return err
}

// readLabel reads the value of a label.
func (r *rowReader) readLabel(name jsontext.Value) error {
	for i, wanted := range r.labels {
		if string(name) == wanted {
			return r.readText(&r.series.labels[i])
		}
	}
	for i, wanted := range r.cacheSizes {
		switch string(name) {
		case wanted.BlockSize:
			return r.readText(&r.series.blockLabels[i][0])
		case wanted.BlockCount:
			return r.readText(&r.series.blockLabels[i][1])
		}
	}
	return r.decoder.SkipValue()
}

// readText reads a string, and returns the index of its text.
func (r *rowReader) readText(into *int32) error {
	value, err := r.decoder.ReadValue()
	if err != nil {
		return err
	}
	if value.Kind() != '"' {
		return &v1.Error{Type: v1.ErrBadResponse, Msg: "the value of a label is not a string"}
	}
	text := value[1 : len(value)-1]
	if bytes.IndexByte(text, '\\') >= 0 || !utf8.Valid(text) {
		text, _ = jsontext.AppendUnquote(nil, value) // invalid UTF-8 is replaced
	}
	at, known := r.textIndex[string(text)]
	if !known {
		at = int32(len(r.texts))
		r.texts = append(r.texts, string(text))
		r.textIndex[r.texts[at]] = at
	}
	*into = at
	return nil
}

// readPair reads an instant and a value. Both are valid until the next reading.
func (r *rowReader) readPair() (instant, value []byte, err error) {
	pair, err := r.decoder.ReadValue()
	if err != nil {
		return nil, nil, err
	}
	instant, text, found := bytes.Cut(bytes.Trim(pair, "[] \t\r\n"), []byte(","))
	text = bytes.TrimSpace(text)
	if !found || len(text) < 2 || text[0] != '"' {
		return nil, nil, errNoPair
	}
	return bytes.TrimSpace(instant), text[1 : len(text)-1], nil
}

func parseNumber(text []byte) (float64, error) {
	value, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return 0, errNoPair
	}
	return value, nil
}

var errNoPair error = &v1.Error{Type: v1.ErrBadResponse, Msg: "a value is not an instant with a number"}

// add adds a series to the rows.
func (r *rowReader) add(s *series) {
	p, known := partNamed[r.texts[s.labels[partName]]]
	if !known || !s.hasValue && s.values == nil {
		return // not one of ours: a proxy may add series of its own
	}
	found := row{part: p, value: s.value}
	if p == kvBlocks {
		if found.value, known = r.blockTokens(s); !known {
			return // an engine that has not counted its blocks yet
		}
	}
	if p.ofHistogram() || p.ofLatencies() {
		bound, err := strconv.ParseFloat(r.texts[s.labels[boundName]], 64)
		if err != nil {
			return
		}
		found.bound = bound
	}
	found.subject = r.subjectOf(s, p)
	if s.values != nil {
		r.streams = append(r.streams, streamRow{found, s.values})
	} else {
		r.append(found)
	}
}

// subjectOf returns the index of the subject of a series.
func (r *rowReader) subjectOf(s *series, p part) int32 {
	who := subject{namespace: s.labels[namespaceName], pod: s.labels[podName], model: s.labels[modelName]}
	switch {
	case !p.ofModel():
		who.model = 0
	case p.ofGateway():
		who.pod, who.model = 0, s.labels[gatewayModelName]
	case !p.ofPod():
		who.pod = 0
	}
	i, known := r.index[who]
	if !known {
		i = int32(len(r.subjects))
		r.subjects = append(r.subjects, identity{r.texts[who.namespace], r.texts[who.pod], r.texts[who.model]})
		r.index[who] = i
	}
	return i
}

// blockTokens returns the KV cache size of an engine that has it in labels.
func (r *rowReader) blockTokens(s *series) (float64, bool) {
	for _, labels := range s.blockLabels {
		size, sizeErr := strconv.ParseFloat(r.texts[labels[0]], 64)
		count, countErr := strconv.ParseFloat(r.texts[labels[1]], 64)
		tokens := size * count
		if sizeErr == nil && countErr == nil && tokens > 0 && !math.IsInf(tokens, 0) {
			return tokens, true
		}
	}
	return 0, false
}
