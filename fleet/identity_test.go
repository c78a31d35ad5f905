package fleet

import "testing"

func TestUnversionedTargetsOfOneWorkloadAreEqual(t *testing.T) {
	target := func(apiVersion string) TargetID {
		return TargetID{Namespace: "llm", APIVersion: apiVersion, Kind: "Deployment", Name: "chat"}
	}
	tests := []struct {
		a, b string
		same bool
	}{
		{"apps/v1", "apps/v1beta2", true},
		{"v1", "", true}, // the core
		{"apps/v1", "extensions/v1", false},
		{"apps/v1", "v1", false},
	}
	for _, test := range tests {
		if got := target(test.a).Unversioned() == target(test.b).Unversioned(); got != test.same {
			t.Errorf("%q and %q: same target %v, want %v", test.a, test.b, got, test.same)
		}
	}
	other := target("apps/v1")
	other.Name = "code"
	if other.Unversioned() == target("apps/v1").Unversioned() {
		t.Error("two names are one target")
	}
}
