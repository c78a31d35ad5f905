// Package config reads the configuration of the server from a YAML file, environment variables and
// flags, in ascending order of precedence, into one Config. All validation errors are reported at
// once, each with its origin and remedy.
//
// One table, Settings, has a row for each setting. Flags, names of environment variables,
// validation, the effective configuration and docs/configuration.md are made from it.
//
// Units: durations are time.Duration, written as "15s"; shares are between 0 and 1.
//
// Limits: the package validates values and knows nothing of their effect: package app passes them
// on. Only this package imports viper.
package config
