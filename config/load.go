package config

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"
	"go.yaml.in/yaml/v3"
)

// The configuration file itself is named by a flag or a variable.
const (
	fileFlag        = "config"
	fileEnvironment = environmentPrefix + "CONFIG"
)

// AddFlags defines a flag for every setting that has one, and one for the configuration file.
func AddFlags(flags *pflag.FlagSet) {
	flags.String(fileFlag, "", "configuration file, YAML ("+fileEnvironment+")")
	for _, s := range Settings() {
		if s.Flag() != "" {
			flags.Var(&flagValue{kind: s.Kind(), text: s.shownDefault()}, s.Flag(), s.Meaning)
		}
	}
}

// flagValue takes any text: Load says what is wrong with it, together with all other faults.
type flagValue struct{ kind, text string }

func (f *flagValue) String() string { return f.text }
func (f *flagValue) Type() string   { return f.kind }

// Set takes the text.
func (f *flagValue) Set(text string) error {
	f.text = text
	return nil
}

// shownDefault is the default as help shows it: in short.
func (s Setting) shownDefault() string {
	if strings.Contains(s.Default, "\n") {
		return "the starter catalogue"
	}
	return s.Default
}

// Load returns the configuration that the file, the environment of the process and the flags make, in order of growing
// strength. The flags are those of AddFlags, parsed. Its error joins every fault, each a *FaultError.
func Load(flags *pflag.FlagSet) (*Config, error) {
	path, origin := filePath(flags)
	read, unreadable := readFile(path, origin)
	c, faults := load(flags, read)
	if unreadable != nil {
		// What is only missing may stand in the file.
		faults = slices.DeleteFunc(faults, func(err error) bool {
			fault, ok := errors.AsType[*FaultError](err)
			return ok && fault.Origin.Source == SourceDefault
		})
		faults = append([]error{unreadable}, faults...)
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return c, nil
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
		return file{}, &FaultError{
			Key: fileFlag, Origin: origin, Problem: fmt.Sprintf("the file %s cannot be read: %s", path, cause(err)), Remedy: "name a file that the server may read",
		}
	}
	return file{path: path, data: data}, nil
}

// load makes a configuration with the file as it was read. It means something only where there are no faults.
func load(flags *pflag.FlagSet, from file) (*Config, []error) {
	settings := Settings()
	values, faults := from.read(settings)
	layered := layers(settings, values, flags)
	c := &Config{flags: flags, file: from, origins: make(map[string]Origin, len(settings)), unknown: unknownVariables(settings)}
	broken := make(map[string]bool)
	for _, s := range settings {
		given, origin := s.given(layered, from, flags)
		c.origins[s.Key] = origin
		for _, wrong := range s.binding.set(c, given) {
			broken[s.Key] = true
			at := origin
			if at.Source == SourceFile {
				at.Line = wrong.node.Line
			}
			faults = append(faults, &FaultError{Key: s.Key, Origin: at, Problem: wrong.problem, Remedy: wrong.remedy})
		}
	}
	c.derive()
	faults = append(faults, c.readCatalogue()...)
	return c, append(faults, c.check(broken)...)
}

// layers lays the sources over one another: viper answers with the strongest.
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

// given returns the strongest value of a setting and where it comes from.
func (s Setting) given(layered *viper.Viper, from file, flags *pflag.FlagSet) (*yaml.Node, Origin) {
	switch value := layered.Get(s.Key).(type) {
	case *yaml.Node:
		return value, from.origin(value.Line)
	case string:
		return textNode(value), s.originOfText(flags)
	default:
		return textNode(s.Default), Origin{Source: SourceDefault}
	}
}

// originOfText returns where a value comes from that does not come from the file. An empty variable counts as none.
func (s Setting) originOfText(flags *pflag.FlagSet) Origin {
	if flag := flags.Lookup(s.Flag()); flag != nil && flag.Changed {
		return Origin{Source: SourceFlag, Name: "--" + s.Flag()}
	}
	if os.Getenv(s.Env()) != "" {
		return Origin{Source: SourceEnvironment, Name: s.Env()}
	}
	return Origin{Source: SourceDefault}
}

// serviceVariable matches what Kubernetes sets in every pod for each Service of its namespace.
var serviceVariable = regexp.MustCompile(`^[A-Z0-9_]+_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`)

// unknownVariables returns a warning for each variable with our prefix that no setting has, sorted.
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
		if near, found := nearest(name, known); found {
			warning += "; did you mean " + near + "?"
		}
		warnings = append(warnings, warning)
	}
	slices.Sort(warnings)
	return warnings
}
