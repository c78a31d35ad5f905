package fleet

import "testing"

func TestAdviceSavesWhatRunsMinusWhatIsAdvised(t *testing.T) {
	facts := Facts{Current: 5, CurrentKnown: true, Cost: 2}
	for name, test := range map[string]struct {
		decision Decision
		saved    float64
		known    bool
	}{
		"fewer":               {Decision{Replicas: 2, Known: true, Facts: facts}, 6, true},
		"more":                {Decision{Replicas: 6, Known: true, Facts: facts}, -2, true},
		"held where it is":    {Decision{Replicas: 5, Known: true, Held: true, Facts: facts}, 0, true},
		"unknown advice":      {Decision{Held: true, Facts: facts}, 0, false},
		"unknown what stands": {Decision{Replicas: 2, Known: true, Facts: Facts{Cost: 2}}, 0, false},
	} {
		if saved, known := Advise(test.decision).Saved(); saved != test.saved || known != test.known {
			t.Errorf("%s saves %v (known %v), want %v (%v)", name, saved, known, test.saved, test.known)
		}
	}
}
