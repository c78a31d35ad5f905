package scenarios

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/wva-project/wva/e2e/cluster"
	"github.com/wva-project/wva/e2e/cluster/play"
)

const (
	// patience bounds the time of an immediate effect, on a busy machine.
	patience = time.Minute
	// deadline bounds the time of an effect that needs windows, decisions, KEDA's polls and the
	// HPA's.
	deadline = 3 * time.Minute
	// settled is how long a number has to stay.
	settled = 6 * time.Second
	// tick is the time between two polls.
	tick = 100 * time.Millisecond
)

// binary is the wva that the tests start.
var binary string

// sideBySide is how many scenarios of a cluster run at once. They mostly wait; more of them would
// make the answers of their Prometheus late on two cores.
const sideBySide = 6

func TestMain(m *testing.M) {
	options := play.Options()
	options.MonitorCRDs, options.CertManagerCRDs = true, true
	cluster.Enter(options)
	runSideBySide()
	directory, err := os.MkdirTemp("", "wva-")
	if err == nil {
		binary = filepath.Join(directory, "wva")
		err = build(binary)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(directory) // a directory below the temporary one
		os.Exit(code)
	}))
}

// runSideBySide replaces the default of the flag -parallel, which is the number of processors.
func runSideBySide() {
	flag.Parse()
	isSet := false
	flag.Visit(func(f *flag.Flag) { isSet = isSet || f.Name == "test.parallel" })
	if !isSet {
		_ = flag.Set("test.parallel", strconv.Itoa(sideBySide)) // package testing has defined it
	}
}

func build(path string) error {
	command := exec.Command("go", "build", "-o", path, "./cmd/wva")
	command.Dir = filepath.Join("..", "..", "..")
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("building wva: %w: %s", err, output)
	}
	return nil
}

// eventually waits until a condition holds.
func eventually(t testing.TB, within time.Duration, condition string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(within); !holds(); time.Sleep(tick) {
		require.True(t, time.Now().Before(end), "never: %s", condition)
	}
}
