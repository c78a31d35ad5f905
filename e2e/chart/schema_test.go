package chart

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/config"
)

// schema is a JSON schema.
type schema map[string]any

// schemaOf returns the schema of a setting's values: its type, and the values that Allowed lists.
// The server checks the rest.
func schemaOf(t *testing.T, s config.Setting) schema {
	t.Helper()
	text := schema{"type": "string", "description": s.Meaning}
	switch s.Type() {
	case "duration":
		text["pattern"] = `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	case "word":
		var words []any
		for _, word := range regexp.MustCompile(`, | or `).Split(s.Allowed(), -1) {
			words = append(words, word)
		}
		if words[0] == config.On {
			words = append(words, true, false) // unquoted, as Helm reads them
		}
		return schema{"enum": words, "description": s.Meaning}
	case "number":
		limits := regexp.MustCompile(`number from ([0-9.]+) to ([0-9.]+)$`).FindStringSubmatch(s.Allowed())
		require.Len(t, limits, 3, s.Allowed())
		kind := "number"
		if strings.Contains(s.Allowed(), "whole") {
			kind = "integer"
		}
		return schema{"type": kind, "minimum": number(t, limits[1]), "maximum": number(t, limits[2]), "description": s.Meaning}
	case "boolean":
		return schema{"type": "boolean", "description": s.Meaning}
	case "names":
		return schema{"type": "array", "items": schema{"type": "string"}, "description": s.Meaning}
	case "models", "classes", "accelerators", "profiles":
		return schema{"type": "array", "items": schema{"type": "object"}, "description": s.Meaning}
	}
	return text
}

func number(t *testing.T, text string) float64 {
	t.Helper()
	value, err := strconv.ParseFloat(text, 64)
	require.NoError(t, err)
	return value
}

// configSchema returns the schema of the value config: the server's settings, and nothing else.
func configSchema(t *testing.T) schema {
	t.Helper()
	section := func() schema {
		return schema{"type": "object", "additionalProperties": false, "properties": schema{}}
	}
	whole := section()
	for _, s := range config.Settings() {
		parts := strings.Split(s.Key, ".")
		within := whole["properties"].(schema)
		for _, part := range parts[:len(parts)-1] {
			if within[part] == nil {
				within[part] = section()
			}
			within = within[part].(schema)["properties"].(schema)
		}
		within[parts[len(parts)-1]] = schemaOf(t, s)
	}
	return whole
}

func TestSchemaOfConfigIsWrittenFromTheSettings(t *testing.T) {
	file := filepath.Join(chart, "values.schema.json")
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	written, _, found := strings.Cut(string(data), `  "definitions": `)
	require.True(t, found)
	var definitions strings.Builder
	encoder := json.NewEncoder(&definitions)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("  ", "  ")
	require.NoError(t, encoder.Encode(schema{"config": configSchema(t)}))
	want := written + `  "definitions": ` + definitions.String() + "}\n"
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(data), "run make chart ARGS=-update")
}
