package analyzer

import "container/list"

// recent keeps values by their keys, and forgets those that were not used for the longest. The zero
// value is empty.
type recent[K comparable, V any] struct {
	elements map[K]*list.Element
	order    list.List // of *kept, the latest use first
}

// kept is a value with the cycle of its latest use.
type kept[K comparable, V any] struct {
	key   K
	value V
	used  int
}

// get returns the value of a key, which counts as used in the cycle.
func (r *recent[K, V]) get(key K, cycle int) (value V, found bool) {
	e, found := r.elements[key]
	if !found {
		return value, false
	}
	r.order.MoveToFront(e)
	k := e.Value.(*kept[K, V])
	k.used = cycle
	return k.value, true
}

// put adds a value, and drops the oldest if there are more than most.
func (r *recent[K, V]) put(key K, value V, cycle, most int) {
	if r.elements == nil {
		r.elements = make(map[K]*list.Element)
	}
	if e, found := r.elements[key]; found {
		r.order.Remove(e)
	}
	r.elements[key] = r.order.PushFront(&kept[K, V]{key, value, cycle})
	for r.order.Len() > most {
		r.dropOldest()
	}
}

// forget drops the values that were last used before a cycle.
func (r *recent[K, V]) forget(before int) {
	for e := r.order.Back(); e != nil && e.Value.(*kept[K, V]).used < before; e = r.order.Back() {
		r.dropOldest()
	}
}

func (r *recent[K, V]) dropOldest() {
	oldest := r.order.Back()
	delete(r.elements, oldest.Value.(*kept[K, V]).key)
	r.order.Remove(oldest)
}
