package config

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"
	"go.yaml.in/yaml/v3"

	"github.com/wva-project/wva/fleet"
)

// The configuration file itself is named by a flag or a variable.
const (
	fileFlag        = "config"
	fileEnvironment = environmentPrefix + "CONFIG"
)

// AddFlags defines a flag for each setting that has one, and one for the configuration file.
func AddFlags(flags *pflag.FlagSet) {
	flags.String(fileFlag, "", "configuration file, YAML ("+fileEnvironment+")")
	for _, s := range Settings() {
		if s.Flag() != "" {
			flags.Var(&flagValue{typeName: s.Type(), text: s.shownDefault()}, s.Flag(), s.Meaning)
		}
	}
}

// flagValue accepts any text: Load validates it, together with everything else.
type flagValue struct{ typeName, text string }

func (f *flagValue) String() string { return f.text }
func (f *flagValue) Type() string   { return f.typeName }

// Set stores the text.
func (f *flagValue) Set(text string) error {
	f.text = text
	return nil
}

// shownDefault is the default in the help of flags.
func (s Setting) shownDefault() string {
	if strings.Contains(s.Default, "\n") {
		return "the starter catalogue"
	}
	return s.Default
}

// Load returns the configuration that the file, the environment of the process and the flags make,
// in ascending order of precedence. The flags are those of AddFlags, parsed. Its error joins all
// validation errors, each a *ValidationError; there is no configuration then.
func Load(flags *pflag.FlagSet) (*Config, error) {
	c, err := LoadPartial(flags)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// LoadPartial is Load, and returns a configuration beside the error too, to be shown and not used.
// A setting that is invalid or missing has its default there, and the effective configuration has a
// comment at it.
func LoadPartial(flags *pflag.FlagSet) (*Config, error) {
	path, origin := filePath(flags)
	content, unreadable := readFile(path, origin)
	c, errs := load(flags, content, nil)
	if unreadable != nil {
		// A setting that is missing may be in the file.
		errs = slices.DeleteFunc(errs, func(err error) bool {
			invalid, ok := errors.AsType[*ValidationError](err)
			return ok && invalid.Origin.Source == SourceDefault
		})
		errs = append([]error{unreadable}, errs...)
	}
	return c, errors.Join(errs...)
}

// Default returns the configuration that no file, variable or flag sets, for a program that has a
// configuration of its own. Its fields may be changed until it is used; prometheus.url, which has
// no default, is empty. An error is a bug of the release.
func Default() (*Config, error) {
	c := &Config{origins: make(map[string]Origin), invalid: make(map[string]Origin)}
	for _, s := range Settings() {
		s.binding.set(c, textNode(s.Default)) // a required setting has no default, and stays empty
		c.origins[s.Key] = Origin{Source: SourceDefault}
	}
	c.derive()
	return c, errors.Join(c.readCatalogue()...)
}

func filePath(flags *pflag.FlagSet) (string, Origin) {
	if flag := flags.Lookup(fileFlag); flag != nil && flag.Changed {
		return flag.Value.String(), Origin{Source: SourceFlag, Name: "--" + fileFlag}
	}
	return os.Getenv(fileEnvironment), Origin{Source: SourceEnvironment, Name: fileEnvironment}
}

func readFile(path string, origin Origin) (file, error) {
	if path == "" {
		return file{}, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return file{}, &ValidationError{
			Key: fileFlag, Origin: origin,
			Problem: fmt.Sprintf("the file %s cannot be read: %s", path, cause(err)),
			Remedy:  "name a file that the server may read",
		}
	}
	return file{path: path, data: data}, nil
}

// load makes a configuration with the content of a file, and of the parts of ConfigMaps over it. If
// there are errors, the settings that are invalid have their defaults.
func load(flags *pflag.FlagSet, from file, parts []file) (*Config, []error) {
	settings := Settings()
	given := newDocuments(settings)
	errs := given.add(from, ScopeServer)
	for _, part := range parts {
		errs = append(errs, given.add(part, ScopeGlobal)...)
	}
	layered := layers(settings, given.values, flags)
	c := &Config{
		flags: flags, file: from, parts: parts,
		origins: make(map[string]Origin, len(settings)), invalid: make(map[string]Origin), merged: make(map[string][]Origin),
		unknown: unknownVariables(settings),
	}
	for _, s := range settings {
		errs = append(errs, c.set(s, layered, given)...)
	}
	c.derive()
	errs = append(errs, c.readCatalogue()...)
	return c, append(errs, c.check()...)
}

// set gives a setting its value, or its default if the value is invalid.
func (c *Config) set(s Setting, layered *viper.Viper, given *documents) []error {
	value, origin := s.value(layered, given, c.flags)
	c.origins[s.Key] = origin
	if origin.isDocument() {
		c.merged[s.Key] = given.beneathOf(s.Key)
	}
	var errs []error
	for _, p := range s.binding.set(c, value) {
		at := origin
		if origin.isDocument() {
			at = cmp.Or(given.origin(p.node), origin)
		}
		if at.Source == SourceConfigMap {
			continue // it was validated when it was read
		}
		errs = append(errs, &ValidationError{Key: s.Key, Origin: at, Problem: p.text, Remedy: p.remedy})
	}
	if len(errs) > 0 {
		c.invalid[s.Key], c.origins[s.Key] = origin, Origin{Source: SourceDefault}
		s.binding.set(c, textNode(s.Default)) // a required setting has no default, and stays empty
	}
	return errs
}

// layers gives viper the sources; it returns the value of highest precedence.
func layers(settings []Setting, fromFile map[string]*yaml.Node, flags *pflag.FlagSet) *viper.Viper {
	v := viper.New()
	for _, s := range settings {
		v.SetDefault(s.Key, s.Default)
		_ = v.BindEnv(s.Key, s.Env()) // fails without a key only
		if flag := flags.Lookup(s.Flag()); flag != nil {
			_ = v.BindPFlag(s.Key, flag) // fails without a flag only
		}
	}
	nested := make(map[string]any)
	for key, node := range fromFile {
		section := nested
		parts := strings.Split(key, ".")
		for _, part := range parts[:len(parts)-1] {
			if _, begun := section[part]; !begun {
				section[part] = make(map[string]any)
			}
			section = section[part].(map[string]any)
		}
		section[parts[len(parts)-1]] = node
	}
	_ = v.MergeConfigMap(nested) // never fails
	return v
}

// value returns the value of a setting that takes precedence, and its origin.
func (s Setting) value(layered *viper.Viper, given *documents, flags *pflag.FlagSet) (*yaml.Node, Origin) {
	switch value := layered.Get(s.Key).(type) {
	case *yaml.Node:
		return value, given.origin(value)
	case string:
		return textNode(value), s.originOfText(flags)
	default:
		return textNode(s.Default), Origin{Source: SourceDefault}
	}
}

// originOfText returns the origin of a value that is not from the file. An empty variable sets
// nothing.
func (s Setting) originOfText(flags *pflag.FlagSet) Origin {
	if flag := flags.Lookup(s.Flag()); flag != nil && flag.Changed {
		return Origin{Source: SourceFlag, Name: "--" + s.Flag()}
	}
	if os.Getenv(s.Env()) != "" {
		return Origin{Source: SourceEnvironment, Name: s.Env()}
	}
	return Origin{Source: SourceDefault}
}

// serviceVariable matches the variables that Kubernetes sets in each pod for each Service of its
// namespace.
var serviceVariable = regexp.MustCompile(`^[A-Z0-9_]+_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`)

// unknownVariables returns a warning for each variable with the prefix that is no setting, sorted.
func unknownVariables(settings []Setting) []string {
	known := []string{fileEnvironment}
	for _, s := range settings {
		known = append(known, s.Env())
	}
	var warnings []string
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, environmentPrefix) || slices.Contains(known, name) || serviceVariable.MatchString(name) {
			continue
		}
		warning := "environment variable " + name + " sets nothing"
		if near, found := fleet.Nearest(name, known); found {
			warning += "; did you mean " + near + "?"
		}
		warnings = append(warnings, warning)
	}
	slices.Sort(warnings)
	return warnings
}
