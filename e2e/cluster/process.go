package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	pollInterval = 50 * time.Millisecond
	patience     = 90 * time.Second // until a component answers: a cold start on a busy machine
)

// process is a component that runs. It logs into a file.
type process struct {
	name        string
	arguments   []string
	environment []string
	log         string
	command     *exec.Cmd
	ended       chan struct{}
	err         error // its result; written before ended is closed
}

// run starts a component; Close ends it.
func (c *Cluster) run(name string, arguments []string, environment ...string) error {
	p, err := c.launch(name, arguments, environment)
	if err != nil {
		return err
	}
	c.processes = append(c.processes, p)
	return nil
}

func (c *Cluster) launch(name string, arguments, environment []string) (*process, error) {
	binary, err := Path(name)
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(filepath.Join(c.directory, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the process has its own
	p := &process{name: name, arguments: arguments, environment: environment, log: log.Name(), ended: make(chan struct{})}
	p.command = exec.Command(binary, arguments...) //nolint:noctx // it runs until Close, not until a context ends
	p.command.Dir, p.command.Stdout, p.command.Stderr = c.directory, log, log
	p.command.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + c.directory, "TMPDIR=" + c.directory}, environment...)
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		p.err = p.command.Wait()
		close(p.ended)
	}()
	return p, nil
}

// Components for Stop.
const (
	APIServer    = apiServer
	KEDAOperator = kedaOperator
)

// Stop ends a component without grace. The returned function starts it again as it was, and does
// not wait until it serves.
func (c *Cluster) Stop(name string) (start func() error, err error) {
	at := slices.IndexFunc(c.processes, func(p *process) bool { return p.name == name })
	if at < 0 {
		return nil, fmt.Errorf("stop %s: the cluster has no such component; turn it on in Options", name)
	}
	stopped := c.processes[at]
	stopped.kill()
	return func() error {
		p, err := c.launch(name, stopped.arguments, stopped.environment)
		if err == nil {
			c.processes[at] = p
		}
		return err
	}, nil
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

// keepLogs writes the logs to a file that stays, and names it. Printed, they would come
// before the failures of subtests, and hide them.
func (c *Cluster) keepLogs() string {
	file, err := os.CreateTemp("", "cluster-*.log")
	if err != nil {
		return err.Error()
	}
	_, err = file.WriteString(c.Logs())
	if err := errors.Join(err, file.Close()); err != nil {
		return err.Error()
	}
	return "the logs of the cluster are in " + file.Name()
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
