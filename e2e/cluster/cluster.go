package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/wva-project/wva/e2e/cluster/kubelet"
	"github.com/wva-project/wva/e2e/cluster/service"
)

// Cluster is a running cluster. Its clients and tools are for several goroutines at once; Stop is
// not.
type Cluster struct {
	// Config is the administrator's, without a rate limit.
	Config *rest.Config
	// Kubeconfig is the path of the same as a file, which exists inside only.
	Kubeconfig string
	// Client is the administrator's.
	Client *kubernetes.Clientset

	directory string
	port      int // of the API server
	clients   *authority
	servers   *authority
	processes []*process
	services  *service.Server
	kubelet   *kubelet.Kubelet
}

// Start opens a cluster for a test and closes it at its end. If the system grants no namespaces, it
// skips the test, or fails it if the environment has E2E_REQUIRED.
func Start(t testing.TB, options Options) *Cluster {
	t.Helper()
	if err := denied(); err != nil {
		var denial deniedError
		if errors.As(err, &denial) && os.Getenv("E2E_REQUIRED") == "" {
			t.Skip("no cluster: ", err)
		}
		t.Fatal("no cluster: ", err)
	}
	c, err := Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(c.keepLogs())
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// Open starts a cluster and returns once it serves. The context limits the start, not the cluster's
// life.
func Open(ctx context.Context, options Options) (*Cluster, error) {
	if err := denied(); err != nil {
		return nil, err
	}
	directory, err := os.MkdirTemp(os.Getenv(directoryVariable), "cluster-")
	if err != nil {
		return nil, err
	}
	c := &Cluster{directory: directory, Kubeconfig: filepath.Join(directory, "admin.kubeconfig")}
	if err := c.open(ctx, options.complete()); err != nil {
		return nil, errors.Join(fmt.Errorf("start a cluster: %w", err), c.Close())
	}
	return c, nil
}

func (c *Cluster) open(ctx context.Context, options Options) error {
	images, err := options.images(ctx)
	if err != nil {
		return err
	}
	steps := []struct {
		wanted bool
		start  func(context.Context) error
	}{
		{true, func(ctx context.Context) error { return c.startControlPlane(ctx, options) }},
		{options.KEDACRDs && !options.KEDA, c.defineKEDA},
		{true, c.startServices},
		{options.LeaderWorkerSetCRD, c.defineLeaderWorkerSet},
		{options.MonitorCRDs, c.defineMonitors},
		{options.CertManagerCRDs, c.defineCertManager},
		{options.ControllerManager, c.startControllerManager},
		{options.Scheduler, c.startScheduler},
		{options.KWOK, func(ctx context.Context) error { return c.startKWOK(ctx, images) }},
		{len(images) > 0, func(ctx context.Context) error { return c.startKubelet(ctx, images) }},
		{options.KEDA, c.startKEDA},
	}
	for _, step := range steps {
		if !step.wanted {
			continue
		}
		if err := step.start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Close ends every process of the cluster, the last one started first, and removes its data.
func (c *Cluster) Close() error {
	if c.kubelet != nil {
		c.kubelet.Close()
	}
	if c.services != nil {
		c.services.Close()
	}
	for _, p := range slices.Backward(c.processes) {
		p.kill()
	}
	c.processes = nil
	return os.RemoveAll(c.directory)
}

// Kubectl runs kubectl as the administrator, with an input that may be nil, and returns its output.
func (c *Cluster) Kubectl(ctx context.Context, input []byte, arguments ...string) (string, error) {
	return c.tool(ctx, kubectl, input, arguments)
}

// Helm runs Helm as the administrator and returns its output. The cluster has to have
// Options.Helm.
func (c *Cluster) Helm(ctx context.Context, arguments ...string) (string, error) {
	return c.tool(ctx, helm, nil, arguments)
}

func (c *Cluster) tool(ctx context.Context, name string, input []byte, arguments []string) (string, error) {
	binary, err := Path(name)
	if err != nil {
		return "", err
	}
	command := exec.CommandContext(ctx, binary, arguments...)
	command.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig, "HOME="+c.directory)
	var stdout, stderr bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(input), &stdout, &stderr
	if err := command.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%s %s: %w: %s", name, arguments[0], err, bytes.TrimSpace(stderr.Bytes()))
	}
	return stdout.String(), nil
}

// Environment is this process' own with KUBECONFIG set, and kubectl and helm on the PATH if they
// are built.
func (c *Cluster) Environment() ([]string, error) {
	programs := c.path("programs")
	if err := os.MkdirAll(programs, 0o755); err != nil {
		return nil, err
	}
	for _, name := range []string{kubectl, helm} {
		link := filepath.Join(programs, name)
		if binary, err := Path(name); err == nil && !exists(link) {
			if err := os.Symlink(binary, link); err != nil {
				return nil, err
			}
		}
	}
	return append(os.Environ(), "KUBECONFIG="+c.Kubeconfig, "PATH="+programs+":"+os.Getenv("PATH")), nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Apply creates or changes the objects of one or more YAML documents by server-side apply.
func (c *Cluster) Apply(ctx context.Context, manifests []byte) error {
	_, err := c.Kubectl(ctx, manifests, "apply", "--server-side", "--force-conflicts", "-f", "-")
	return err
}

// define applies definitions of kinds and waits until they are served.
func (c *Cluster) define(ctx context.Context, path string) error {
	if _, err := c.Kubectl(ctx, nil, "apply", "--server-side", "-f", path); err != nil {
		return err
	}
	return c.await(ctx, "the kinds of "+filepath.Base(path)+" are served", func(ctx context.Context) error {
		// It fails, instead of waiting, if a definition has no conditions yet.
		_, err := c.Kubectl(ctx, nil, "wait", "--for", "condition=Established", "-f", path)
		return err
	})
}

func (c *Cluster) defineKEDA(ctx context.Context) error {
	manifests, err := Path(kedaManifests)
	if err != nil {
		return err
	}
	return c.define(ctx, filepath.Join(manifests, "crd", "bases"))
}

func (c *Cluster) defineLeaderWorkerSet(ctx context.Context) error {
	manifests, err := Path(lwsManifests)
	if err != nil {
		return err
	}
	return c.define(ctx, manifests)
}

func (c *Cluster) defineMonitors(ctx context.Context) error {
	return c.defineFiles(ctx, prometheusOperatorManifests, "monitoring.coreos.com_servicemonitors.yaml", "monitoring.coreos.com_podmonitors.yaml")
}

func (c *Cluster) defineCertManager(ctx context.Context) error {
	return c.defineFiles(ctx, certManagerManifests,
		"cert-manager.io_certificates.yaml", "cert-manager.io_issuers.yaml", "cert-manager.io_clusterissuers.yaml")
}

// defineFiles defines the kinds of some files of a component.
func (c *Cluster) defineFiles(ctx context.Context, component string, files ...string) error {
	manifests, err := Path(component)
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := c.define(ctx, filepath.Join(manifests, file)); err != nil {
			return err
		}
	}
	return nil
}

// path returns the path of a file of the cluster.
func (c *Cluster) path(name string) string { return filepath.Join(c.directory, name) }

func (c *Cluster) address() string { return "https://127.0.0.1:" + strconv.Itoa(c.port) }
