package collector

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/wva-project/wva/engine"
)

// row is one series of an answer: a value of a part about a subject.
type row struct {
	value   float64
	bound   float64 // of a bucket
	subject int32   // an index of rows.subjects
	part    part
}

// streamRow is one series of an answer about several instants.
type streamRow struct {
	row
	values []model.SamplePair
}

// rows are the series of an answer, without their labels: an answer about 50,000 pods has a million
// of them.
type rows struct {
	subjects []identity
	single   []row
	streams  []streamRow // instead of single, if the query asks for several instants
}

// rowsClient sends a query and reads the rows of the answer while it arrives. The body that it
// returns is the same answer without rows, for client_golang to read.
type rowsClient struct {
	api.Client
	sender *http.Client
	reader *rowReader
}

// Do sends a request and returns the answer without rows.
func (c rowsClient) Do(ctx context.Context, request *http.Request) (*http.Response, []byte, error) {
	response, err := c.sender.Do(request.WithContext(ctx))
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	if response.StatusCode/100 != http.StatusOK/100 {
		body, err := io.ReadAll(response.Body)
		return response, body, err
	}
	envelope, err := c.reader.read(response.Body)
	return response, envelope, asBadResponse(err)
}

// asBadResponse returns an error as client_golang has it if the text is no JSON. Others are of the
// connection.
func asBadResponse(err error) error {
	invalid, is := errors.AsType[*jsontext.SyntacticError](err)
	switch {
	case err == io.EOF: // bare: nothing was sent
		return &v1.Error{Type: v1.ErrBadResponse, Msg: "the answer is empty"}
	case !is:
		return err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &v1.Error{Type: v1.ErrBadResponse, Msg: "the answer ends too early"}
	}
	return &v1.Error{Type: v1.ErrBadResponse, Msg: invalid.Error()}
}

// rowReader reads the JSON of one answer.
type rowReader struct {
	rows
	labels  [labelCount]string // their names, in JSON
	blocks  []engine.Labels    // of engines that have their KV cache size in labels, in JSON
	decoder *jsontext.Decoder
	index   map[identity]int32
	texts   map[string]string
	series  series
}

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

// series is what the answer has of one series.
type series struct {
	labels      [labelCount]string
	blockLabels [][2]string // the size and the number of blocks
	value       float64
	hasValue    bool
	values      []model.SamplePair
}

func newRowReader(o Options) *rowReader {
	r := &rowReader{index: make(map[identity]int32), texts: make(map[string]string)}
	for i, name := range [labelCount]string{partLabel, o.NamespaceLabel, o.PodLabel, o.ModelLabel, gatewayModelLabel, bucketBound} {
		r.labels[i] = strconv.Quote(name)
	}
	for _, e := range engine.Engines() {
		if e.Labels.BlockSize != "" {
			r.blocks = append(r.blocks, engine.Labels{BlockSize: strconv.Quote(e.Labels.BlockSize), BlockCount: strconv.Quote(e.Labels.BlockCount)})
		}
	}
	r.series.blockLabels = make([][2]string, len(r.blocks))
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
		switch r.decoder.PeekKind() {
		case end, 0: // or an error, which is read next
			_, err := r.decoder.ReadToken()
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
	s.labels, s.hasValue, s.values = [labelCount]string{}, false, nil
	clear(s.blockLabels)
	err := r.object(func(name jsontext.Value) error {
		switch string(name) {
		case `"metric"`:
			return r.object(r.readLabel)
		case `"value"`:
			pair, err := r.readPair()
			s.value, s.hasValue = float64(pair.Value), true
			return err
		case `"values"`:
			return r.until(']', func() error {
				pair, err := r.readPair()
				s.values = append(s.values, pair)
				return err
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
	for i, wanted := range r.blocks {
		switch string(name) {
		case wanted.BlockSize:
			return r.readText(&r.series.blockLabels[i][0])
		case wanted.BlockCount:
			return r.readText(&r.series.blockLabels[i][1])
		}
	}
	return r.decoder.SkipValue()
}

// readText reads a string. Equal ones share their memory.
func (r *rowReader) readText(into *string) error {
	value, err := r.decoder.ReadValue()
	if err != nil {
		return err
	}
	text, known := r.texts[string(value)]
	if !known {
		unquoted, err := jsontext.AppendUnquote(nil, value)
		if err != nil {
			return &v1.Error{Type: v1.ErrBadResponse, Msg: "the value of a label is not a string"}
		}
		text = string(unquoted)
		r.texts[string(value)] = text
	}
	*into = text
	return nil
}

// readPair reads an instant and a value.
func (r *rowReader) readPair() (model.SamplePair, error) {
	value, err := r.decoder.ReadValue()
	if err != nil {
		return model.SamplePair{}, err
	}
	instant, text, found := bytes.Cut(bytes.Trim(value, "[] \t\r\n"), []byte(","))
	seconds, instantErr := strconv.ParseFloat(string(bytes.TrimSpace(instant)), 64)
	text = bytes.TrimSpace(text)
	if !found || instantErr != nil || len(text) < 2 || text[0] != '"' {
		return model.SamplePair{}, errNoPair
	}
	number, err := strconv.ParseFloat(string(text[1:len(text)-1]), 64)
	if err != nil {
		return model.SamplePair{}, errNoPair
	}
	return model.SamplePair{Timestamp: model.Time(math.Round(seconds * 1e3)), Value: model.SampleValue(number)}, nil
}

var errNoPair error = &v1.Error{Type: v1.ErrBadResponse, Msg: "a value is not an instant with a number"}

// add adds a series to the rows.
func (r *rowReader) add(s *series) {
	p, known := partNamed[s.labels[partName]]
	if !known || !s.hasValue && s.values == nil {
		return // not one of ours: a proxy may add series of its own
	}
	found := row{part: p, value: s.value}
	if p == kvBlocks {
		if found.value, known = s.blockTokens(); !known {
			return // an engine that has not counted its blocks yet
		}
	}
	if p.ofHistogram() || p.ofLatencies() {
		bound, err := strconv.ParseFloat(s.labels[boundName], 64)
		if err != nil {
			return
		}
		found.bound = bound
	}
	found.subject = r.subjectOf(p)
	if s.values != nil {
		r.streams = append(r.streams, streamRow{found, s.values})
	} else {
		r.single = append(r.single, found)
	}
}

// subjectOf returns the index of the subject of the series.
func (r *rowReader) subjectOf(p part) int32 {
	labels := &r.series.labels
	who := identity{namespace: labels[namespaceName], pod: labels[podName], model: labels[modelName]}
	switch {
	case !p.ofModel():
		who.model = ""
	case p.ofGateway():
		who.pod, who.model = "", labels[gatewayModelName]
	case !p.ofPod():
		who.pod = ""
	}
	i, known := r.index[who]
	if !known {
		i = int32(len(r.subjects))
		r.index[who], r.subjects = i, append(r.subjects, who)
	}
	return i
}

// blockTokens returns the KV cache size of an engine that has it in labels.
func (s *series) blockTokens() (float64, bool) {
	for _, labels := range s.blockLabels {
		size, sizeErr := strconv.ParseFloat(labels[0], 64)
		count, countErr := strconv.ParseFloat(labels[1], 64)
		tokens := size * count
		if sizeErr == nil && countErr == nil && tokens > 0 && !math.IsInf(tokens, 0) {
			return tokens, true
		}
	}
	return 0, false
}
