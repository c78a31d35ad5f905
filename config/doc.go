// Package config reads the configuration of the server from a YAML file, the environment and flags, in order of growing
// strength, and makes one Config of it. Everything that is wrong is reported at once, each fault with its origin and remedy.
//
// One table says what there is to set (see Settings): flags, names of environment variables, validation, the effective
// configuration and the documentation come from it.
//
// Units: durations are time.Duration, written as "15s"; shares are between 0 and 1.
//
// Limits: the package knows what a setting may be, not what it does: whoever wires the server hands the values on. viper
// is linked here and nowhere else.
package config
