package prometheus

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// process is a program that the test has started. It does not outlive the test.
type process struct {
	testing.TB
	command *exec.Cmd
	ended   chan struct{}
	err     error // how it ended; written before ended is closed

	mu  sync.Mutex
	log []string
}

// run starts a program; heard is called with every line of its log.
func run(t testing.TB, heard func(line string), name string, arguments ...string) *process {
	t.Helper()
	p := &process{TB: t, command: exec.Command(name, arguments...), ended: make(chan struct{})}
	stderr, err := p.command.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, p.command.Start())
	go func() {
		defer close(p.ended)
		lines := bufio.NewScanner(stderr)
		for lines.Scan() {
			p.keep(lines.Text())
			heard(lines.Text())
		}
		_, _ = io.Copy(io.Discard, stderr) // a line that is too long must not stop the program
		p.err = p.command.Wait()
	}()
	t.Cleanup(func() {
		_ = p.command.Process.Kill() // it may have ended
		<-p.ended
		if t.Failed() {
			t.Logf("the log of %s:\n%s", name, p.tail())
		}
	})
	return p
}

func (p *process) keep(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log = append(p.log, line)
}

// tail returns the end of the log.
func (p *process) tail() string {
	const lines = 60
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.log[max(0, len(p.log)-lines):], "\n")
}

func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// kill ends the program at once.
func (p *process) kill() {
	p.Helper()
	require.NoError(p, p.command.Process.Kill())
	<-p.ended
}

// terminate ends the program as Kubernetes does, and returns how it ended.
func (p *process) terminate() error {
	p.Helper()
	require.NoError(p, p.command.Process.Signal(syscall.SIGTERM))
	select {
	case <-p.ended:
		return p.err
	case <-time.After(patience):
		return fmt.Errorf("it still runs %s after SIGTERM", patience)
	}
}
