// Package manifests reads the objects of a fleet from YAML or JSON files, for use without a
// cluster: Read reads one file, and Open a directory, which is read again when it changes. While a
// file cannot be read, its last valid content is used, and a problem says so.
//
// Limits: nodes do not tell whether a node autoscaler adds more of them, so all pools are fixed.
// Files have at most 16 MiB, and YAML has no aliases. Subdirectories are not read.
package manifests
