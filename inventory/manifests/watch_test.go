package manifests

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/inventory/manifesttest"
)

func TestEditIsReadAndNotifiedOnce(t *testing.T) {
	f := newFolder(t, map[string]string{"a.yaml": manifesttest.L4("a")})
	f.watch(func() {
		f.settle()
		f.toldTimes(0)
		f.write("a.yaml", manifesttest.L4("edited"))
		f.write("b.yaml", manifesttest.L4("b"))
		f.settle()
		require.Equal(t, "b edited", f.nodes())
		f.toldTimes(1, "two files of one burst are one change")
		require.NoError(t, os.Remove(filepath.Join(f.path, "b.yaml")))
		f.settle()
		require.Equal(t, "edited", f.nodes())
		f.toldTimes(2)
	})
}

func TestFileWithTheSameContentIsNoChange(t *testing.T) {
	f := newFolder(t, map[string]string{"a.yaml": manifesttest.L4("a")})
	f.watch(func() {
		f.write("a.yaml", "# a comment\n"+manifesttest.L4("a"))
		f.settle()
		f.toldTimes(0)
	})
}

func TestFileThatIsRenamedOverAnotherIsRead(t *testing.T) {
	f := newFolder(t, map[string]string{"a.yaml": manifesttest.L4("a")})
	before, err := os.Stat(filepath.Join(f.path, "a.yaml"))
	require.NoError(t, err)
	f.watch(func() {
		f.write(".a.yaml.swp", manifesttest.L4("b")) // as long, and made to look as old
		require.NoError(t, os.Chtimes(filepath.Join(f.path, ".a.yaml.swp"), before.ModTime(), before.ModTime()))
		require.NoError(t, os.Rename(filepath.Join(f.path, ".a.yaml.swp"), filepath.Join(f.path, "a.yaml")))
		f.settle()
		require.Equal(t, "b", f.nodes())
		f.toldTimes(1)
	})
}

func TestSwappedLinksOfAConfigMapAreRead(t *testing.T) {
	f := newFolder(t, nil)
	mount := func(revision, text string) {
		require.NoError(t, os.Mkdir(filepath.Join(f.path, revision), 0o755))
		f.write(filepath.Join(revision, "nodes.yaml"), text)
		require.NoError(t, os.Symlink(revision, filepath.Join(f.path, "..data_tmp")))
		require.NoError(t, os.Rename(filepath.Join(f.path, "..data_tmp"), filepath.Join(f.path, "..data")))
	}
	mount("..1", manifesttest.L4("a"))
	require.NoError(t, os.Symlink("..data/nodes.yaml", filepath.Join(f.path, "nodes.yaml")))
	f.watch(func() {
		require.Equal(t, "a", f.nodes())
		mount("..2", manifesttest.L4("b"))
		require.NoError(t, os.RemoveAll(filepath.Join(f.path, "..1")))
		f.settle()
		require.Equal(t, "b", f.nodes())
		f.toldTimes(1)
	})
}

func TestInvalidEditKeepsThePreviousContentUntilItIsRepaired(t *testing.T) {
	for name, invalid := range map[string]string{
		"a broken document":  manifesttest.L4("new") + "\n---\n" + "a: [",
		"a broken file":      "\xff",
		"a broken object":    manifesttest.L4("new") + "\n---\n" + "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: 5",
		"a truncated file":   "",
		"a file of comments": "# nothing\n",
	} {
		t.Run(name, func(t *testing.T) {
			f := newFolder(t, map[string]string{"a.yaml": manifesttest.L4("a"), "b.yaml": manifesttest.L4("b")})
			f.watch(func() {
				f.write("a.yaml", invalid)
				f.settle()
				require.Equal(t, "a b", f.nodes())
				problems := f.watched.Tables().Problems
				require.Len(t, problems, 1)
				require.Contains(t, problems[0].Text, "its previous content is used")
				f.toldTimes(1, "a problem is told like any change")
				f.write("a.yaml", invalid+" ")
				f.settle()
				f.settle()
				f.warnedTimes(1, "a problem is said once")

				f.write("a.yaml", manifesttest.L4("repaired"))
				f.settle()
				require.Equal(t, "b repaired", f.nodes())
				require.Empty(t, f.watched.Tables().Problems)
				_, log := f.told()
				require.Contains(t, log, "problem in the manifests is solved")
			})
		})
	}
}

func TestFileThatNeverWasValidIsReadAsFarAsPossible(t *testing.T) {
	f := newFolder(t, map[string]string{"a.yaml": manifesttest.L4("a") + "\n---\na: ["})
	f.watch(func() {
		require.Equal(t, "a", f.nodes())
		require.Len(t, f.watched.Tables().Problems, 1)
		f.write("a.yaml", manifesttest.L4("b")+"\n---\na: [")
		f.settle()
		require.Equal(t, "b", f.nodes(), "there is no whole content to fall back on")
		f.write("a.yaml", "")
		f.settle()
		require.Equal(t, "b", f.nodes(), "an empty file takes nothing away")
	})
}

func TestDirectoryThatGoesAwayKeepsItsContent(t *testing.T) {
	f := newFolder(t, map[string]string{"a.yaml": manifesttest.L4("a")})
	f.watch(func() {
		away := f.path + ".away"
		require.NoError(t, os.Rename(f.path, away))
		f.settle()
		require.Equal(t, "a", f.nodes())
		require.Len(t, f.watched.Tables().Problems, 1)
		require.Contains(t, f.watched.Tables().Problems[0].Text, "previous content is used")
		f.warnedTimes(1)
		require.NoError(t, os.Rename(away, f.path))
		f.settle()
		require.Equal(t, "a", f.nodes())
		require.Empty(t, f.watched.Tables().Problems)
		f.toldTimes(2)
	})
}

func TestFileThatIsGoneForAMomentRemovesNothing(t *testing.T) {
	f := newFolder(t, map[string]string{"a.yaml": manifesttest.L4("a"), "b.yaml": manifesttest.L4("b")})
	f.watch(func() {
		require.NoError(t, os.Remove(filepath.Join(f.path, "a.yaml")))
		time.Sleep(defaultPollInterval + defaultPollInterval/2)
		synctest.Wait()
		require.Equal(t, "a b", f.nodes())
		f.write("a.yaml", manifesttest.L4("new"))
		f.settle()
		require.Equal(t, "b new", f.nodes())
		f.toldTimes(1)
	})
}

func TestFileThatKeepsChangingIsReadAllTheSame(t *testing.T) {
	f := newFolder(t, map[string]string{"a.yaml": manifesttest.L4("a0")})
	f.watch(func() {
		for i := range 3 * maxUnstablePolls {
			f.write("a.yaml", manifesttest.L4(fmt.Sprint("a", i+1))+strings.Repeat("\n", i))
			time.Sleep(defaultPollInterval)
			synctest.Wait()
		}
		require.NotEqual(t, "a0", f.nodes())
		changes, _ := f.told()
		require.Positive(t, changes)
		require.LessOrEqual(t, changes, 4)
		f.settle()
		require.Equal(t, fmt.Sprint("a", 3*maxUnstablePolls), f.nodes(), "and once more when it has come to rest")
	})
}

func TestFileThatWasReadWhileItWasWrittenIsReadAgain(t *testing.T) {
	f := newFolder(t, map[string]string{"a.yaml": manifesttest.L4("a")})
	d := f.open(Options{})
	for i := range maxUnstablePolls {
		f.write("a.yaml", manifesttest.L4("b")+strings.Repeat("\n", i))
		d.poll()
	}
	require.Equal(t, "b", f.nodes())
	written, err := os.Stat(filepath.Join(f.path, "a.yaml"))
	require.NoError(t, err)
	// as long, within the same tick of the file system's clock
	f.write("a.yaml", manifesttest.L4("c")+strings.Repeat("\n", maxUnstablePolls-1))
	require.NoError(t, os.Chtimes(filepath.Join(f.path, "a.yaml"), written.ModTime(), written.ModTime()))
	d.poll()
	d.poll()
	require.Equal(t, "c", f.nodes())
}

func TestFileThatGrowsBeyondTheLimitWhileItIsReadIsAnError(t *testing.T) {
	const endless = "/proc/self/status" // whose size is said to be 0
	if info, err := os.Stat(endless); err != nil || info.Size() != 0 {
		t.Skip("no file that holds more than its size says")
	}
	f := newFolder(t, nil)
	require.NoError(t, os.Symlink(endless, filepath.Join(f.path, "a.yaml")))
	problems := f.open(Options{MaxFileBytes: 10}).Tables().Problems
	require.Len(t, problems, 1)
	require.Contains(t, problems[0].Text, "grows")
}

func TestFileThatBecomesReadableIsRead(t *testing.T) {
	f := newFolder(t, map[string]string{"a.yaml": manifesttest.L4("a")})
	require.NoError(t, os.Symlink("later", filepath.Join(f.path, "b.yaml")))
	f.watch(func() {
		require.Equal(t, "a", f.nodes())
		f.write("later", manifesttest.L4("b"))
		time.Sleep(maxUnstablePolls * defaultPollInterval)
		f.settle()
		require.Equal(t, "a b", f.nodes())
		require.Empty(t, f.watched.Tables().Problems)
	})
}

func TestTablesMayBeReadWhileTheDirectoryChanges(t *testing.T) {
	f := newFolder(t, map[string]string{"a.yaml": manifesttest.L4("a")})
	f.watch(func() {
		done := make(chan int)
		go func() {
			seen := 0
			for range 2000 {
				seen += len(f.watched.Tables().Pools) + f.watched.Counts().Files
			}
			done <- seen
		}()
		for i := range 5 {
			f.write("a.yaml", manifesttest.L4(fmt.Sprint("a", i)))
			f.watched.poll()
			f.watched.poll()
		}
		require.Equal(t, 4000, <-done)
	})
}
