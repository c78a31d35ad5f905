package cluster_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/e2e/cluster"
)

// roleVariable makes a test of this file play its part in another one.
const roleVariable = "WVA_CLUSTER_TEST_ROLE"

// outsider is this test binary with one test, as go test runs it: in no namespaces yet.
func outsider(t *testing.T, test string, environment ...string) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	command := exec.CommandContext(t.Context(), program, "-test.run=^"+test+"$", "-test.v", "-test.count=1")
	command.Env = slices.DeleteFunc(os.Environ(), func(entry string) bool {
		return strings.HasPrefix(entry, "WVA_CLUSTER_") || strings.HasPrefix(entry, "E2E_REQUIRED=")
	})
	command.Env = append(command.Env, roleVariable+"="+test, "TMPDIR="+t.TempDir())
	command.Env = append(command.Env, environment...)
	return command
}

func actOnly(t *testing.T) {
	t.Helper()
	if os.Getenv(roleVariable) != t.Name() {
		t.Skip("it plays a part in another test")
	}
}

func TestActWaitsForEverWithACluster(t *testing.T) {
	actOnly(t)
	cluster.Start(t, cluster.Options{})
	t.Log("the cluster is up")
	select {}
}

func TestActFails(t *testing.T) {
	actOnly(t)
	c := cluster.Start(t, cluster.Options{})
	_, err := c.Kubectl(t.Context(), nil, "get", "nonsense")
	require.NoError(t, err)
}

func TestActStarts(t *testing.T) {
	actOnly(t)
	cluster.Start(t, cluster.Options{})
}

func TestNothingOutlivesATestBinaryThatIsKilled(t *testing.T) {
	command := outsider(t, "TestActWaitsForEverWithACluster")
	output, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	lines := bufio.NewScanner(output)
	for lines.Scan() && !strings.Contains(lines.Text(), "the cluster is up") {
		continue
	}
	require.NotEmpty(t, running(t, "etcd-"), "the second namespaces lie within the test's")

	require.NoError(t, command.Process.Signal(syscall.SIGKILL))
	_ = command.Wait() // it was killed
	eventually(t, "nothing is left", func() bool { return len(running(t, "etcd-")) == 0 && len(running(t, "kube-")) == 0 })
}

// running returns the names of running processes with a prefix.
func running(t *testing.T, prefix string) []string {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/comm")
	require.NoError(t, err)
	var names []string
	for _, path := range paths {
		name, err := os.ReadFile(path)
		if err == nil && strings.HasPrefix(string(name), prefix) && !zombie(filepath.Dir(path)) {
			names = append(names, strings.TrimSpace(string(name)))
		}
	}
	return names
}

// zombie reports whether a process has ended and waits for a parent to notice. The first process of
// a namespace that was killed may wait for ever.
func zombie(process string) bool {
	status, err := os.ReadFile(filepath.Join(process, "status"))
	return err != nil || strings.Contains(string(status), "State:\tZ")
}

func TestExitCodeAndOutputPassThrough(t *testing.T) {
	output, err := outsider(t, "TestActFails").CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 1, exit.ExitCode())
	require.Contains(t, string(output), "--- FAIL: TestActFails")
	require.Contains(t, string(output), `the server doesn't have a resource type`)
	require.Contains(t, string(output), "the logs of the cluster are in ")
}

func TestStartSkipsWhereNoNamespacesAreGrantedAndFailsInCI(t *testing.T) {
	const limit = "/proc/sys/user/max_user_namespaces" // of the user namespace that the test is in
	before, err := os.ReadFile(limit)
	require.NoError(t, err)
	if err := os.WriteFile(limit, []byte("0"), 0o644); err != nil {
		t.Skip("the limit of namespaces cannot be set here: ", err)
	}
	defer func() { require.NoError(t, os.WriteFile(limit, before, 0o644)) }()

	output, err := outsider(t, "TestActStarts").CombinedOutput()
	require.NoError(t, err, "%s", output)
	require.Contains(t, string(output), "--- SKIP: TestActStarts")
	require.Contains(t, string(output), "allow unprivileged user namespaces")

	output, err = outsider(t, "TestActStarts", "E2E_REQUIRED=1").CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(output), "--- FAIL: TestActStarts")
}
