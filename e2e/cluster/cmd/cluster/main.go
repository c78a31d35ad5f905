// Command cluster runs a cluster without containers until it is interrupted, for use by hand.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/wva-project/wva/e2e/cluster"
	"github.com/wva-project/wva/e2e/cluster/play"
)

const usage = `Usage: go run ./cmd/cluster [flags]

Starts etcd, kube-apiserver and the components of --with as plain processes in a private network, and leaves them running until
Ctrl-C. What is missing is built first: minutes, once. The cluster's API is reachable from outside; its pods are pretended.

Exit codes: 0 after Ctrl-C, that of the shell with --shell, 1 where the cluster does not start, 2 for a wrong flag.

Flags:
`

// settings are the flags.
type settings struct {
	with       string
	nodes      int
	shell      bool
	play       bool
	kubeconfig string
	options    cluster.Options
}

func main() {
	s, err := parse(os.Args[1:], os.Stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(0)
	case err != nil:
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	err = enter(s)
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		os.Exit(exit.ExitCode())
	case err != nil:
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func parse(arguments []string, output io.Writer) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("cluster", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // errors are printed once, by main
	flags.StringVar(&s.with, "with", "keda,lws-crd",
		"comma-separated: keda-crds, lws-crd, controllers, scheduler, kwok, keda; each brings the others that it needs")
	flags.IntVar(&s.nodes, "nodes", 2, "number of pretended nodes with 8 H100 each, where KWOK runs")
	flags.BoolVar(&s.shell, "shell", false, "open a shell inside, where Services and pods are reachable too, and end with it")
	flags.BoolVar(&s.play, "play", false, "install wva with its chart, Prometheus and a sample on two GPU types, whose engines are "+
		"simulated; replaces --with and --nodes")
	flags.StringVar(&s.kubeconfig, "kubeconfig", filepath.Join(os.TempDir(), "wva-cluster.kubeconfig"),
		"file to write for use from outside; removed at the end")
	if err := flags.Parse(arguments); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			_, _ = fmt.Fprint(output, usage)
			flags.SetOutput(output)
			flags.PrintDefaults()
			return s, err
		}
		return s, fmt.Errorf("%w; see --help", err)
	}
	if flags.NArg() > 0 {
		return s, fmt.Errorf("unexpected argument %q; see --help", flags.Arg(0))
	}
	var err error
	if s.options, err = optionsOf(s.with); err != nil {
		return s, err
	}
	if s.play {
		s.options = play.Options()
	}
	return s, nil
}

func optionsOf(with string) (cluster.Options, error) {
	var options cluster.Options
	for name := range strings.SplitSeq(with, ",") {
		switch strings.TrimSpace(name) {
		case "":
		case "keda-crds":
			options.KEDACRDs = true
		case "lws-crd":
			options.LeaderWorkerSetCRD = true
		case "controllers":
			options.ControllerManager = true
		case "scheduler":
			options.Scheduler = true
		case "kwok":
			options.KWOK = true
		case "keda":
			options.KEDA = true
		default:
			return options, fmt.Errorf("--with %q: unknown %q; see --help", with, name)
		}
	}
	return options, nil
}

// enter opens the bridge, goes inside and runs there.
func enter(s settings) error {
	if os.Getenv(socketVariable) == "" {
		// Outside: this process serves the bridge for as long as its second process runs.
		shut, err := openBridge()
		if err != nil {
			return err
		}
		defer shut() // if Enter returns
	}
	cluster.Enter(s.options)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return run(ctx, s)
}

func run(ctx context.Context, s settings) error {
	started := time.Now()
	c, err := cluster.Open(ctx, s.options)
	if err != nil {
		return err
	}
	defer c.Close() // the namespace ends as well
	if s.play {
		progress("a cluster with KEDA", started)
		furnished, err := furnish(ctx, c)
		if err != nil {
			return err
		}
		defer furnished.Close()
	} else if s.options.KWOK || s.options.KEDA {
		for i := range s.nodes {
			node := cluster.Node{Name: fmt.Sprintf("h100-%d", i), Product: "NVIDIA-H100-80GB-HBM3", GPUs: 8}
			if err := c.AddNode(ctx, node); err != nil {
				return err
			}
		}
	}
	closeBridge, err := landBridge(c, s.kubeconfig)
	if err != nil {
		return err
	}
	defer closeBridge()
	fmt.Printf("The cluster is up after %s.\n", time.Since(started).Round(100*time.Millisecond))
	if s.play {
		text, err := instructions(s.kubeconfig)
		if err != nil {
			return err
		}
		fmt.Println(text)
	}
	if s.shell {
		return shell(ctx, c)
	}
	return wait(ctx, s)
}

func wait(ctx context.Context, s settings) error {
	if s.play {
		fmt.Println("Ctrl-C ends the cluster. With --shell, a shell opens inside, where the names of Services resolve.")
		<-ctx.Done()
		return nil
	}
	kubectl, err := cluster.Path("kubectl")
	if err != nil {
		return err
	}
	fmt.Printf(`Use it from another terminal:

  export KUBECONFIG=%s
  %s get pods -A

Services and pods are reachable inside only: with --shell. Ctrl-C ends the cluster.
`, s.kubeconfig, kubectl)
	<-ctx.Done()
	return nil
}
