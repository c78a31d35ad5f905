package scaledobject

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func TestMetadataOfAnyTypeIsDecoded(t *testing.T) {
	for text, want := range map[string]Trigger{
		`{"type":"external"}`:                                 {Type: "external"},
		`{"type":"external","metadata":null}`:                 {Type: "external"},
		`{"type":"external","metadata":{}}`:                   {Type: "external", Metadata: map[string]string{}},
		`{"metadata":{"modelID":"m","name":""},"name":"wva"}`: {Name: "wva", Metadata: map[string]string{"modelID": "m", "name": ""}},
		`{"metadata":{"modelID":null}}`:                       {Metadata: map[string]string{"modelID": ""}},
		`{"metadata":{"variantCost": 1e3 }}`:                  {Metadata: map[string]string{"variantCost": "1e3"}, unquoted: map[string]form{"variantCost": formNumber}},
		`{"metadata":{"variantCost":-1}}`:                     {Metadata: map[string]string{"variantCost": "-1"}, unquoted: map[string]form{"variantCost": formNumber}},
		`{"metadata":{"engine":false}}`:                       {Metadata: map[string]string{"engine": "false"}, unquoted: map[string]form{"engine": formBoolean}},
		`{"metadata":{"role":[1]}}`:                           {Metadata: map[string]string{"role": ""}, unquoted: map[string]form{"role": formList}},
		`{"metadata":{"role":{"a":"b"}}}`:                     {Metadata: map[string]string{"role": ""}, unquoted: map[string]form{"role": formObject}},
	} {
		got := Trigger{Metadata: map[string]string{"old": "1"}, unquoted: map[string]form{"old": formNumber}}
		if err := json.Unmarshal([]byte(text), &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: decoded as %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{`{"metadata":[]}`, `{"metadata":"x"}`, `{"type":1}`, `[]`} {
		if err := json.Unmarshal([]byte(text), new(Trigger)); err == nil {
			t.Errorf("%s is decoded", text)
		}
	}
}

func TestUnquotedValueIsReadAllTheSame(t *testing.T) {
	var trigger Trigger
	if err := json.Unmarshal([]byte(`{"type":"external-push","metadata":{"modelID":"m","variantCost":2.5,"gpusPerReplica":[8]}}`), &trigger); err != nil {
		t.Fatal(err)
	}
	v, err := Read(valid(func(o *Object) { o.Spec.Triggers[0] = trigger }))
	if errs := ValidationErrors(err); len(errs) != 2 || v.Cost != 2.5 || v.GPUsPerReplica != 1 {
		t.Errorf("cost %v and %d GPUs with the errors %v, want 2.5, the default of 1 and two errors", v.Cost, v.GPUsPerReplica, errs)
	}
}

func TestUnquotedSecretsAreNeverEchoed(t *testing.T) {
	const secret = "987654321"
	for _, value := range []string{secret, "[" + secret + "]", `{"a":` + secret + "}"} {
		text := fmt.Sprintf(`[{"type":"external","metadata":{"modelID":"m","scalerAddress":%[1]s,"password":%[1]s,"tokenFromEnv":%[1]s,"itlFromEnv":%[1]s}},
			{"type":"cpu","metadata":{"value":%[1]s}}]`, value)
		o := valid(nil)
		if err := json.Unmarshal([]byte(text), &o.Spec.Triggers); err != nil {
			t.Fatal(err)
		}
		_, err := Read(o)
		for _, said := range []string{err.Error(), Short(err), fmt.Sprintf("%+v", err), fmt.Sprintf("%+v", Lint(o))} {
			if strings.Contains(said, secret) {
				t.Errorf("a secret is echoed in %q", said)
			}
		}
		if !strings.Contains(err.Error(), `of keys "itlFromEnv", "password", "scalerAddress" and 1 more`) || !strings.Contains(err.Error(), `triggers[1].metadata has values that are not text, of keys "value"`) {
			t.Errorf("%v, want the names of the keys", err)
		}
	}
}
