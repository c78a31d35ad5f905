package scaler

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/wva-project/wva/fleet"
	wvav1alpha1 "github.com/wva-project/wva/proto/wva/v1alpha1"
)

// lister asks for pages of a plan.
type lister struct {
	*world
	client wvav1alpha1.OperatorServiceClient
}

func newLister(t *testing.T, plan fleet.Plan) *lister {
	w := newWorld(t)
	w.board.Post(plan)
	return &lister{w, w.operators()}
}

// planOf returns a plan of so many variants, every second of which is in the namespace test.
func planOf(variants int) fleet.Plan {
	plan := fleet.Plan{Time: start}
	for i := range variants {
		v := decided(fmt.Sprintf("v%05d", i), 1)
		if i%2 == 1 {
			v.Variant.Namespace = "test"
		}
		plan.Decisions = append(plan.Decisions, v)
	}
	return plan
}

// pages follows the tokens to the end, and returns how many variants each page holds.
func (l *lister) pages(request *wvav1alpha1.ListVariantsRequest) (sizes []int, names []string) {
	l.Helper()
	for {
		response, err := l.client.ListVariants(l.Context(), request)
		require.NoError(l, err)
		sizes = append(sizes, len(response.Variants))
		for _, v := range response.Variants {
			names = append(names, v.Namespace+"/"+v.Name)
		}
		if response.NextPageToken == "" {
			return sizes, names
		}
		request.PageToken = response.NextPageToken
	}
}

func TestPagesTogetherHoldEachVariantOnce(t *testing.T) {
	l := newLister(t, planOf(2500))
	_, want := l.pages(&wvav1alpha1.ListVariantsRequest{PageSize: 2000})
	require.Len(t, want, 2500)
	require.IsIncreasing(t, want)
	for size, sizes := range map[int32][]int{0: {1000, 1000, 500}, 1250: {1250, 1250}, 2000: {2000, 500}, 1 << 30: {2000, 500}} {
		got, names := l.pages(&wvav1alpha1.ListVariantsRequest{PageSize: size})
		require.Equal(t, sizes, got)
		require.Equal(t, want, names)
	}
	sizes, names := l.pages(&wvav1alpha1.ListVariantsRequest{Namespace: "test", PageSize: 500})
	require.Equal(t, []int{500, 500, 250}, sizes)
	require.True(t, strings.HasPrefix(names[0], "test/"))
}

func TestAPageFollowsARemovedVariant(t *testing.T) {
	l := newLister(t, planAt(start, decided("a", 1), decided("c", 1)))
	response, err := l.client.ListVariants(t.Context(), &wvav1alpha1.ListVariantsRequest{PageToken: "prod/b"})
	require.NoError(t, err)
	require.Len(t, response.Variants, 1)
	require.Equal(t, "c", response.Variants[0].Name)
	require.Empty(t, response.NextPageToken)
}

func TestAPageFitsIntoAMessage(t *testing.T) {
	plan := planOf(2000)
	for i := range plan.Decisions {
		plan.Decisions[i].Reason.Text = strings.Repeat("x", 2000)
	}
	l := newLister(t, plan)
	response, err := l.client.ListVariants(t.Context(), &wvav1alpha1.ListVariantsRequest{PageSize: 2000})
	require.NoError(t, err)
	require.Less(t, proto.Size(response), 4<<20)
	require.NotEmpty(t, response.NextPageToken)
	_, names := l.pages(&wvav1alpha1.ListVariantsRequest{PageSize: 2000})
	require.Len(t, names, 2000)
}

func TestInvalidPagesAreAClearStatus(t *testing.T) {
	l := newLister(t, planOf(1))
	_, err := l.client.ListVariants(t.Context(), &wvav1alpha1.ListVariantsRequest{PageSize: -1})
	requireStatus(t, err, codes.InvalidArgument, "page_size -1 is negative")
	_, err = l.client.ListVariants(t.Context(), &wvav1alpha1.ListVariantsRequest{PageToken: "7"})
	requireStatus(t, err, codes.InvalidArgument, "use next_page_token of the previous page")
}

func TestAPageHoldsTheConflictsOfItsVariants(t *testing.T) {
	plan := planAt(start, decided("a", 1), decided("b", 1), decided("c", 1))
	plan.Conflicts = []fleet.Conflict{
		{Type: fleet.ConflictInconsistentMetadata, Variants: []fleet.VariantID{variant("a"), variant("c")}, Text: "a and c differ"},
		{Type: fleet.ConflictDuplicateTarget, Variants: []fleet.VariantID{variant("b"), variant("c")}, Text: "b and c claim one target"},
	}
	l := newLister(t, plan)
	response, err := l.client.ListVariants(t.Context(), &wvav1alpha1.ListVariantsRequest{PageSize: 1})
	require.NoError(t, err)
	require.Len(t, response.Conflicts, 1)
	require.True(t, proto.Equal(&wvav1alpha1.Conflict{Type: "InconsistentMetadata", Variants: []string{"prod/a", "prod/c"}, Message: "a and c differ"}, response.Conflicts[0]))
	response, err = l.client.ListVariants(t.Context(), &wvav1alpha1.ListVariantsRequest{})
	require.NoError(t, err)
	require.Len(t, response.Conflicts, 2)
}
