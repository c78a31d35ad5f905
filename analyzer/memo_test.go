package analyzer

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/wva-project/wva/analyzer/queueing"
	"github.com/wva-project/wva/fleet"
)

// differentModel is a model whose lengths no other has.
func differentModel(i int) Model {
	m := chat(40, Variant{Profile: h100(), Objective: slo(time.Second, 25*time.Millisecond)})
	m.PromptTokens, m.OutputTokens = fleet.Observed(100*float64(1+i%60)), fleet.Observed(20*float64(1+i/60))
	return m
}

// The memo keeps the mixes of as many models as there are: it did forget all of them at 2,048.
func TestMemoKeepsTheMixesOfALargeFleet(t *testing.T) {
	const models = 2400
	memo := &Memo{}
	var before [models]*queueing.Mix
	for cycle := range 3 {
		memo.NextCycle()
		for i := range models {
			mix, why := differentModel(i).mix(fleet.RoleBoth, 0, memo)
			if mix == nil {
				t.Fatal(why)
			}
			if cycle > 0 && mix != before[i] {
				t.Fatalf("cycle %d: the mix of model %d was made again", cycle, i)
			}
			before[i] = mix
		}
	}
	if kept := memo.mixes.order.Len(); kept < models/2 {
		t.Errorf("%d different mixes of %d models", kept, models)
	}
}

// A model whose lengths change leaves no answers behind for long, and those of others stay.
func TestMemoForgetsWhatNoCycleUses(t *testing.T) {
	memo := &Memo{}
	for cycle := range 3 * keptCycles {
		memo.NextCycle()
		for _, i := range []int{0, 1 + cycle} {
			if got := Analyze(differentModel(i), Options{Memo: memo})[0]; got != Analyze(differentModel(i), Options{})[0] {
				t.Fatalf("model %d: %+v with the memo", i, got)
			}
		}
		mixes, answers := memo.mixes.order.Len(), memo.answers.order.Len()
		if most := keptCycles + 2; mixes > most || answers > most {
			t.Fatalf("cycle %d: %d mixes, %d answers are kept", cycle, mixes, answers)
		}
	}
	for e := memo.mixes.order.Back(); e != nil; e = e.Prev() {
		if k := e.Value.(*kept[string, *queueing.Mix]); k.used < memo.cycle-keptCycles {
			t.Errorf("a mix of cycle %d is kept in cycle %d", k.used, memo.cycle)
		}
	}
}

func TestRecentDropsTheOldest(t *testing.T) {
	var r recent[string, int]
	for i, key := range []string{"a", "b", "c"} {
		r.put(key, i, 1, 3)
	}
	r.get("a", 2)
	r.put("d", 3, 2, 3) // b is the oldest
	r.put("c", 7, 2, 3)
	got := ""
	for _, key := range []string{"a", "b", "c", "d"} {
		value, found := r.get(key, 2)
		got += fmt.Sprint(key, value, found, " ")
	}
	if want := "a0 true b0 false c7 true d3 true "; got != want {
		t.Errorf("kept %s, want %s", got, want)
	}
	r.get("d", 5)
	if r.forget(4); r.order.Len() != 1 || len(r.elements) != 1 {
		t.Errorf("%d are kept, want the one that was used", r.order.Len())
	}
}

// A map never finds a key with NaN again, not even to delete it.
func TestMemoKeepsNoInvalidQuestions(t *testing.T) {
	var memo Memo
	q := queueing.Question{Objective: queueing.Objective{TTFT: math.NaN()}}
	for range 3 {
		if _, err := memo.maxRate(q, memo.answersTo(q), nil); err == nil {
			t.Fatal("a limit of NaN is answered")
		}
	}
	if kept := len(memo.answers.elements); kept != 0 {
		t.Errorf("%d questions without an answer are kept", kept)
	}
}
