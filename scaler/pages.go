package scaler

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/wva-project/wva/fleet"
	wvav1alpha1 "github.com/wva-project/wva/proto/wva/v1alpha1"
)

// The size of a page of variants. gRPC's clients reject messages above 4 MiB by default; the rest
// up to that is for conflicts.
const (
	defaultPageSize = 1000
	maxPageSize     = 2000
	maxPageBytes    = 3 << 20
)

// page is the part of the variants that a request asks for.
type page struct {
	namespace string          // empty: all
	after     fleet.VariantID // the last of the previous page; zero for the first page
	size      int
}

// pageOf reads a request.
func pageOf(request *wvav1alpha1.ListVariantsRequest) (page, error) {
	p := page{namespace: request.GetNamespace(), size: int(request.GetPageSize())}
	switch {
	case p.size < 0:
		return page{}, newError(badRequest, fmt.Sprintf("page_size %d is negative; omit it for %d, or set it to 1 to %d", p.size, defaultPageSize, maxPageSize))
	case p.size == 0:
		p.size = defaultPageSize
	}
	p.size = min(p.size, maxPageSize)
	if err := p.after.UnmarshalText([]byte(request.GetPageToken())); err != nil {
		return page{}, newError(badRequest, "page_token is invalid; use next_page_token of the previous page, or omit it")
	}
	return p, nil
}

// fill adds the page of the variants, which are sorted, and the token of the next page if there is
// one.
func (p page) fill(response *wvav1alpha1.ListVariantsResponse, all []listed) {
	from, found := slices.BinarySearchFunc(all, p.after, func(d listed, id fleet.VariantID) int { return d.Variant.Compare(id) })
	if found {
		from++
	}
	bytes := 0
	for _, d := range all[from:] {
		if p.namespace != "" && p.namespace != d.Variant.Namespace {
			continue
		}
		message := variantMessage(d)
		bytes += proto.Size(message)
		if n := len(response.Variants); n > 0 && (n == p.size || bytes > maxPageBytes) {
			last := response.Variants[n-1]
			response.NextPageToken = fleet.VariantID{Namespace: last.GetNamespace(), Name: last.GetName()}.String()
			return
		}
		response.Variants = append(response.Variants, message)
	}
}
