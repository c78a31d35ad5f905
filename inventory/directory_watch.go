package inventory

import (
	"context"
	"time"
)

// maxUnstablePolls is how many looks a change is waited for to come to rest.
const maxUnstablePolls = 5

// Watch looks for changes until the context ends, and returns nil. It calls changed, where that is not nil, after each
// reading that changed the tables; changed must not block for long.
//
// It looks at the directory every PollInterval rather than being told of changes: that sees edits in place, files that are
// renamed over others, the swapped links of a mounted ConfigMap and network file systems alike. A change is read once two
// looks have seen the same, so that a burst is read once and a file is not read half-written; what never comes to rest is
// read at every fifth look.
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

// poll reads what has changed and come to rest, and reports whether the tables did change.
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

// unlistedBecause notes whether the directory can be read, and reports whether that changed the tables.
func (d *Directory) unlistedBecause(reason string) bool {
	if d.unlisted == reason {
		return false
	}
	d.unlisted = reason
	return d.publish()
}
