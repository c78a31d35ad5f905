package inventory

import (
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/wva-project/wva/engine"
	"github.com/wva-project/wva/fleet"
)

// The most adapters of a variant that are read, and the most bytes of a name.
const (
	mostAdapters = 64
	longestName  = 256
)

// adaptersOf returns the names of the LoRA adapters that the engine's arguments load, and all but
// the first of the names under which it serves the model, sorted.
func adaptersOf(template *corev1.PodTemplateSpec, name fleet.Engine, served []string) []string {
	at := slices.IndexFunc(engines, func(e engine.Engine) bool { return e.Name == name })
	if template == nil || at < 0 {
		return nil
	}
	flags := engines[at].Flag(engine.Adapters)
	names := slices.Clone(served[min(1, len(served)):min(mostAdapters, len(served))])
	for _, container := range template.Spec.Containers {
		for _, word := range valuesOf(commandLine(container, ""), flags) {
			if name := adapterName(word); name != "" && len(name) <= longestName && len(names) < mostAdapters {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// valuesOf returns the values of a flag that has several: the words up to the next flag.
func valuesOf(words, flags []string) (values []string) {
	isValue := false
	for _, word := range words {
		name, isFlag := strings.CutPrefix(word, "-")
		if !isFlag {
			if isValue {
				values = append(values, word)
			}
			continue
		}
		name, value, joined := strings.Cut(strings.TrimPrefix(name, "-"), "=")
		isValue = slices.Contains(flags, strings.ReplaceAll(name, "_", "-"))
		if isValue && joined {
			values = append(values, value)
		}
	}
	return values
}

// adapterName returns the name in "name=path" or in the JSON form of the same.
func adapterName(word string) string {
	if !strings.HasPrefix(word, "{") {
		name, _, _ := strings.Cut(word, "=")
		return name
	}
	var adapter struct {
		Name string `json:"name"`
	}
	// of another form, no name
	_ = json.Unmarshal([]byte(word), &adapter)
	return adapter.Name
}
