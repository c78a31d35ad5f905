package chart

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	texttemplate "text/template"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	sigs "sigs.k8s.io/yaml"

	"github.com/wva-project/wva/scaledobject"
)

// value is a row of the table of values.
type value struct{ path, fallback, meaning string }

// valuesBelow returns the values of a mapping. One whose own values have no comments is one value.
func valuesBelow(t *testing.T, path string, mapping *yaml.Node) []value {
	t.Helper()
	var rows []value
	for i := 0; i < len(mapping.Content); i += 2 {
		key, node := mapping.Content[i], mapping.Content[i+1]
		row := value{path: strings.TrimPrefix(path+"."+key.Value, "."), meaning: comment(key)}
		if node.Kind == yaml.MappingNode && len(node.Content) > 0 && comment(node.Content[0]) != "" {
			if row.meaning != "" {
				rows = append(rows, row)
			}
			rows = append(rows, valuesBelow(t, row.path, node)...)
			continue
		}
		require.NotEmpty(t, row.meaning, "%s has no comment", row.path)
		row.fallback = "`" + flow(t, node) + "`"
		rows = append(rows, row)
	}
	return rows
}

func comment(node *yaml.Node) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(node.HeadComment, "#", " ")), " ")
}

// flow returns a value on one line.
func flow(t *testing.T, node *yaml.Node) string {
	t.Helper()
	var value any
	require.NoError(t, node.Decode(&value))
	line := &yaml.Node{}
	require.NoError(t, line.Encode(value))
	setFlow(line)
	data, err := yaml.Marshal(line)
	require.NoError(t, err)
	return strings.Join(strings.Fields(string(data)), " ")
}

func setFlow(node *yaml.Node) {
	node.Style |= yaml.FlowStyle
	for _, child := range node.Content {
		setFlow(child)
	}
}

func table(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	require.NoError(t, err)
	var document yaml.Node
	require.NoError(t, yaml.Unmarshal(data, &document))
	var rows strings.Builder
	rows.WriteString("| value | default | meaning |\n|---|---|---|\n")
	for _, row := range valuesBelow(t, "", document.Content[0]) {
		fmt.Fprintf(&rows, "| `%s` | %s | %s |\n", row.path, row.fallback, strings.ReplaceAll(row.meaning, "|", `\|`))
	}
	return rows.String()
}

func TestReadmeIsWrittenFromTheValues(t *testing.T) {
	page := texttemplate.Must(texttemplate.ParseFiles("testdata/README.md.tmpl"))
	var want strings.Builder
	require.NoError(t, page.Execute(&want, map[string]string{"Values": strings.TrimSpace(table(t))}))
	file := filepath.Join(chart, "README.md")
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(want.String()), 0o644))
		return
	}
	got, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, want.String(), string(got), "run make chart ARGS=-update")
}

// notes returns the text that helm prints after an installation. Without a cluster helm renders it
// in a manifest only, so a copy of the chart has it in one.
func notes(t *testing.T, flags ...string) string {
	t.Helper()
	directory := t.TempDir()
	require.NoError(t, os.CopyFS(directory, os.DirFS(chart)))
	text, err := os.ReadFile(filepath.Join(directory, "templates", "NOTES.txt"))
	require.NoError(t, err)
	manifest := `{{ define "notes" }}` + string(text) + `{{ end }}{kind: Notes, text: {{ include "notes" . | toJson }}}`
	require.NoError(t, os.WriteFile(filepath.Join(directory, "templates", "notes.yaml"), []byte(manifest), 0o600))
	arguments := []string{"template", release, directory, "--namespace", namespace, "--show-only", "templates/notes.yaml"}
	output, failure := helm(t, append(arguments, flags...)...)
	require.Empty(t, failure)
	return decode(t, output)[0]["text"].(string)
}

func TestNotesWarnOfWhatIsNotSet(t *testing.T) {
	text := notes(t)
	require.Contains(t, text, "TLS IS OFF")
	require.Contains(t, text, "prometheus.url IS THE DEFAULT")
	text = notes(t, "--set", "tls.mode=secret,prometheus.url=http://prometheus:9090")
	require.Contains(t, text, "tls.allowedClients IS EMPTY")
	require.NotContains(t, text, "DEFAULT")
	text = notes(t, "--set", "tls.mode=generate,prometheus.url=http://prometheus:9090")
	require.NotContains(t, text, "WARNING")
}

func TestNotesHaveAScaledObjectWithoutFindings(t *testing.T) {
	for flags, authentication := range map[string]string{"tls.mode=none": "", "tls.mode=generate": "wva", "tls.mode=generate,watchNamespaces={llm}": "wva"} {
		text := regexp.MustCompile(`(?s)apiVersion: keda.*?\n\n`).FindString(notes(t, "--set", flags))
		require.NotEmpty(t, text)
		var o scaledobject.Object
		require.NoError(t, sigs.Unmarshal([]byte(text), &o), text)
		variant, err := scaledobject.Read(o)
		require.NoError(t, err)
		require.Empty(t, scaledobject.Lint(o))
		require.Equal(t, "meta-llama/Llama-3.1-8B-Instruct", variant.Model.Name)
		trigger := o.Spec.Triggers[0]
		require.Equal(t, "wva.keda.svc:9090", trigger.Metadata["scalerAddress"])
		if authentication == "" {
			require.Nil(t, trigger.AuthenticationRef)
			continue
		}
		require.Equal(t, authentication, trigger.AuthenticationRef.Name)
		require.Equal(t, "ClusterTriggerAuthentication", trigger.AuthenticationRef.Kind)
	}
}
