package scaledobject

import (
	"fmt"
	"slices"
	"strings"

	"github.com/wva-project/wva/fleet"
)

// fromEnv is the ending of a metadata key whose value KEDA takes from the workload's environment.
// Such keys are allowed, and never read or shown: in an RPC they contain resolved secrets.
const fromEnv = "FromEnv"

// keyOfAll is the key of a validation error about all of the metadata.
const keyOfAll = "metadata"

// namesShown is the number of keys or triggers that one text names.
const namesShown = 3

// unknownKeys returns the keys that are neither WVA's nor KEDA's, sorted.
func unknownKeys(metadata map[string]string) []string {
	var unknown []string
	for key := range metadata {
		if !slices.Contains(knownKeys, key) && !strings.HasSuffix(key, fromEnv) {
			unknown = append(unknown, key)
		}
	}
	slices.Sort(unknown)
	return unknown
}

// unknownKeysError returns the one validation error for all unknown keys. It shows their names
// only: any of them may contain a secret.
func unknownKeysError(unknown []string) ValidationError {
	noun := "key"
	if len(unknown) > 1 {
		noun = "keys"
	}
	named := listed(unknown, func(key string) string {
		if near, ok := fleet.Nearest(key, knownKeys); ok {
			return quoted(key) + " (did you mean " + near + "?)"
		}
		return quoted(key)
	})
	return ValidationError{
		keyOfAll, "", "has the unknown " + noun + " " + named, strings.Join(keyNames(), ", "), "correct the name or remove the key",
	}
}

// listed returns the first few names, separated by commas, and the number of the others.
func listed(names []string, show func(string) string) string {
	shown := make([]string, min(len(names), namesShown))
	for i := range shown {
		shown[i] = show(names[i])
	}
	text := strings.Join(shown, ", ")
	if rest := len(names) - len(shown); rest > 0 {
		text += fmt.Sprintf(" and %d more", rest)
	}
	return text
}

func keyNames() []string {
	var names []string
	for _, key := range Keys() {
		names = append(names, key.Name)
	}
	return names
}

// knownNames returns the keys of WVA, then KEDA's.
func knownNames() []string { return append(keyNames(), kedaKeys()...) }
