package cluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	pollInterval = 50 * time.Millisecond
	patience     = 90 * time.Second // until a component answers: a cold start on a busy machine
)

// process is a component that runs. It logs into a file.
type process struct {
	name    string
	log     string
	command *exec.Cmd
	ended   chan struct{}
	err     error // its result; written before ended is closed
}

// run starts a component; Close ends it.
func (c *Cluster) run(name string, arguments []string, environment ...string) error {
	binary, err := Path(name)
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(c.directory, name+".log"))
	if err != nil {
		return err
	}
	defer log.Close() // the process has its own
	//nolint:noctx // it runs until Close, not until a context ends
	p := &process{name: name, log: log.Name(), command: exec.Command(binary, arguments...), ended: make(chan struct{})}
	p.command.Dir, p.command.Stdout, p.command.Stderr = c.directory, log, log
	p.command.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + c.directory, "TMPDIR=" + c.directory}, environment...)
	if err := p.command.Start(); err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	c.processes = append(c.processes, p)
	go func() {
		p.err = p.command.Wait()
		close(p.ended)
	}()
	return nil
}

// kill ends the process without grace: nothing of it outlives the cluster.
func (p *process) kill() {
	_ = p.command.Process.Kill() // it may have ended
	<-p.ended
}

func (p *process) failure() error {
	select {
	case <-p.ended:
		return fmt.Errorf("%s has ended (%w); the end of its log:\n%s", p.name, p.err, p.tail())
	default:
		return nil
	}
}

// tail returns the end of the log.
func (p *process) tail() string {
	content, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return lastLines(string(content))
}

func lastLines(log string) string {
	const lines = 40
	all := strings.Split(strings.TrimSpace(log), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// Logs returns the end of the log of every component, and of every container that runs for real.
func (c *Cluster) Logs() string {
	var logs strings.Builder
	for _, p := range c.processes {
		_, _ = fmt.Fprintf(&logs, "=== %s\n%s\n", p.name, p.tail())
	}
	if c.kubelet != nil {
		for name, log := range c.kubelet.Logs() {
			_, _ = fmt.Fprintf(&logs, "=== %s\n%s\n", name, lastLines(log))
		}
	}
	return logs.String()
}

// await polls until there is no error, and fails when a component has ended.
func (c *Cluster) await(ctx context.Context, condition string, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		for _, p := range c.processes {
			if failure := p.failure(); failure != nil {
				return fmt.Errorf("wait until %s: %w", condition, failure)
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until %s: %w\n%s", condition, err, c.Logs())
		case <-time.After(pollInterval):
		}
	}
}
