package collector

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
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

// rows are the series of an answer, without their labels: the answers about 50,000 pods have a
// million of them.
type rows struct {
	subjects []identity
	blocks   [][]row     // of up to rowsOfBlock rows, which are not copied as they grow
	streams  []streamRow // instead, if the query is for several instants
}

const rowsOfBlock = 4096

// append adds a row.
func (r *rows) append(next row) {
	last := len(r.blocks) - 1
	if last < 0 || len(r.blocks[last]) == cap(r.blocks[last]) {
		size := 16 // most answers are small
		if last >= 0 {
			size = rowsOfBlock
		}
		r.blocks, last = append(r.blocks, make([]row, 0, size)), last+1
	}
	r.blocks[last] = append(r.blocks[last], next)
}

// all has the rows in the order of the answer.
func (r *rows) all() iter.Seq[row] {
	return func(yield func(row) bool) {
		for _, block := range r.blocks {
			for _, found := range block {
				if !yield(found) {
					return
				}
			}
		}
	}
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
	case errors.Is(err, io.EOF): // no JSON at all
		return &v1.Error{Type: v1.ErrBadResponse, Msg: "the answer is empty"}
	case !is:
		return err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &v1.Error{Type: v1.ErrBadResponse, Msg: "the answer ends too early"}
	}
	return &v1.Error{Type: v1.ErrBadResponse, Msg: invalid.Error()}
}
