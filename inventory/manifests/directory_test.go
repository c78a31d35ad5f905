package manifests

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/inventory"
	"github.com/wva-project/wva/inventory/manifesttest"
)

// folder is a directory of a test, read and watched.
type folder struct {
	t       *testing.T
	path    string
	watched *Directory

	mu      sync.Mutex
	changes int
	log     bytes.Buffer
}

// Write appends to the log.
func (f *folder) Write(line []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.log.Write(line)
}

// changed counts the calls.
func (f *folder) changed() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changes++
}

// told returns the number of calls of changed, and the log.
func (f *folder) told() (changes int, log string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changes, f.log.String()
}

// toldTimes fails unless changed was called that often.
func (f *folder) toldTimes(want int, why ...any) {
	f.t.Helper()
	changes, _ := f.told()
	require.Equal(f.t, want, changes, why...)
}

// warnedTimes fails unless the log has that many warnings.
func (f *folder) warnedTimes(want int, why ...any) {
	f.t.Helper()
	_, log := f.told()
	require.Equal(f.t, want, strings.Count(log, "level=WARN"), why...)
}

func newFolder(t *testing.T, files map[string]string) *folder {
	t.Helper()
	f := &folder{t: t, path: t.TempDir()}
	for name, text := range files {
		f.write(name, text)
	}
	return f
}

func (f *folder) write(name, text string) {
	f.t.Helper()
	require.NoError(f.t, os.WriteFile(filepath.Join(f.path, name), []byte(text), 0o644))
}

func (f *folder) open(options Options) *Directory {
	f.t.Helper()
	options.Path = f.path
	options.Logger = slog.New(slog.NewTextHandler(f, nil))
	d, err := Open(options)
	require.NoError(f.t, err)
	f.watched = d
	return d
}

// watch watches the directory in a bubble of its own time, while the scenario runs.
func (f *folder) watch(scenario func()) {
	f.t.Helper()
	synctest.Test(f.t, func(t *testing.T) {
		f.open(Options{})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- f.watched.Watch(ctx, f.changed) }()
		scenario()
		cancel()
		require.NoError(t, <-ended)
	})
}

// settle waits for enough polls to read a change, and none beyond.
func (f *folder) settle() {
	time.Sleep(2*defaultPollInterval + defaultPollInterval/2)
	synctest.Wait()
}

// nodes returns the names of the current nodes.
func (f *folder) nodes() string {
	var names []string
	for _, pool := range f.watched.Tables().Pools {
		for _, node := range pool.Nodes {
			names = append(names, node.Name)
		}
	}
	return strings.Join(names, " ")
}

func TestDirectoryThatCannotBeReadIsAnError(t *testing.T) {
	_, err := Open(Options{Path: filepath.Join(t.TempDir(), "none")})
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "give a directory")
	file := filepath.Join(t.TempDir(), "file.yaml")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	_, err = Open(Options{Path: file})
	require.Error(t, err)
}

func TestFilesThatAreRead(t *testing.T) {
	f := newFolder(t, map[string]string{
		"a.yaml": manifesttest.L4("a"), "b.yml": manifesttest.L4("b"), "c.json": `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"}}`, "d.YAML": manifesttest.L4("d"),
		"e.txt": manifesttest.L4("e"), ".hidden.yaml": manifesttest.L4("f"), "g.yaml~": manifesttest.L4("g"), ".#h.yaml": manifesttest.L4("h"),
	})
	require.NoError(t, os.Mkdir(filepath.Join(f.path, "sub.yaml"), 0o755))
	outside := filepath.Join(t.TempDir(), "outside")
	require.NoError(t, os.WriteFile(outside, []byte(manifesttest.L4("linked")), 0o644))
	require.NoError(t, os.Symlink(outside, filepath.Join(f.path, "link.yaml")))
	d := f.open(Options{})
	require.Equal(t, "a b d linked", f.nodes())
	require.Equal(t, Counts{Files: 5, Objects: 4, Skipped: 1}, d.Counts())
	require.Empty(t, d.Tables().Problems)
}

func TestFileThatCannotBeReadIsAProblemAndTheOthersCount(t *testing.T) {
	f := newFolder(t, map[string]string{"a.yaml": manifesttest.L4("a"), "large.yaml": "# " + strings.Repeat("x", 2000)})
	require.NoError(t, os.Symlink("nowhere", filepath.Join(f.path, "dangling.yaml")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(f.path, "pipe.yaml"), 0o644))
	d := f.open(Options{MaxFileBytes: 1000})
	require.Equal(t, "a", f.nodes())
	problems := d.Tables().Problems
	require.Len(t, problems, 3)
	require.Equal(t, "dangling.yaml: the file it links to cannot be read; make it a readable file, or remove it", problems[0].String())
	require.Equal(t, "large.yaml: has 2002 bytes, more than the 1000 that are read; split it; make it a readable file, or remove it", problems[1].String())
	require.Equal(t, "pipe.yaml: is not a regular file; make it a readable file, or remove it", problems[2].String())
}

func TestEmptyDirectoryIsAProblem(t *testing.T) {
	d := newFolder(t, nil).open(Options{})
	require.Len(t, d.Tables().Problems, 1)
	require.Contains(t, d.Tables().Problems[0].Text, "has no file")
}

func TestRepeatedObjectIsUsedOnceAndIsAProblem(t *testing.T) {
	f := newFolder(t, map[string]string{"a.yaml": manifesttest.Scaled("x", `variantCost: "1"`), "b.yaml": "---\n" + manifesttest.Scaled("x", `variantCost: "2"`)})
	tables := f.open(Options{}).Tables()
	require.Len(t, tables.Variants, 1)
	require.InDelta(t, 1.0, tables.Variants[0].Cost, 0)
	require.Contains(t, tables.Problems, inventory.Problem{
		Object: "b.yaml, document 1 (line 1)",
		Text:   "repeats ScaledObject llm/x of a.yaml, document 1 (line 1), which is used",
		Remedy: "remove one of them",
	})
}

func TestReloadKeepsTheOptions(t *testing.T) {
	f := newFolder(t, map[string]string{"a.yaml": manifesttest.L4("a")})
	d := f.open(Options{Tables: inventory.Options{Accelerators: map[string]fleet.Accelerator{"NVIDIA-L4": "small"}}})
	f.write("b.yaml", manifesttest.L4("b"))
	d.poll()
	require.True(t, d.poll())
	require.Len(t, d.Tables().Pools, 1)
	require.Equal(t, fleet.Accelerator("small"), d.Tables().Pools[0].Accelerator)
}

// Counts returns how much was read.
func (d *Directory) Counts() Counts { return d.current.Load().counts }
