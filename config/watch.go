package config

import (
	"bytes"
	"context"
	"errors"
	"time"
)

// defaultEvery is the time between two looks at the file. A mounted ConfigMap takes a minute to arrive anyway.
const defaultEvery = 2 * time.Second

// WatchOptions says what Watch watches and whom it tells.
type WatchOptions struct {
	// Current is the configuration in force, which Load made. Required.
	Current *Config
	// Apply takes each new configuration. In it, settings that cannot be reloaded have the values that they began with. Where
	// it returns an error, the configuration in force stays. Required.
	Apply func(*Config, Change) error
	// Refused takes the faults of a file that is not taken: the configuration in force stays. It is told of the same faults
	// once. Required.
	Refused func(error)
	// Every is the time between two looks at the file. Default 2 s.
	Every time.Duration
}

// Change says which settings a new file changes, by key, in the order of the table.
type Change struct {
	Reloaded []string
	// Pending are changed in the file and need a restart.
	Pending []string
}

// Watch looks at the configuration file until the context ends, and returns nil. It reads the file by its path each time,
// so that files which are replaced by a rename, or reached by a symbolic link that is, are seen to change. A content is taken
// once two looks in a row have found it, since an editor may be half through. A content that was refused is tried again at
// each look: what it names, such as a mounted secret, may come later. Without a file it just waits.
func Watch(ctx context.Context, o WatchOptions) error {
	w := &watcher{options: o, current: o.Current, taken: o.Current.file.data, latest: o.Current.file.data, seen: true}
	if o.Current.file.path == "" {
		<-ctx.Done()
		return nil
	}
	if o.Every <= 0 {
		o.Every = defaultEvery
	}
	ticker := time.NewTicker(o.Every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			w.look()
		}
	}
}

type watcher struct {
	options WatchOptions
	current *Config
	taken   []byte // the content in force; it is told of again where the file was refused or gone in between
	latest  []byte // the content at the last look
	seen    bool   // the last look could read the file
	refused string // the faults that were told of and stand
}

func (w *watcher) look() {
	path := w.current.file.path
	read, err := readFile(path, Origin{Source: SourceFile, Name: path})
	if err != nil {
		w.seen = false
		w.refuse(err)
		return
	}
	settled := w.seen && bytes.Equal(read.data, w.latest)
	w.seen, w.latest = true, read.data
	if !settled || bytes.Equal(read.data, w.taken) && w.refused == "" {
		return
	}
	if err := w.take(read); err != nil {
		w.refuse(err)
		return
	}
	w.taken, w.refused = read.data, ""
}

func (w *watcher) refuse(err error) {
	if text := err.Error(); text != w.refused {
		w.refused = text
		w.options.Refused(err)
	}
}

// take puts a new content in force.
func (w *watcher) take(read file) error {
	next, faults := load(w.current.flags, read)
	if len(faults) > 0 {
		return errors.Join(faults...)
	}
	change := w.current.keepPending(next)
	if err := w.options.Apply(next, change); err != nil {
		return err
	}
	w.current = next
	return nil
}

// keepPending gives the settings of next that cannot be reloaded the values in force, and says what remains changed.
func (c *Config) keepPending(next *Config) Change {
	var change Change
	for _, s := range Settings() {
		if s.binding.same(c, next) {
			continue
		}
		if s.Reloadable {
			change.Reloaded = append(change.Reloaded, s.Key)
			continue
		}
		change.Pending = append(change.Pending, s.Key)
		s.binding.copy(c, next)
		next.origins[s.Key] = c.origins[s.Key]
	}
	return change
}
