package manifests

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wva-project/wva/inventory"
)

// Defaults of a directory.
const (
	defaultPollInterval = time.Second
	defaultMaxFileBytes = 16 << 20
)

// Options say which manifests are read, and how.
type Options struct {
	// Path is the directory. Its files that end in .yaml, .yml or .json are read, not its
	// subdirectories. Required.
	Path string
	// PollInterval is the time between two checks for changes by Watch. Default: 1 s.
	PollInterval time.Duration
	// MaxFileBytes is the size of the largest file that is read. Default: 16 MiB.
	MaxFileBytes int64
	// Tables are the options for reading objects. Default: the zero value.
	Tables inventory.Options
	// Logger gets a warning for each problem, once, and a line when the content has changed.
	// Default: nothing is logged.
	Logger *slog.Logger
}

// Directory is a directory of manifests: ScaledObjects, workloads, pods and nodes as kubectl get -o
// yaml prints them.
//
// An invalid file removes nothing: if a file cannot be read completely any more, its last valid
// content is used until it is repaired. Of a file that never was valid, the readable objects are
// used. A file that is removed takes its objects with it.
type Directory struct {
	options Options
	current atomic.Pointer[directoryState]

	mu       sync.Mutex // locked while files are read
	listed   listing    // the files of the current content; without those that are to be read again
	pending  listing    // the files of the last poll, if they differ from listed
	waited   int        // polls since the change was first seen
	files    map[string]file
	unlisted string // why the directory itself cannot be read; empty if it can
}

// directoryState is the content of a directory at one time.
type directoryState struct {
	tables inventory.Tables
	counts Counts
}

// Counts say how much a directory contains.
type Counts struct {
	Files   int // that are read
	Objects int
	Skipped int // objects of kinds that are not read
}

// file is one file of the directory.
type file struct {
	content  content             // current content
	whole    bool                // content has no error
	problems []inventory.Problem // of the last reading
}

// Open reads the directory once. It fails if the directory cannot be read; errors in its
// files are in the tables' problems.
func Open(options Options) (*Directory, error) {
	if options.PollInterval <= 0 {
		options.PollInterval = defaultPollInterval
	}
	if options.MaxFileBytes <= 0 {
		options.MaxFileBytes = defaultMaxFileBytes
	}
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	d := &Directory{options: options, files: map[string]file{}}
	d.current.Store(&directoryState{})
	found, err := list(options.Path)
	if err != nil {
		return nil, fmt.Errorf("directory of manifests: %w; give a directory that can be read", err)
	}
	d.load(found, found)
	d.publish()
	return d, nil
}

// Tables returns the tables of the last reading, from memory. It never waits.
func (d *Directory) Tables() inventory.Tables { return d.current.Load().tables }

// load reads the files that are new or have changed, and removes those that are gone. A file whose
// state is not the expected one is still being written: it is read now, and again at the next poll.
func (d *Directory) load(found, expected listing) {
	files, listed := make(map[string]file, len(found)), make(listing, len(found))
	for name, info := range found {
		before, known := d.files[name]
		if known && same(d.listed[name], info) {
			files[name], listed[name] = before, info
			continue
		}
		data, err := d.readFile(name, info)
		files[name] = before.next(name, data, err)
		if err == nil && same(expected[name], info) {
			listed[name] = info
		}
	}
	d.files, d.listed, d.pending, d.waited = files, listed, nil, 0
}

// readFile reads a file that is not larger than allowed.
func (d *Directory) readFile(name string, info fs.FileInfo) ([]byte, error) {
	switch limit := d.options.MaxFileBytes; {
	case info == nil:
		return nil, errors.New("the file it links to cannot be read")
	case !info.Mode().IsRegular():
		return nil, errors.New("is not a regular file")
	case info.Size() > limit:
		return nil, fmt.Errorf("has %d bytes, more than the %d that are read; split it", info.Size(), limit)
	}
	f, err := os.Open(filepath.Join(d.options.Path, name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, d.options.MaxFileBytes+1))
	if err == nil && int64(len(data)) > d.options.MaxFileBytes {
		err = errors.New("grows while it is read")
	}
	return data, err
}

// next returns the file after a reading of it.
func (f file) next(name string, data []byte, err error) file {
	read := content{}
	if err != nil {
		read.problems = []inventory.Problem{{Object: name, Text: err.Error(), Remedy: "make it a readable file, or remove it"}}
	} else {
		read = parse(name, data)
	}
	holds := f.content.documents > 0
	if err == nil && holds && read.documents == 0 && len(read.problems) == 0 {
		// Most often its writer failed halfway: a file that is meant to be gone is removed.
		read.problems = []inventory.Problem{{Object: name, Text: "is empty now", Remedy: "write its objects again, or remove the file"}}
	}
	switch {
	case len(read.problems) == 0:
		return file{content: read, whole: true}
	case holds && (f.whole || read.documents == 0):
		for i := range read.problems {
			read.problems[i].Text += "; until that is repaired, its previous content is used"
		}
		return file{content: f.content, whole: f.whole, problems: read.problems}
	}
	return file{content: read, problems: read.problems}
}

// publish makes tables of all files, and reports whether they differ from the previous ones.
func (d *Directory) publish() bool {
	objects, problems := d.merge()
	next := &directoryState{tables: objects.Tables(d.options.Tables), counts: Counts{Files: len(d.files), Objects: objects.Len()}}
	for _, f := range d.files {
		next.counts.Skipped += f.content.skipped
	}
	next.tables.Problems = append(next.tables.Problems, problems...)
	slices.SortFunc(next.tables.Problems, inventory.CompareProblems)
	before := d.current.Swap(next)
	d.log(before, next)
	return !reflect.DeepEqual(before.tables, next.tables)
}

// merge joins the objects of the files, in the order of their names. If an object occurs twice, the
// first is used.
func (d *Directory) merge() (inventory.Objects, []inventory.Problem) {
	var objects inventory.Objects
	var problems []inventory.Problem
	if d.unlisted != "" {
		problems = append(problems, inventory.Problem{
			Object: d.options.Path, Text: d.unlisted + "; its previous content is used", Remedy: "make the directory readable",
		})
	} else if len(d.files) == 0 {
		problems = append(problems, inventory.Problem{
			Object: d.options.Path, Text: "has no file that ends in .yaml, .yml or .json", Remedy: "put manifests there, or correct the path",
		})
	}
	first := map[inventory.Key]string{}
	for _, name := range slices.Sorted(maps.Keys(d.files)) {
		problems = append(problems, d.files[name].problems...)
		for _, m := range d.files[name].content.manifests {
			if other, found := first[m.key]; found {
				problems = append(problems, inventory.Problem{
					Object: m.location, Text: fmt.Sprintf("repeats %s of %s, which is used", m.key, other), Remedy: "remove one of them",
				})
				continue
			}
			first[m.key] = m.location
			objects.Append(m.objects)
		}
	}
	return objects, problems
}

// log logs each change once.
func (d *Directory) log(before, now *directoryState) {
	for _, problem := range inventory.NewProblems(before.tables.Problems, now.tables.Problems) {
		d.options.Logger.Warn("problem in the manifests", "object", problem.Object, "problem", problem.Text, "remedy", problem.Remedy)
	}
	for _, problem := range inventory.NewProblems(now.tables.Problems, before.tables.Problems) {
		d.options.Logger.Info("problem in the manifests is solved", "object", problem.Object, "problem", problem.Text)
	}
	if before.counts != now.counts {
		d.options.Logger.Info("manifests read", "directory", d.options.Path, "files", now.counts.Files, "objects", now.counts.Objects,
			"skipped", now.counts.Skipped, "variants", len(now.tables.Variants))
	}
}

// listing is the files of a directory by name. The info of a file without a readable state is nil.
type listing map[string]fs.FileInfo

// list returns the manifests of a directory. Hidden files, which editors and mounts leave there,
// are left out.
func list(path string) (listing, error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	found := listing{}
	for _, entry := range entries {
		switch strings.ToLower(filepath.Ext(entry.Name())) {
		case ".yaml", ".yml", ".json":
		default:
			continue
		}
		if strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		info, err := os.Stat(filepath.Join(path, entry.Name())) // of the target of a link
		if err != nil {
			info = nil
		} else if info.IsDir() {
			continue
		}
		found[entry.Name()] = info
	}
	return found, nil
}

// equal reports whether two listings show the same files in the same state.
func (l listing) equal(other listing) bool {
	for name, info := range l {
		if !same(info, other[name]) {
			return false
		}
	}
	return len(l) == len(other)
}

// same reports whether a file did not change between two polls. A file without a readable state
// always counts as changed.
func same(a, b fs.FileInfo) bool {
	return a != nil && b != nil && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && os.SameFile(a, b)
}
