package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// actAs makes the test binary another program, for tests of signals.
const actAs = "WVACTL_TEST_ACT_AS"

func TestMain(m *testing.M) {
	switch os.Getenv(actAs) {
	case "wvactl":
		main()
	case "stubborn": // it goes on after the first signal
		ctx := untilSignal(context.Background())
		fmt.Println("ready")
		<-ctx.Done()
		fmt.Println(context.Cause(ctx))
		select {}
	}
	os.Exit(m.Run())
}

// program is a process of the test binary.
type program struct {
	*exec.Cmd
	out    *bufio.Scanner
	errors bytes.Buffer
}

func start(t *testing.T, as string, args ...string) *program {
	t.Helper()
	binary, err := os.Executable()
	require.NoError(t, err)
	p := &program{Cmd: exec.CommandContext(t.Context(), binary, args...)}
	p.Env = append(os.Environ(), actAs+"="+as)
	p.Stderr = &p.errors
	out, err := p.StdoutPipe()
	require.NoError(t, err)
	p.out = bufio.NewScanner(out)
	require.NoError(t, p.Start())
	return p
}

// until reads lines up to one with a text.
func (p *program) until(t *testing.T, text string) {
	t.Helper()
	for p.out.Scan() {
		if strings.Contains(p.out.Text(), text) {
			return
		}
	}
	require.Fail(t, "the output ended before "+text, p.errors.String())
}

func TestASignalEndsTheDemoWithASummary(t *testing.T) {
	t.Parallel()
	for signal, code := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			p := start(t, "wvactl", "demo", "--speed", "1", "--grpc-address", "127.0.0.1:0", "--operators-address", "127.0.0.1:0")
			p.until(t, "  0:02 ")
			require.NoError(t, p.Process.Signal(signal))
			p.until(t, "Interrupted at 0:0")
			p.until(t, "served lost attained SLO 95 %")
			p.until(t, "WVA ")
			p.until(t, "HPA on queue length ")
			for p.out.Scan() {
			}
			var exit *exec.ExitError
			require.ErrorAs(t, p.Wait(), &exit)
			require.Equal(t, code, exit.ExitCode(), "%s", p.errors.String())
			require.Regexp(t, `^wvactl: ended at 0:0\d of the run: `+signal.String()+"\n$", p.errors.String())
		})
	}
}

func TestASecondSignalEndsTheProcess(t *testing.T) {
	t.Parallel()
	p := start(t, "stubborn")
	p.until(t, "ready")
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	p.until(t, "terminated")
	require.NoError(t, p.Process.Signal(syscall.SIGINT))
	var exit *exec.ExitError
	require.ErrorAs(t, p.Wait(), &exit)
	status, _ := exit.Sys().(syscall.WaitStatus)
	require.True(t, status.Signaled())
	require.Equal(t, syscall.SIGINT, status.Signal())
}
