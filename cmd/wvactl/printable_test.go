package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/fleet"
)

func TestControlCharactersOfAFileDoNotReachTheTerminal(t *testing.T) {
	var out strings.Builder
	writeDecision(&out, fleet.Decision{
		Variant: fleet.VariantID{Namespace: "a", Name: "\x1b[31mEVIL\nb"}, Reason: fleet.Reason{Code: fleet.CodeScaleUp, Text: "x\ty\r"},
	}, "decided")
	require.Equal(t, "a/?[31mEVIL?b\t-\t-\tdecided\tScaleUp\tx?y?\n", out.String())
	require.Equal(t, "a?b.yaml: o: error: InvalidDefinition: t?; r", problem{
		File: "a\x1bb.yaml", Object: "o", Severity: "error", Code: fleet.CodeInvalidDefinition, Text: "t\n", Remedy: "r",
	}.String())
}

func TestLintGoesOnAfterAFileThatCannotBeRead(t *testing.T) {
	got := execute(t, "", "lint", "none.yaml", "../../examples/manifests")
	require.Equal(t, 1, got.code)
	require.Contains(t, got.out, "none.yaml: file: error: InvalidDefinition: open none.yaml: no such file or directory; name a file of manifests\n")
	require.Contains(t, got.out, "../../examples/manifests: file: error: ")
}
