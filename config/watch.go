package config

import (
	"bytes"
	"context"
	"errors"
	"time"
)

// defaultEvery is the time between two polls. A mounted ConfigMap takes a minute to arrive anyway.
const defaultEvery = 2 * time.Second

// WatchOptions are the options of Watch.
type WatchOptions struct {
	// Current is the configuration in use, made by Load. Required.
	Current *Config
	// Apply puts a new configuration into use. Its settings that need a restart have the values of
	// Current. If Apply returns an error, the previous configuration is kept. Required.
	Apply func(*Config, Change) error
	// Rejected is called with the errors of a file that is rejected; the previous configuration is
	// kept. The same errors are reported once. Required.
	Rejected func(error)
	// Every is the time between two polls of the file. Default 2 s.
	Every time.Duration
}

// Change lists the settings that a new file changes, by key, in the order of the table.
type Change struct {
	Reloaded []string
	// Pending settings need a restart.
	Pending []string
}

// Watch polls the configuration file until the context ends, and returns nil. Each poll opens the
// path anew, so that a file is seen to change if it is renamed or reached by a symbolic link. New
// content counts if two polls in a row have found it, because an editor may be half done. Content
// that was rejected is tried again at each poll: a file that it names, such as a mounted secret,
// may come later. Without a configuration file Watch just waits.
func Watch(ctx context.Context, o WatchOptions) error {
	content := o.Current.file.data
	w := &watcher{options: o, current: o.Current, applied: content, latest: content, readable: true}
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
			w.poll()
		}
	}
}

type watcher struct {
	options WatchOptions
	current *Config
	// applied is the content in use. It is applied again after the file was rejected or missing.
	applied  []byte
	latest   []byte // the content at the last poll
	readable bool   // the last poll could read the file
	rejected string // the errors that were reported last; empty if the file is valid
}

func (w *watcher) poll() {
	path := w.current.file.path
	content, err := readFile(path, Origin{Source: SourceFile, Name: path})
	if err != nil {
		w.readable = false
		w.reject(err)
		return
	}
	settled := w.readable && bytes.Equal(content.data, w.latest)
	w.readable, w.latest = true, content.data
	if !settled || bytes.Equal(content.data, w.applied) && w.rejected == "" {
		return
	}
	if err := w.apply(content); err != nil {
		w.reject(err)
		return
	}
	w.applied, w.rejected = content.data, ""
}

func (w *watcher) reject(err error) {
	if text := err.Error(); text != w.rejected {
		w.rejected = text
		w.options.Rejected(err)
	}
}

// apply puts new content into use.
func (w *watcher) apply(content file) error {
	next, errs := load(w.current.flags, content)
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	change := w.current.keepPending(next)
	if err := w.options.Apply(next, change); err != nil {
		return err
	}
	w.current = next
	return nil
}

// keepPending gives the settings of next that need a restart their current values, and returns the
// changes.
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
