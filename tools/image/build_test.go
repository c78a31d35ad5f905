package main

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// copySource copies the product's files that are built or embedded, without git's.
func copySource(t *testing.T) string {
	t.Helper()
	root, err := sourceAbove(".")
	require.NoError(t, err)
	to := filepath.Join(t.TempDir(), "source")
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains([]string{".git", "bin", "dist", "docs", "e2e", "testdata", "tools"}, d.Name()) {
				return fs.SkipDir
			}
			return os.MkdirAll(filepath.Join(to, below), 0o755)
		}
		if strings.HasSuffix(path, "_test.go") || !d.Type().IsRegular() {
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, below), content, 0o600)
	}))
	return to
}

// TestTwoBuildsAreEqualByteForByte builds the image twice: in other directories, and with another
// environment.
func TestTwoBuildsAreEqualByteForByte(t *testing.T) {
	if testing.Short() {
		t.Skip("builds wva for two platforms")
	}
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	build := func() (string, *report) {
		o := options{
			source: copySource(t), version: "v1.2.3", repository: "ghcr.io/wva-project/wva",
			format: "text", platforms: []string{"linux/amd64", "linux/arm64"},
			to: destinations{layout: filepath.Join(t.TempDir(), "image")},
		}
		report, err := run(context.Background(), o)
		require.NoError(t, err)
		return o.to.layout, report
	}
	first, report := build()
	for name, value := range map[string]string{
		"GOFLAGS": "-tags=other", "GOAMD64": "v3", "CGO_ENABLED": "1", "TZ": "Asia/Tokyo", "TMPDIR": t.TempDir(),
	} {
		t.Setenv(name, value)
	}
	second, again := build()
	require.Equal(t, report.Digest, again.Digest)
	equalFiles(t, first, second)
	t.Run("the binary runs in the image", func(t *testing.T) { runInImage(t, first, "v1.2.3") })
}

// equalFiles compares all files below two directories.
func equalFiles(t *testing.T, first, second string) {
	t.Helper()
	names := func(dir string) []string {
		var all []string
		require.NoError(t, fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				all = append(all, path)
			}
			return err
		}))
		return all
	}
	require.Equal(t, names(first), names(second))
	for _, name := range names(first) {
		a, err := os.ReadFile(filepath.Join(first, name))
		require.NoError(t, err)
		b, err := os.ReadFile(filepath.Join(second, name))
		require.NoError(t, err)
		require.True(t, slices.Equal(a, b), "%s differs", name)
	}
}

// runInImage unpacks the layer for this machine's processor and runs its binary: with the layer as
// its root directory and as the image's user, if this test may do that.
func runInImage(t *testing.T, dir, version string) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the binary is for Linux")
	}
	image := readImages(t, dir)[slices.Index([]string{"amd64", "arm64"}, runtime.GOARCH)]
	headers, contents := files(t, image)
	root := t.TempDir()
	require.NoError(t, os.Chmod(root, 0o755))
	for _, h := range headers {
		path := filepath.Join(root, h.Name)
		if strings.HasSuffix(h.Name, "/") {
			require.NoError(t, os.Mkdir(path, 0o755))
		} else {
			require.NoError(t, os.WriteFile(path, contents[h.Name], 0o600))
		}
		require.NoError(t, os.Chmod(path, h.FileInfo().Mode()))
	}
	for _, arguments := range [][]string{{"version"}, {"config", "--prometheus-url", "https://prometheus:9090"}} {
		var command *exec.Cmd
		if os.Getuid() == 0 {
			command = exec.CommandContext(t.Context(), "/wva", arguments...)
			command.SysProcAttr = &syscall.SysProcAttr{
				Chroot: root, Credential: &syscall.Credential{Uid: userID, Gid: userID},
			}
			command.Dir = "/"
		} else {
			t.Log("not root: the binary runs without the image's root directory and user")
			command = exec.CommandContext(t.Context(), filepath.Join(root, "wva"), arguments...)
		}
		command.Env = []string{"HOME=/"}
		output, err := command.CombinedOutput()
		require.NoError(t, err, "wva %q: %s", arguments, output)
		if arguments[0] == "version" {
			require.Equal(t, "wva "+version+", "+runtime.Version()+", linux/"+runtime.GOARCH+"\n", string(output))
		}
	}
}
