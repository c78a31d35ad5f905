package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// modesBelow returns the modes of the files below a directory.
func modesBelow(t *testing.T, dir string) map[string]fs.FileMode {
	t.Helper()
	modes := map[string]fs.FileMode{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		below, err := filepath.Rel(dir, path)
		modes[below] = info.Mode()
		require.Equal(t, int64(0), info.ModTime().Unix(), "time of %s", below)
		return err
	}))
	return modes
}

func TestTreeOnDiskIsThatOfTheImage(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "below", "tree")
	want := map[string]fs.FileMode{}
	for _, e := range rootTree(nil) {
		want[e.path] = e.mode
	}
	for _, binary := range []string{"first", "second"} {
		require.NoError(t, writeTree(dir, rootTree([]byte(binary))))
		require.Equal(t, want, modesBelow(t, dir))
		got, err := os.ReadFile(filepath.Join(dir, "wva"))
		require.NoError(t, err)
		require.Equal(t, binary, string(got))
	}
}

func TestTreeWithOtherFilesIsRejected(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "home"), 0o755))
	require.ErrorContains(t, writeTree(dir, rootTree(nil)), "home, which is not part of the image; name an empty directory")
	require.NoFileExists(t, filepath.Join(dir, "wva"))

	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(dir, link))
	require.ErrorContains(t, writeTree(link, rootTree(nil)), "home, which is not part of the image")
	require.NoFileExists(t, filepath.Join(dir, "wva"))
}

func TestTreeIsNotWrittenThroughALink(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	require.NoError(t, os.Symlink(elsewhere, filepath.Join(dir, "etc")))
	require.ErrorContains(t, writeTree(dir, rootTree(nil)), "etc, which is not part of the image")
	require.NoFileExists(t, filepath.Join(elsewhere, "passwd"))
}

func TestTreeOfAnInterruptedRunIsWrittenAgain(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "wva.new"), []byte("part"), 0o600))
	require.NoError(t, writeTree(dir, rootTree([]byte("whole"))))
	require.NoFileExists(t, filepath.Join(dir, "wva.new"))
}
