package manifests

import (
	"context"
	"time"
)

// maxUnstablePolls is for how many polls a file that keeps changing is waited for.
const maxUnstablePolls = 5

// Watch checks for changes until the context ends, and returns nil. It calls changed, unless that
// is nil, after each reading that changed the tables; changed must not block for long.
//
// It polls the directory every PollInterval: that sees edits in place, files that are renamed over
// others, the swapped links of a mounted ConfigMap and network file systems alike. A change is read
// once two polls have seen the same state, so that a burst is read once and a file is not read
// half-written. A directory that changes all the time is read at every fifth poll.
func (d *Directory) Watch(ctx context.Context, changed func()) error {
	ticker := time.NewTicker(d.options.PollInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			if d.poll() && changed != nil {
				changed()
			}
		}
	}
}

// poll reads changes that are complete, and reports whether the tables changed.
func (d *Directory) poll() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	found, err := list(d.options.Path)
	if err != nil {
		return d.unlistedBecause(err.Error())
	}
	returned := d.unlistedBecause("")
	switch {
	case found.equal(d.listed):
		d.pending, d.waited = nil, 0
		return returned
	case found.equal(d.pending), d.waited+1 >= maxUnstablePolls:
		d.load(found, d.pending)
		return d.publish() || returned
	}
	d.pending = found
	d.waited++
	return returned
}

// unlistedBecause notes whether the directory can be read, and reports whether that changed the
// tables.
func (d *Directory) unlistedBecause(reason string) bool {
	if d.unlisted == reason {
		return false
	}
	d.unlisted = reason
	return d.publish()
}
