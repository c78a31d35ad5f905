package fleet

import (
	"reflect"
	"testing"
)

func TestSupplyThatIsDeclaredReplacesTheObservedOne(t *testing.T) {
	seen := []Pool{{Accelerator: "H100", Elastic: true, Adds: 8, LimitedBy: "NodePool gpu"}, {Accelerator: "L40S", Elastic: true}, {Accelerator: "T4"}}
	elastic := Pool{Accelerator: "L40S", Elastic: true}
	tests := []struct {
		name     string
		observed []Pool
		supply   Supply
		variants []Variant
		want     []Pool
	}{
		{"fixed, in any letter case", seen, Supply{Fixed: []string{"h100"}}, nil, []Pool{{Accelerator: "H100"}, elastic, {Accelerator: "T4"}}},
		{"elastic, in any letter case", seen, Supply{Elastic: []string{"h100", "t4"}}, nil, []Pool{{Accelerator: "H100", Elastic: true}, elastic, {Accelerator: "T4", Elastic: true}}},
		{"both", seen[1:], Supply{Fixed: []string{"L40S"}, Elastic: []string{"L40S"}}, nil, []Pool{{Accelerator: "L40S"}, {Accelerator: "T4"}}},
		{"elastic without nodes", nil, Supply{Elastic: []string{"H100"}}, []Variant{{Accelerator: "H100"}}, nil},
		{"none", seen, Supply{}, nil, seen},
		{"nothing is known", nil, Supply{}, []Variant{{Accelerator: "H100"}}, nil},
		{"without nodes", []Pool{elastic}, Supply{Fixed: []string{"L40S", "B200"}}, nil, []Pool{{Accelerator: "B200"}, {Accelerator: "L40S"}}},
		{"neither pods nor nodes can be listed", nil, Supply{Fixed: []string{"L40S", "B200"}}, nil, []Pool{{Accelerator: "B200"}, {Accelerator: "L40S"}}},
		{
			"without a node to compare with, a variant keeps its own spelling",
			[]Pool{elastic}, Supply{Fixed: []string{"L40S", "B200"}}, []Variant{{Accelerator: "b200"}, {Accelerator: "H100"}, {Accelerator: "b200"}, {Accelerator: "B200"}},
			[]Pool{{Accelerator: "B200"}, {Accelerator: "L40S"}, {Accelerator: "b200"}},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := test.supply.Declare(test.observed, test.variants); !reflect.DeepEqual(got, test.want) {
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
