package config

import (
	"strings"
	"unicode"
)

// Setting is one row of the table of settings.
type Setting struct {
	// Key is the place in the file, such as "prometheus.caFile".
	Key string
	// Default is the value if nothing is set, as the file would set it.
	Default string
	// Meaning is a sentence or two for people: meaning, unit, and the effect of a higher value.
	Meaning string
	// Reloadable settings act as soon as the file has changed; the others need a restart.
	Reloadable bool
	// Scope is who may set it beside the administrator of the server.
	Scope Scope

	binding binding
	// note returns a comment for the effective configuration; nil for none.
	note func(*Config) string
}

// Scope is the ConfigMaps that may set a setting.
type Scope int

// The scopes.
const (
	// ScopeServer is none: the file, the environment and flags may.
	ScopeServer Scope = iota
	// ScopeGlobal is those of the server's namespace.
	ScopeGlobal
	// ScopeNamespace is those of a tenant's namespace too, for its own variants.
	ScopeNamespace
)

// Env returns the name of the setting's environment variable.
func (s Setting) Env() string {
	return environmentPrefix + strings.ToUpper(strings.Join(words(s.Key), "_"))
}

// Flag returns the name of the setting's flag; empty for a secret, because other processes can read
// flags.
func (s Setting) Flag() string {
	if s.Secret() {
		return ""
	}
	return strings.Join(words(s.Key), "-")
}

// Type returns the name of the type of the setting's values.
func (s Setting) Type() string { return s.binding.typeName() }

// Allowed returns how to write a value.
func (s Setting) Allowed() string { return s.binding.allowed() }

// Secret reports whether the value is never shown.
func (s Setting) Secret() bool { return s.binding.secret() }

// row returns a setting that can be reloaded.
func row(key, fallback, meaning string, b binding) Setting {
	return Setting{Key: key, Default: fallback, Meaning: meaning, Reloadable: true, binding: b}
}

func (s Setting) needsRestart() Setting {
	s.Reloadable = false
	return s
}

// global lets the ConfigMaps of the server's namespace set the settings.
func global(settings ...Setting) []Setting {
	for i := range settings {
		settings[i].Scope = max(settings[i].Scope, ScopeGlobal)
	}
	return settings
}

// forNamespaces lets the ConfigMaps of a tenant's namespace set it for its variants.
func (s Setting) forNamespaces() Setting {
	s.Scope = ScopeNamespace
	return s
}

func (s Setting) noted(note func(*Config) string) Setting {
	s.note = note
	return s
}

// environmentPrefix begins the name of every environment variable of the server.
const environmentPrefix = "WVA_"

// words returns the words of a key in lower case: "grpc.tls.clientCAFile" has grpc, tls, client, ca
// and file.
func words(key string) []string {
	var found []string
	for part := range strings.SplitSeq(key, ".") {
		letters := []rune(part)
		begin := 0
		for i := 1; i < len(letters); i++ {
			ends := unicode.IsLower(letters[i-1]) && unicode.IsUpper(letters[i])
			acronymEnds := i+1 < len(letters) && unicode.IsUpper(letters[i]) && unicode.IsUpper(letters[i-1]) && unicode.IsLower(letters[i+1])
			if ends || acronymEnds {
				found = append(found, strings.ToLower(string(letters[begin:i])))
				begin = i
			}
		}
		found = append(found, strings.ToLower(string(letters[begin:])))
	}
	return found
}
