package kubelet

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExpandReplacesKnownVariables(t *testing.T) {
	variables := map[string]string{"A": "one", "B": "two"}
	for text, expanded := range map[string]string{
		"": "", "plain": "plain", "$(A)-$(B)": "one-two", "$(C)": "$(C)", "$$(A)": "$(A)", "$A": "$A", "$(A": "$(A", "5$": "5$", "$$": "$",
	} {
		require.Equal(t, expanded, expand(text, variables), text)
	}
}

func TestRepositoryIsTheReferenceWithoutTagAndDigest(t *testing.T) {
	for reference, repository := range map[string]string{
		"wva": "wva", "wva:v1": "wva", "ghcr.io/wva-project/wva:v0.1.0": "ghcr.io/wva-project/wva",
		"registry.test:5000/wva": "registry.test:5000/wva", "registry.test:5000/wva:v1@sha256:00": "registry.test:5000/wva",
	} {
		require.Equal(t, repository, Repository(reference), reference)
	}
}
