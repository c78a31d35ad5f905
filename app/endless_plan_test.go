package app

import (
	"bufio"
	"context"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/config"
	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/scaler"
)

// actAs makes the test binary a server whose plans from the second on never end.
const actAs = "WVA_TEST_ACT_AS_ENDLESS_PLAN"

// planEndlessly runs the server as the command does, until SIGTERM.
func planEndlessly() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	flags := pflag.NewFlagSet("wva", pflag.ContinueOnError)
	config.AddFlags(flags)
	if err := flags.Parse(strings.Fields(os.Getenv(actAs))); err != nil {
		return err
	}
	c, err := config.Load(flags)
	if err != nil {
		return err
	}
	logger, level := NewLogger(os.Stderr, c.Log)
	s, err := New(Options{Config: c, Logger: logger, Level: level})
	if err != nil {
		return err
	}
	plans := 0
	s.loop, err = scaler.NewLoop(scaler.LoopOptions{
		Observe: s.observe, Board: s.board, Posted: s.posted, PollQueues: s.poller.Poll, Interval: c.Interval, Logger: logger,
		Plan: func(snapshot fleet.Snapshot) fleet.Plan {
			if plans++; plans > 1 {
				logger.Info("endless plan begun")
				burn()
			}
			return s.plan(snapshot)
		},
	})
	if err != nil {
		return err
	}
	return s.Run(ctx)
}

// burn works on every core for ever.
func burn() {
	for range runtime.GOMAXPROCS(0) {
		go func() {
			for kept := make([][]byte, 1024); ; {
				for i := range kept {
					kept[i] = make([]byte, 512)
				}
			}
		}()
	}
	select {}
}

// A process whose plan does not end, and that uses every core, answers its probe and ends after
// SIGTERM. Both are a matter of milliseconds on an idle machine.
func TestProcessAnswersAndEndsDuringAnEndlessPlan(t *testing.T) {
	t.Parallel()
	binary, err := os.Executable()
	require.NoError(t, err)
	process := exec.CommandContext(t.Context(), binary)
	process.Env = append(os.Environ(), actAs+"=--prometheus-url http://127.0.0.1:1 --interval 1s --grpc-address 127.0.0.1:0"+
		" --operators-address 127.0.0.1:0 --http-address 127.0.0.1:0 --manifests ../examples/manifests")
	errors, err := process.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, process.Start())
	log := bufio.NewScanner(errors)
	until := func(text string) string {
		for log.Scan() {
			if strings.Contains(log.Text(), text) {
				return log.Text()
			}
		}
		require.Fail(t, "the log ended without "+text)
		return ""
	}
	address := regexp.MustCompile(` http=(\S+)`).FindStringSubmatch(until("msg=starting"))[1]
	until("endless plan begun")

	client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	slowest := time.Duration(0)
	for range 20 {
		begun := time.Now()
		answer, err := client.Get("http://" + address + "/readyz")
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, http.StatusOK, answer.StatusCode)
		slowest = max(slowest, time.Since(begun))
	}

	begun := time.Now()
	require.NoError(t, process.Process.Signal(syscall.SIGTERM))
	// it may have ended
	tooLate := time.AfterFunc(20*time.Second, func() { _ = process.Process.Kill() })
	defer tooLate.Stop()
	until("msg=stopped")
	require.NoError(t, process.Wait())
	t.Logf("/readyz took at most %v, the end %v", slowest, time.Since(begun))
}
