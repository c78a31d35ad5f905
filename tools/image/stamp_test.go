package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// runGit runs git with an identity and a time of its own.
func runGit(t *testing.T, dir string, arguments ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "git", arguments...)
	command.Dir = dir
	command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
		"GIT_AUTHOR_DATE=1600000000 +0000", "GIT_COMMITTER_DATE=1700000000 +0000")
	output, err := command.CombinedOutput()
	require.NoError(t, err, "git %q: %s", arguments, output)
}

func TestStampIsThatOfTheCommit(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "")
	dir := t.TempDir()
	s, err := stampOf(context.Background(), dir, "")
	require.NoError(t, err)
	require.Equal(t, stamp{Version: "dev", Created: epoch.UTC()}, s, "outside a repository")

	runGit(t, dir, "init", "--quiet")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a"), nil, 0o600))
	runGit(t, dir, "add", "a")
	runGit(t, dir, "commit", "--quiet", "--message", "first")
	s, err = stampOf(context.Background(), dir, "")
	require.NoError(t, err)
	require.Len(t, s.Revision, 40)
	require.Contains(t, s.Revision, s.Version)
	require.Equal(t, created, s.Created)

	runGit(t, dir, "tag", "v0.3.0")
	s, err = stampOf(context.Background(), dir, "")
	require.NoError(t, err)
	require.Equal(t, "v0.3.0", s.Version)

	require.NoError(t, os.WriteFile(filepath.Join(dir, "a"), []byte("changed"), 0o600))
	s, err = stampOf(context.Background(), dir, "")
	require.NoError(t, err)
	require.Equal(t, "v0.3.0-dirty", s.Version)

	require.NoError(t, os.WriteFile(filepath.Join(dir, "a"), nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "new.go"), nil, 0o600))
	s, err = stampOf(context.Background(), dir, "")
	require.NoError(t, err)
	require.Equal(t, "v0.3.0-dirty", s.Version, "a Go file that is built in and not committed")
	require.NoError(t, os.Remove(filepath.Join(dir, "new.go")))

	t.Setenv("GIT_DIR", filepath.Join(t.TempDir(), ".git"))
	s, err = stampOf(context.Background(), dir, "")
	require.NoError(t, err)
	require.Equal(t, "v0.3.0", s.Version, "within a hook of another repository")

	below := filepath.Join(dir, "below")
	require.NoError(t, os.Mkdir(below, 0o755))
	s, err = stampOf(context.Background(), below, "")
	require.NoError(t, err)
	require.Equal(t, stamp{Version: "dev", Created: epoch.UTC()}, s, "an archive that is unpacked in another repository")
}

// git does not read the repository of another user, as a container may mount it.
func TestRepositoryThatGitDoesNotReadIsAnError(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, ".git"), 0o755))
	for _, version := range []string{"", "v9"} {
		_, err := stampOf(context.Background(), dir, version)
		require.ErrorContains(t, err, "reading the git repository "+dir)
		require.ErrorContains(t, err, "make git read it")
	}
}

func TestGivenVersionAndTimeOverrideThoseOfGit(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	s, err := stampOf(context.Background(), t.TempDir(), "v9")
	require.NoError(t, err)
	require.Equal(t, stamp{Version: "v9", Created: created}, s)

	_, err = stampOf(context.Background(), t.TempDir(), "v1.0+meta")
	require.ErrorContains(t, err, `version "v1.0+meta" cannot be the tag`)
	for _, seconds := range []string{"today", "-1", "253402300800", "99999999999999999999"} {
		t.Setenv("SOURCE_DATE_EPOCH", seconds)
		_, err = stampOf(context.Background(), t.TempDir(), "v9")
		require.ErrorContains(t, err, "SOURCE_DATE_EPOCH", seconds)
	}
}

func TestSourceIsTheModuleAbove(t *testing.T) {
	root, err := sourceAbove(".")
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(root, "cmd", "wva", "main.go"))
	_, err = sourceAbove(t.TempDir())
	require.ErrorContains(t, err, "name it with --source")
}
