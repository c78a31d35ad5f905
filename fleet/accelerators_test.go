package fleet

import (
	"reflect"
	"testing"
)

func TestFixedAcceleratorsAreNotElastic(t *testing.T) {
	seen := []Pool{{Accelerator: "H100", Elastic: true}, {Accelerator: "L40S", Elastic: true}, {Accelerator: "T4"}}
	elastic := Pool{Accelerator: "L40S", Elastic: true}
	tests := []struct {
		name     string
		observed []Pool
		fixed    []string
		variants []Variant
		want     []Pool
	}{
		{"in any letter case", seen, []string{"h100"}, nil, []Pool{{Accelerator: "H100"}, elastic, {Accelerator: "T4"}}},
		{"none is fixed", seen, nil, nil, seen},
		{"nothing is known", nil, nil, []Variant{{Accelerator: "H100"}}, nil},
		{"without nodes", []Pool{elastic}, []string{"L40S", "B200"}, nil, []Pool{{Accelerator: "B200"}, {Accelerator: "L40S"}}},
		{"neither pods nor nodes can be listed", nil, []string{"L40S", "B200"}, nil, []Pool{{Accelerator: "B200"}, {Accelerator: "L40S"}}},
		{
			"without a node to compare with, a variant keeps its own spelling",
			[]Pool{elastic}, []string{"L40S", "B200"}, []Variant{{Accelerator: "b200"}, {Accelerator: "H100"}, {Accelerator: "b200"}, {Accelerator: "B200"}},
			[]Pool{{Accelerator: "B200"}, {Accelerator: "L40S"}, {Accelerator: "b200"}},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := FixPools(test.observed, test.fixed, test.variants); !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
	if !seen[0].Elastic {
		t.Error("the observed pools are shared, and were changed")
	}
}

func TestCatalogueHasTheSpellingOfTheNodes(t *testing.T) {
	nodes := []Pool{{Accelerator: "H100"}}
	catalogue := []AcceleratorSpec{{Name: "h100", Speed: 4}, {Name: "T4", Speed: 1}}
	want := []AcceleratorSpec{{Name: "H100", Speed: 4}, {Name: "T4", Speed: 1}}
	if got := NameAsObserved(catalogue, nodes); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if catalogue[0].Name != "h100" {
		t.Error("the configuration is shared, and was changed")
	}
	twoTypes := []AcceleratorSpec{{Name: "h100", Speed: 4}, {Name: "H100", Speed: 3}}
	if got := NameAsObserved(twoTypes, nodes); !reflect.DeepEqual(got, twoTypes) {
		t.Errorf("two rows are two accelerator types: got %+v", got)
	}
}
