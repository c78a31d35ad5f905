package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/planner"
)

// dumper writes the input of decisions to files, so that `wvactl plan` can decide them again.
type dumper struct {
	logger *slog.Logger
	file   func() string // the setting dumpSnapshot; empty: none

	planned atomic.Pointer[planner.Input] // of the current cycle
	decided atomic.Pointer[planner.Input] // of the plan on the board
	first   chan struct{}                 // closed once decided is set

	requests <-chan os.Signal // for a dump
}

func newDumper(file func() string, requests <-chan os.Signal, logger *slog.Logger) *dumper {
	return &dumper{logger: logger, file: file, first: make(chan struct{}), requests: requests}
}

// plan decides, and keeps the input: the policy may be another one when it is dumped.
func (d *dumper) plan(in planner.Input) fleet.Plan {
	d.planned.Store(&in)
	return planner.Plan(in.Snapshot, in.Policy)
}

// posted says that the plan of the current cycle is on the board.
func (d *dumper) posted() {
	if d.decided.Swap(d.planned.Load()) == nil {
		close(d.first)
	}
}

// run writes the input of the first decision if a file is set, and that of the latest decision at
// each request, until the context ends.
func (d *dumper) run(ctx context.Context) error {
	first, requests := d.first, d.requests
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-first:
			first = nil
			if file := d.file(); file != "" {
				d.dump(file)
			}
		case _, open := <-requests:
			if !open {
				requests = nil
				continue
			}
			d.dump(d.file())
		}
	}
}

// dump writes the input of the latest decision to a file, or to a new file in the temporary
// directory if none is given.
func (d *dumper) dump(file string) {
	in := d.decided.Load()
	if in == nil {
		d.logger.Info("snapshot not written, nothing is decided yet")
		return
	}
	if file == "" {
		file = filepath.Join(os.TempDir(), "wva-snapshot-"+in.Snapshot.Time.UTC().Format("20060102T150405.000Z")+".json")
	}
	data, err := planner.EncodeInput(*in)
	if err == nil {
		err = writeFile(file, data)
	}
	if err != nil {
		d.logger.Error("snapshot not written", "file", file, "error", err,
			"remedy", "set dumpSnapshot to a new or a regular file, in a directory that the server may write to")
		return
	}
	d.logger.Info("snapshot written", "file", file, "time", in.Snapshot.Time, "variants", len(in.Snapshot.Variants), "bytes", len(data))
}

// writeFile replaces a file whole, or leaves it as it is. Only the user of the server may read it.
func writeFile(file string, data []byte) error {
	if err := checkReplaceable(file); err != nil {
		return err
	}
	temporary, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".*")
	if err != nil {
		return err
	}
	_, err = temporary.Write(data)
	if err = errors.Join(err, temporary.Close()); err == nil {
		err = os.Rename(temporary.Name(), file)
	}
	if err != nil {
		_ = os.Remove(temporary.Name()) // the first error counts
	}
	return err
}

// checkReplaceable returns an error if the path is that of something other than a regular file. A
// rename would replace a symbolic link or a device, not write to it.
func checkReplaceable(file string) error {
	info, err := os.Lstat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().IsRegular():
		return nil
	}
	return fmt.Errorf("%s is %s, which is not replaced; name a new or a regular file", file, typeOf(info.Mode()))
}

// typeOf returns the type of a file that is not a regular one.
func typeOf(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeSymlink != 0:
		return "a symbolic link"
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return "not a regular file"
}
