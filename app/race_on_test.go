//go:build race

package app

// underRace is true if the race detector slows the tests down some ten times.
const underRace = true
