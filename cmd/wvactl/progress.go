package main

import (
	"fmt"
	"io"
	"os"
	"time"
)

// progress shows how much is done: in place on a terminal, and in a line every ten seconds
// elsewhere.
type progress struct {
	to       io.Writer
	unit     string // such as runs
	terminal bool
	shown    time.Time
}

const progressEvery = 10 * time.Second

func newProgress(to io.Writer, unit string) *progress {
	p := &progress{to: to, unit: unit, shown: time.Now()}
	if file, ok := to.(*os.File); ok {
		info, err := file.Stat()
		p.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return p
}

func (p *progress) show(done, all int) {
	switch {
	case p.terminal:
		fmt.Fprintf(p.to, "\r%d of %d %s", done, all, p.unit)
	case time.Since(p.shown) >= progressEvery:
		fmt.Fprintf(p.to, "%d of %d %s\n", done, all, p.unit)
	default:
		return
	}
	p.shown = time.Now()
}

func (p *progress) end() {
	if p.terminal {
		fmt.Fprintln(p.to)
	}
}
