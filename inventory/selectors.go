package inventory

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// longestSelector is the most bytes of a selector that are read: each pod of its namespace may be
// compared with it.
const longestSelector = 2048

// parseSelector reads a selector in the form of a scale's status.selector.
func parseSelector(text string) (labels.Selector, error) {
	if len(text) > longestSelector {
		return nil, fmt.Errorf("it has %d bytes, and at most %d are read", len(text), longestSelector)
	}
	return labels.Parse(text)
}

// namedSelector is a target that names its pods by a selector.
type namedSelector struct {
	target   Key
	selector labels.Selector
}

// selectorIndex finds the selectors that match a pod without trying all of them: each is filed
// under one label that it asks for.
type selectorIndex struct {
	selectors []namedSelector
	byTerm    map[selectorTerm][]int
}

// selectorTerm is one label that a selector asks for. Those of selectors that ask for no certain
// label have the namespace only.
type selectorTerm struct{ namespace, key, value string }

// newSelectorIndex returns the index of the selectors, which are in order of precedence. Each is
// filed under its term that the fewest others have.
func newSelectorIndex(selectors []namedSelector) selectorIndex {
	index := selectorIndex{selectors: selectors, byTerm: map[selectorTerm][]int{}}
	common := map[selectorTerm]int{}
	for _, s := range selectors {
		for _, term := range s.terms() {
			common[term]++
		}
	}
	for i, s := range selectors {
		rarest := selectorTerm{namespace: s.target.Namespace}
		for _, term := range s.terms() {
			if rarest.key == "" || common[term] < common[rarest] {
				rarest = term
			}
		}
		index.byTerm[rarest] = append(index.byTerm[rarest], i)
	}
	return index
}

// terms returns the labels that every pod of the selector has.
func (s namedSelector) terms() (terms []selectorTerm) {
	requirements, _ := s.selector.Requirements()
	for _, r := range requirements {
		isListed := slices.Contains([]selection.Operator{selection.Equals, selection.DoubleEquals, selection.In}, r.Operator())
		if values := r.ValuesUnsorted(); isListed && len(values) == 1 {
			terms = append(terms, selectorTerm{s.target.Namespace, r.Key(), values[0]})
		}
	}
	return terms
}

// matching returns the targets whose selectors match a pod, in order of precedence.
func (x selectorIndex) matching(pod *corev1.Pod) (targets []Key) {
	for _, i := range x.find(pod.Namespace, pod.Labels) {
		targets = append(targets, x.selectors[i].target)
	}
	return targets
}

// find returns the indices of the selectors of a namespace that match labels, sorted.
func (x selectorIndex) find(namespace string, own labels.Set) []int {
	if len(x.selectors) == 0 {
		return nil
	}
	found := x.tried(nil, selectorTerm{namespace: namespace}, own)
	for key, value := range own {
		found = x.tried(found, selectorTerm{namespace, key, value}, own)
	}
	slices.Sort(found)
	return found
}

// tried adds the selectors of a term that match labels.
func (x selectorIndex) tried(found []int, term selectorTerm, own labels.Set) []int {
	for _, i := range x.byTerm[term] {
		if x.selectors[i].selector.Matches(own) {
			found = append(found, i)
		}
	}
	return found
}
