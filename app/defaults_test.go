package app

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/config"
)

func TestEveryThresholdAndEveryTermOfThePolicyIsSetByTheConfiguration(t *testing.T) {
	c := newWorld(t).config()
	c.Sizing.Queueing, c.ErrorBudget.Enabled = config.Off, false
	policy := reflect.ValueOf(policyOf(c))
	for _, part := range []reflect.Value{policy, policy.FieldByName("Saturation")} {
		for i := range part.NumField() {
			require.False(t, part.Field(i).IsZero(), part.Type().Field(i).Name)
		}
	}
}

// The packages state their defaults in comments. The table of settings must have the same.
func TestDefaultsAreThoseOfTheComments(t *testing.T) {
	w := newWorld(t)
	policy, queries := reflect.ValueOf(policyOf(w.config())), reflect.ValueOf(queriesOf(w.config()))
	checked := compareDefaults(t, "../planner/policy.go", "Policy", policy) +
		compareDefaults(t, "../analyzer/saturation.go", "Saturation", policy.FieldByName("Saturation")) +
		compareDefaults(t, "../collector/options.go", "Options", queries)
	require.GreaterOrEqual(t, checked, 23)
}

var statedDefault = regexp.MustCompile(`Default:? ([0-9]+(?:\.[0-9]+)?)(?: (s|m|h))?[.;, ]`)

// compareDefaults compares the numbers and durations that the comments of a struct state with a
// value of it that was made of defaults, and returns how many it found. Fields that the
// configuration does not set are zero.
func compareDefaults(t *testing.T, file, name string, value reflect.Value) (checked int) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	require.NoError(t, err)
	ast.Inspect(parsed, func(node ast.Node) bool {
		declared, ok := node.(*ast.TypeSpec)
		if !ok || declared.Name.Name != name {
			return true
		}
		for _, field := range declared.Type.(*ast.StructType).Fields.List {
			stated := statedDefault.FindStringSubmatch(strings.ReplaceAll(field.Doc.Text()+" ", "\n", " "))
			if stated == nil || value.FieldByName(field.Names[0].Name).IsZero() {
				continue
			}
			checked++
			switch is := value.FieldByName(field.Names[0].Name).Interface().(type) {
			case time.Duration:
				want, err := time.ParseDuration(stated[1] + stated[2])
				require.NoError(t, err)
				require.Equal(t, want, is, field.Names[0].Name)
			case float64:
				var want float64
				require.NoError(t, json.Unmarshal([]byte(stated[1]), &want))
				require.InDelta(t, want, is, 1e-12, field.Names[0].Name)
			}
		}
		return false
	})
	return checked
}
