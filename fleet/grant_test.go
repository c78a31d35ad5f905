package fleet

import "testing"

func TestPriorityIsGrantedNotClaimed(t *testing.T) {
	for _, test := range []struct {
		name      string
		class     ServiceClass
		namespace string
		want      bool
	}{
		{"priority without namespaces", ServiceClass{Priority: 10}, "team-a", false},
		{"named", ServiceClass{Priority: 10, Namespaces: []string{"team-b", "team-a"}}, "team-a", true},
		{"another one", ServiceClass{Priority: 10, Namespaces: []string{"team-b"}}, "team-a", false},
		{"by pattern", ServiceClass{Priority: 10, Namespaces: []string{"prod-*"}}, "prod-eu", true},
		{"all", ServiceClass{Priority: 1, Namespaces: []string{"*"}}, "team-a", true},
		{"zero needs no grant", ServiceClass{}, "team-a", true},
		{"below zero needs none", ServiceClass{Priority: -5, Namespaces: []string{"team-b"}}, "team-a", true},
	} {
		if got := test.class.GrantedTo(test.namespace); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}
