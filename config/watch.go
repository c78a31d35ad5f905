package config

import (
	"bytes"
	"context"
	"time"
)

// defaultEvery is the time between two polls. A mounted ConfigMap takes a minute to arrive anyway.
const defaultEvery = 2 * time.Second

// WatchOptions are the options of Watch.
type WatchOptions struct {
	// Live is the configuration in use. Settings that need a restart keep their values. Required.
	Live *Live
	// Reloaded is called after a file was put into use. Required.
	Reloaded func()
	// Rejected is called with the errors of a file that is rejected; the previous configuration is
	// kept. The same errors are reported once. Required.
	Rejected func(error)
	// Every is the time between two polls of the file. Default 2 s.
	Every time.Duration
}

// Change lists the settings that a new file or ConfigMap changes, by key, in the order of the
// table.
type Change struct {
	Reloaded []string
	// Pending settings need a restart.
	Pending []string
	// Namespaces are those whose own settings change.
	Namespaces []string
}

// Watch polls the configuration file until the context ends, and returns nil. Each poll opens the
// path anew, so that a file is seen to change if it is renamed or reached by a symbolic link. New
// content counts if two polls in a row have found it, because an editor may be half done. Content
// that was rejected is tried again at each poll: a file that it names, such as a mounted secret,
// may come later. Without a configuration file Watch just waits.
func Watch(ctx context.Context, o WatchOptions) error {
	started := o.Live.file()
	w := &watcher{options: o, path: started.path, applied: started.data, latest: started.data, readable: true}
	if w.path == "" {
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
	path    string
	// applied is the content in use. It is applied again after the file was rejected or missing.
	applied  []byte
	latest   []byte // the content at the last poll
	readable bool   // the last poll could read the file
	rejected string // the errors that were reported last; empty if the file is valid
}

func (w *watcher) poll() {
	content, err := readFile(w.path, Origin{Source: SourceFile, Name: w.path})
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
	if err := w.options.Live.reload(content); err != nil {
		w.reject(err)
		return
	}
	w.applied, w.rejected = content.data, ""
	w.options.Reloaded()
}

func (w *watcher) reject(err error) {
	if text := err.Error(); text != w.rejected {
		w.rejected = text
		w.options.Rejected(err)
	}
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
