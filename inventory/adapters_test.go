package inventory

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/inventory/manifesttest"
)

func TestAdaptersAreReadFromArgumentsIfTheMetadataLeaveThemOut(t *testing.T) {
	many := make([]string, 100)
	for i := range many {
		many[i] = fmt.Sprintf("a%02d=/x", i)
	}
	for name, test := range map[string]struct {
		metadata, container string
		want                string
	}{
		"none":                      {"", "args: [serve, m]", ""},
		"name and path":             {"", "args: [--lora-modules, sql=/a, law=/b, --port, '8000']", "law,sql"},
		"joined, with underscores":  {"", "args: [--lora_modules=sql=/a]", "sql"},
		"JSON":                      {"", `args: [--lora-modules, '{"name": "sql", "path": "/a", "base_model_name": "m"}', '{"path": 1}']`, "sql"},
		"a script":                  {"", `command: [sh, -c, 'exec vllm serve m --lora-modules sql=/a law=/b --port 8000']`, "law,sql"},
		"the metadata have them":    {`adapters: "tax"`, "args: [--lora-modules, sql=/a]", "tax"},
		"those of the other engine": {"engine: sglang", "args: [--lora-modules, sql=/a, --lora-paths, law=/b]", "law"},
		"at most 64":                {"", "args: [--lora-modules, " + strings.Join(many, ", ") + ", " + strings.Repeat("x", 300) + "]", strings.ReplaceAll(strings.Join(many[:64], ","), "=/x", "")},
	} {
		t.Run(name, func(t *testing.T) {
			metadata := []string{}
			if test.metadata != "" {
				metadata = append(metadata, test.metadata)
			}
			tables := objectsOf(t, manifesttest.Scaled("a", metadata...), manifesttest.Deployment("a", 1, test.container)).Tables(Options{})
			require.Equal(t, test.want, strings.Join(tables.Variants[0].Adapters, ","))
		})
	}
}
