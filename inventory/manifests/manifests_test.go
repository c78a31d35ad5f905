package manifests

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/inventory"
)

// keys returns the names of the objects, in order.
func keys(c content) []string {
	names := []string{}
	for _, m := range c.manifests {
		names = append(names, m.key.String())
	}
	return names
}

const nodeA, nodeB = "{apiVersion: v1, kind: Node, metadata: {name: a}}", "{apiVersion: v1, kind: Node, metadata: {name: b}}"

func TestFormsInWhichManifestsAreRead(t *testing.T) {
	jsonNode := `{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"}}`
	tests := []struct {
		name    string
		text    string
		want    []string
		skipped int
	}{
		{"one document", nodeA, []string{"Node a"}, 0},
		{"several documents", nodeA + "\n---\n" + nodeB, []string{"Node a", "Node b"}, 0},
		{"marks all over", "---\n# a comment\n---\n" + nodeA + "\n...\n---\n\n--- # b\n" + nodeB + "\n---\n", []string{"Node a", "Node b"}, 0},
		{"a document behind its mark", "--- " + nodeA, []string{"Node a"}, 0},
		{"line ends of Windows, and a byte order mark", "\ufeff---\r\n" + nodeA + "\r\n---\r\n" + nodeB + "\r\n", []string{"Node a", "Node b"}, 0},
		{"JSON", jsonNode, []string{"Node a"}, 0},
		{"JSON behind a byte order mark", "\ufeff" + jsonNode, []string{"Node a"}, 0},
		{"JSON and YAML", jsonNode + "\n---\n" + nodeB, []string{"Node a", "Node b"}, 0},
		{"a list", "apiVersion: v1\nkind: List\nitems: [" + nodeA + ", " + nodeB + "]", []string{"Node a", "Node b"}, 0},
		{"a list without items", "apiVersion: v1\nkind: List\nitems: []", []string{}, 0},
		{"a typed list", "apiVersion: v1\nkind: PodList\nitems: [{metadata: {name: p}}]", []string{"Pod default/p"}, 0},
		{"a kind that is not read", "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {a: b}", []string{}, 1},
		{"a kind of that name in another group", "apiVersion: example.com/v1\nkind: Pod\nmetadata: {name: p}", []string{}, 1},
		{"a kind that only has replicas", "apiVersion: example.com/v1\nkind: Server\nmetadata: {name: s}\nspec: {replicas: 2, template: text}", []string{"Server default/s"}, 0},
		{"replicas that are no number on a kind that is not known", "apiVersion: example.com/v1\nkind: Server\nmetadata: {name: s}\nspec: {replicas: {min: 1}}", []string{}, 1},
		{"no namespace is kubectl's", "apiVersion: v1\nkind: Pod\nmetadata: {name: p}", []string{"Pod default/p"}, 0},
		{"a namespace", "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: llm}", []string{"Pod llm/p"}, 0},
		{"nothing", "", []string{}, 0},
		{"white space", " \n\t\n", []string{}, 0},
		{"comments", "# nothing\n---\n# at all\n", []string{}, 0},
		{"marks within a text", "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n  annotations:\n    a: |\n      ---\n      ...\n", []string{"Pod default/p"}, 0},
		{"an ampersand and a star that are no anchor", "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n  - {name: e, args: ['rm *.log && echo &done', 'a*b&b']}\n", []string{"Pod default/p"}, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			read := parse("f.yaml", []byte(test.text))
			require.Empty(t, read.problems)
			require.Equal(t, test.want, keys(read))
			require.Equal(t, test.skipped, read.skipped)
		})
	}
}

func TestDocumentThatCannotBeReadIsAProblemAndNothingElseIsLost(t *testing.T) {
	tests := []struct {
		name, text, where, problem string
	}{
		{"broken YAML", "a: 1\nb: [1\n", "document 2 (line 2)", "line 5"},
		{"a key that is there twice", "apiVersion: v1\nkind: Pod\nkind: Node", "document 2 (line 2)", `"kind" already set`},
		{"a list of nothing known", "[1, 2]", "document 2 (line 2)", "is not an object"},
		{"a text", "hello", "document 2 (line 2)", "is not an object"},
		{"no kind", "apiVersion: v1\nmetadata: {name: x}", "document 2 (line 2)", "not a manifest"},
		{"no name", "apiVersion: v1\nkind: Pod", "document 2 (line 2)", "metadata.name"},
		{"a name that YAML takes for true", "apiVersion: v1\nkind: Pod\nmetadata: {name: y}", "document 2 (line 2)", "metadata.name"},
		{"metadata that are none", "apiVersion: v1\nkind: Pod\nmetadata: [1]", "document 2 (line 2)", "metadata"},
		{"metadata of a trigger that is a text", "apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {name: a}\nspec: {triggers: [{type: external, metadata: text}]}", "document 2 (line 2)", "metadata"},
		{"replicas that are no number", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {replicas: many}", "document 2 (line 2)", "spec.replicas is not a whole number"},
		{"replicas below zero", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {replicas: -1}", "document 2 (line 2)", "spec.replicas is not a whole number"},
		{"replicas beyond the API's numbers", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {replicas: 4294967296}", "document 2 (line 2)", "spec.replicas is not a whole number"},
		{"a template that is none", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {template: text}", "document 2 (line 2)", "spec.template is not a pod template"},
		{"a quantity that is none", "apiVersion: v1\nkind: Node\nmetadata: {name: a}\nstatus: {allocatable: {cpu: lots}}", "document 2 (line 2)", "Node a"},
		{"an item of a list", "apiVersion: v1\nkind: List\nitems: [" + nodeA + ", 5]", "document 2 (line 2), item 2", "is not an object"},
		{"an item that cannot be decoded", "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: 5}]", "document 2 (line 2), item 1", "Pod default/p"},
		{"not a number", "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {priority: .nan}", "document 2 (line 2)", "NaN"},
		{"an alias", "a: &x [1]\nb: *x", "document 2 (line 2)", "alias *x"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			read := parse("f.yaml", []byte(nodeB+"\n---\n"+test.text+"\n---\n"+nodeB))
			require.Contains(t, strings.Join(keys(read), " "), "Node b")
			require.Equal(t, "Node b", keys(read)[len(read.manifests)-1], "the following documents are read")
			require.Len(t, read.problems, 1)
			require.Equal(t, "f.yaml, "+test.where, read.problems[0].Object)
			require.Contains(t, read.problems[0].Text, test.problem)
			require.NotContains(t, read.problems[0].Text, "\n")
			require.Contains(t, read.problems[0].Remedy, "kubectl get -o yaml")
		})
	}
}

func TestFileThatIsNotTextIsAProblem(t *testing.T) {
	read := parse("f.yaml", []byte("\xff\xfea\x00:\x00"))
	require.Equal(t, []inventory.Problem{{Object: "f.yaml", Text: "is not UTF-8", Remedy: "save it as UTF-8"}}, read.problems)
}

func TestProblemsOfOneFileAreCountedBeyondTheFirst(t *testing.T) {
	read := parse("f.yaml", []byte(strings.Repeat("---\ntext\n", 5000)+"---\n"+nodeA))
	require.Len(t, read.problems, problemsShown+1)
	require.Contains(t, read.problems[problemsShown].Text, "4980 more problems")
	require.Equal(t, []string{"Node a"}, keys(read))
}

func TestAliasesThatExpandDoNotExpand(t *testing.T) {
	var bomb strings.Builder
	bomb.WriteString("a0: &a0 " + strings.Repeat("x", 1000) + "\n")
	for i := 1; i < 12; i++ {
		fmt.Fprintf(&bomb, "a%d: &a%d [%s*a%d]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 9), i-1)
	}
	read := parse("f.yaml", []byte(bomb.String()))
	require.Len(t, read.problems, 1)
	require.Contains(t, read.problems[0].Text, "alias")

	deep := parse("f.yaml", []byte(strings.Repeat("[", 1<<20)))
	require.Len(t, deep.problems, 1)
}
