package scaledobject

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

const document = "../docs/reference/scaledobject.md"

const documentStart = `# ScaledObject reference

<!-- Written by "go test ./scaledobject -update" from scaledobject.Keys() and the lists in scaledobject/fields_test.go. -->

A variant is a KEDA ScaledObject with a WVA trigger: a trigger of type ` + "`external-push`" + ` or
` + "`external`" + ` whose metadata has the key ` + "`modelID`" + `. This page lists the metadata keys, the other
fields that WVA reads, and the annotations of a dry run.

## Recommended ScaledObject

` + "```yaml" + `
%s` + "```" + `

The HPA applies each number at once and exactly: the stabilization windows and the tolerance are 0.
` + "`maxReplicaCount`" + ` is always set. A variant that never goes to zero gets a ` + "`fallback`" + ` too:

` + "```yaml" + `
%s` + "```" + `

## Metadata keys

| key | type | default | unit | valid values | example |
|---|---|---|---|---|---|
`

const documentMeanings = `
| key | meaning | without it |
|---|---|---|
`

const documentErrors = `
KEDA's own keys are %s.
They are not read, and neither are keys that end in ` + "`FromEnv`" + `:
if a key of the table has that ending, it is a [finding](reasons.md). The values of these keys never
occur in logs, events or errors.

## Validation errors

Metadata values are strings: numbers and booleans need quotes. All validation errors of an object are
reported at once, with the remedy. The replicas of an invalid variant are held. An object with

` + "```yaml" + `
%s` + "```" + `

gives

` + "```" + `
%s
` + "```" + `

A definition that is valid and does not scale as it should has [findings](reasons.md). A trigger whose
number KEDA would not apply as it is meant is unsupported: the replicas are held, and KEDA gets an error.

## Fields of KEDA

| field | default | use |
|---|---|---|
`

const documentAnnotations = `
These fields are not read. Those of ` + "`behavior`" + ` are KEDA's and the HPA's, and change how fast a number
is applied:

%s

## Annotations of KEDA

Values are read as KEDA reads them: each annotation but ` + "`paused-replicas`" + ` applies unless its value is
false.

| annotation | effect |
|---|---|
`

const documentDryRun = `
## Dry run

Annotations declare a variant for a dry run: on the workload, on a ScaledObject without a WVA trigger,
or on an HPA that KEDA did not create. If several objects declare one for the same workload, the first
of this list counts. The variant is decided and explained, and KEDA is not told its number. The
annotations of a ScaledObject with a WVA trigger are ignored, and so are those of a workload that such
a ScaledObject scales.

` + "```yaml" + `
%s` + "```" + `

| annotation | default | meaning |
|---|---|---|
`

func TestReferenceIsWrittenFromTheTables(t *testing.T) {
	want := documented(t)
	if *update {
		if err := os.WriteFile(document, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	is := readDocument(t)
	if is == want {
		return
	}
	lines, wanted := strings.Split(is, "\n"), strings.Split(want, "\n")
	for i := range min(len(lines), len(wanted)) {
		if lines[i] != wanted[i] {
			t.Fatalf("%s, line %d\n%s\nwant\n%s\nrun: go test ./scaledobject -update", document, i+1, lines[i], wanted[i])
		}
	}
	t.Fatalf("%s has %d lines, want %d; run: go test ./scaledobject -update", document, len(lines), len(wanted))
}

func TestReferenceHasRowsForEachKeyFieldAndAnnotation(t *testing.T) {
	page := readDocument(t)
	rows := func(name string, want int) {
		if got := strings.Count(page, "\n| `"+name+"` |"); got != want {
			t.Errorf("%s has %d rows for %s, want %d; run: go test ./scaledobject -update", document, got, name, want)
		}
	}
	for _, name := range append(keyNames(), "servedModelName") {
		rows(name, 2) // values, and meaning
		rows(AnnotationPrefix+name, 1)
	}
	for _, name := range []string{keyMin, keyMax} {
		rows(AnnotationPrefix+name, 1)
	}
	for _, field := range fields() {
		rows(field.path, 1)
	}
	for _, annotation := range annotations() {
		rows(annotation[0], 1)
	}
}

// TestExamplesOfTheReferenceAreValid keeps the examples of the page from validation errors and
// findings.
func TestExamplesOfTheReferenceAreValid(t *testing.T) {
	for _, o := range []Object{recommended(0), recommended(2)} {
		if _, err := Read(o); err != nil || Unsupported(o).String() != "" || Lint(o) != nil {
			t.Errorf("%v, %q, findings %v", err, Unsupported(o).String(), Lint(o))
		}
	}
	o := dryRun()
	if v, err := ReadDryRun(o); err != nil || Lint(o) != nil || v.Range.Max != 8 {
		t.Errorf("dry run: %+v, %v, findings %v", v, err, Lint(o))
	}
}

// recommended returns the recommended object of the page.
func recommended(lowest int) Object {
	return Render(fleet.Variant{
		ID:          fleet.VariantID{Namespace: "llm", Name: "llama-8b-h100"},
		Model:       fleet.ModelID{Namespace: "llm", Name: "meta-llama/Llama-3.1-8B-Instruct"},
		Target:      fleet.TargetID{Namespace: "llm", APIVersion: "apps/v1", Kind: "Deployment", Name: "llama-8b-h100"},
		Accelerator: "H100", GPUsPerReplica: 1, Cost: 10, Role: fleet.RoleBoth, Engine: fleet.EngineVLLM,
		Objective: fleet.Objective{TTFT: 500 * time.Millisecond, ITL: 40 * time.Millisecond, Percentile: DefaultPercentile},
		Range:     fleet.Range{Min: lowest, Max: 16}, Cooldown: defaultCooldown,
	}, RenderOptions{})
}

// dryRun returns a workload of the page in the form of a ScaledObject.
func dryRun() Object {
	return Object{
		Metadata: Meta{Name: "llama-8b-h100", Namespace: "llm", Annotations: map[string]string{
			AnnotationPrefix + "modelID": "meta-llama/Llama-3.1-8B-Instruct", AnnotationPrefix + "accelerator": "H100",
			AnnotationPrefix + "variantCost": "10", AnnotationPrefix + keyMax: "8",
		}},
		Spec: Spec{ScaleTargetRef: TargetRef{Name: "llama-8b-h100"}},
	}
}

// invalidTrigger is the example of validation errors.
const invalidTrigger = `{"type":"external-push","metadata":{"scalerAddress":"wva.keda.svc:9090","model-id":"org/model","variantCost":10,"ttft":"500"}}`

func documented(t *testing.T) string {
	t.Helper()
	var page strings.Builder
	var withFallback struct {
		Spec struct {
			Min      *int64    `json:"minReplicaCount"`
			Fallback *Fallback `json:"fallback"`
		} `json:"spec"`
	}
	withFallback.Spec.Min, withFallback.Spec.Fallback = recommended(2).Spec.MinReplicaCount, recommended(2).Spec.Fallback
	fmt.Fprintf(&page, documentStart, yamlOf(t, recommended(0)), yamlOf(t, withFallback))
	for _, key := range Keys() {
		byDefault := code(key.Default)
		if key.Required {
			byDefault = "required"
		}
		fmt.Fprintf(&page, "| `%s` | %s | %s | %s | %s | `%s` |\n", key.Name, key.Type, byDefault, key.Unit, key.Allowed, key.Example)
	}
	page.WriteString(documentMeanings)
	for _, key := range Keys() {
		fmt.Fprintf(&page, "| `%s` | %s | %s |\n", key.Name, key.Meaning, key.Absent)
	}
	var trigger Trigger
	if err := json.Unmarshal([]byte(invalidTrigger), &trigger); err != nil {
		t.Fatal(err)
	}
	o := recommended(0)
	o.Spec.Triggers = []Trigger{trigger}
	_, err := Read(o)
	invalid := yamlOf(t, map[string]any{"spec": map[string]any{"triggers": []any{json.RawMessage(invalidTrigger)}}})
	fmt.Fprintf(&page, documentErrors, "`"+strings.Join(kedaKeys(), "`, `")+"`", invalid, definition(t, err))
	for _, field := range fields() {
		fmt.Fprintf(&page, "| `%s` | %s | %s |\n", field.path, field.byDefault, field.use)
	}
	fmt.Fprintf(&page, documentAnnotations, "- `"+strings.Join(fieldsNotRead(), "`\n- `")+"`")
	for _, annotation := range annotations() {
		fmt.Fprintf(&page, "| `%s` | %s |\n", annotation[0], annotation[1])
	}
	fmt.Fprintf(&page, documentDryRun, yamlOf(t, map[string]any{"metadata": dryRun().Metadata}))
	for _, key := range Keys() {
		byDefault := code(key.Default)
		if key.Required {
			byDefault = "required"
		}
		fmt.Fprintf(&page, "| `%s` | %s | As the key `%s`. |\n", AnnotationPrefix+key.Name, byDefault, key.Name)
	}
	const bound = "The current bound counts, of the ScaledObject or the HPA of the workload"
	fmt.Fprintf(&page, "| `%s` | %s, else %d | The smallest number of replicas. |\n", AnnotationPrefix+keyMin, bound, defaultMin)
	fmt.Fprintf(&page, "| `%s` | %s, else %d | The largest number of replicas. |\n", AnnotationPrefix+keyMax, bound, defaultMax)
	return page.String()
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

func readDocument(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}
