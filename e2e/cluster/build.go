package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
)

// The components. Manifests are copied from the module that ships them.
const (
	etcd              = "etcd"
	apiServer         = "kube-apiserver"
	kubectl           = "kubectl"
	controllerManager = "kube-controller-manager"
	scheduler         = "kube-scheduler"
	kwok              = "kwok"
	kedaOperator      = "keda-operator"
	kedaAdapter       = "keda-adapter"
	kedaWebhooks      = "keda-webhooks"
	kedaManifests     = "keda-manifests"
	lwsManifests      = "lws-manifests"
	prometheus        = "prometheus"
	helm              = "helm"

	prometheusOperatorManifests = "prometheus-operator-manifests"
	certManagerManifests        = "cert-manager-manifests"
)

// component is a program or a directory of manifests. Its version is the one in the go.mod of its
// folder.
type component struct {
	name      string
	folder    string // of its Go module, below components
	module    string // that ships it
	directory string // within the module: of the program or of the manifests
	stamp     string // variable that the linker sets to the version; empty if there is none
	tags      string // of the build
	manifests bool
}

const (
	kubernetesModule = "k8s.io/kubernetes"
	kubernetesStamp  = "k8s.io/component-base/version.gitVersion"
	kedaModule       = "github.com/kedacore/keda/v2"
	kedaStamp        = kedaModule + "/version.Version"
)

func components() []component {
	return []component{
		{name: etcd, folder: "etcd", module: "go.etcd.io/etcd/server/v3"},
		{name: apiServer, folder: "kubernetes", module: kubernetesModule, directory: "cmd/kube-apiserver", stamp: kubernetesStamp},
		{name: kubectl, folder: "kubernetes", module: kubernetesModule, directory: "cmd/kubectl", stamp: kubernetesStamp},
		{
			name: controllerManager, folder: "kubernetes", module: kubernetesModule,
			directory: "cmd/kube-controller-manager", stamp: kubernetesStamp,
		},
		{name: scheduler, folder: "kubernetes", module: kubernetesModule, directory: "cmd/kube-scheduler", stamp: kubernetesStamp},
		{name: kwok, folder: "kwok", module: "sigs.k8s.io/kwok", directory: "cmd/kwok"},
		{name: kedaManifests, folder: "keda", module: kedaModule, directory: "config", manifests: true},
		{name: lwsManifests, folder: "lws", module: "sigs.k8s.io/lws", directory: "config/crd/bases", manifests: true},
		{
			name: prometheusOperatorManifests, folder: "prometheusoperator", module: "github.com/prometheus-operator/prometheus-operator",
			directory: "example/prometheus-operator-crd", manifests: true,
		},
		{
			name: certManagerManifests, folder: "certmanager", module: "github.com/cert-manager/cert-manager",
			directory: "deploy/crds", manifests: true,
		},
		{name: kedaOperator, folder: "keda", module: kedaModule, directory: "cmd/operator", stamp: kedaStamp},
		{name: kedaAdapter, folder: "keda", module: kedaModule, directory: "cmd/adapter", stamp: kedaStamp},
		{name: kedaWebhooks, folder: "keda", module: kedaModule, directory: "cmd/webhooks", stamp: kedaStamp},
		{
			name: prometheus, folder: "prometheus", module: "github.com/prometheus/prometheus", directory: "cmd/prometheus",
			tags: "remove_all_sd,enable_kubernetes_sd", // the SDKs of all clouds otherwise
		},
		// Helm is pinned once in the repository.
		{name: helm, folder: "../../../tools/helm", module: "helm.sh/helm/v3", directory: "cmd/helm"},
	}
}

// Known names the components that Build can build, those that every cluster needs first.
func Known() []string {
	var names []string
	for _, c := range components() {
		names = append(names, c.name)
	}
	return names
}

// Build builds the named components that do not exist yet, one after another, and reports each on
// progress. An existing one is kept until its version changes.
func Build(ctx context.Context, progress io.Writer, names ...string) error {
	for _, name := range names {
		c, path, err := find(name)
		if err != nil {
			return err
		}
		if _, err := os.Stat(path); err == nil {
			continue
		}
		_, _ = fmt.Fprintf(progress, "cluster: building %s\n", filepath.Base(path))
		started := time.Now()
		if err := c.build(ctx, path); err != nil {
			return fmt.Errorf("build %s: %w", filepath.Base(path), err)
		}
		_, _ = fmt.Fprintf(progress, "cluster: built %s in %s\n", filepath.Base(path), time.Since(started).Round(time.Second))
	}
	return nil
}

// Path returns the path of a component that has been built.
func Path(name string) (string, error) {
	_, path, err := find(name)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%s is not built; name it in the options of Enter, or run go run ./cmd/build %s in "+
			"e2e/cluster", filepath.Base(path), name)
	}
	return path, nil
}

// find returns a component and its path, whether it exists or not.
func find(name string) (component, string, error) {
	all := components()
	i := slices.IndexFunc(all, func(c component) bool { return c.name == name })
	if i < 0 {
		return component{}, "", fmt.Errorf("component %q is unknown; known are %s", name, strings.Join(Known(), ", "))
	}
	version, err := all[i].version()
	if err != nil {
		return component{}, "", err
	}
	return all[i], filepath.Join(source(), "bin", name+"-"+version), nil
}

// source is the directory of this file: the components' modules and the built components are beside
// it.
func source() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(file)
}

func (c component) version() (string, error) {
	path := filepath.Join(source(), "components", c.folder, "go.mod")
	content, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("find the version of %s: %w; do not build with -trimpath", c.name, err)
	}
	file, err := modfile.ParseLax(path, content, nil)
	if err != nil {
		return "", err
	}
	for _, r := range file.Require {
		if r.Mod.Path == c.module {
			return r.Mod.Version, nil
		}
	}
	return "", fmt.Errorf("%s requires no %s; go get it there", path, c.module)
}

// build makes the component under another name first, so that an interrupted build leaves no
// partial component.
func (c component) build(ctx context.Context, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp(filepath.Dir(path), "building-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	fresh := filepath.Join(scratch, c.name)
	if c.manifests {
		err = c.copyManifests(ctx, fresh)
	} else {
		err = c.compile(ctx, fresh)
	}
	if err != nil {
		return err
	}
	// another process may have been faster
	if err := os.Rename(fresh, path); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

func (c component) compile(ctx context.Context, path string) error {
	flags := "-s -w"
	if c.stamp != "" {
		version, err := c.version()
		if err != nil {
			return err
		}
		flags += " -X " + c.stamp + "=" + version
		if major, rest, found := strings.Cut(strings.TrimPrefix(version, "v"), "."); found && c.stamp == kubernetesStamp {
			minor, _, _ := strings.Cut(rest, ".")
			flags += " -X k8s.io/component-base/version.gitMajor=" + major + " -X k8s.io/component-base/version.gitMinor=" + minor
		}
	}
	program := strings.TrimSuffix(c.module+"/"+c.directory, "/")
	_, err := c.goCommand(ctx, "build", "-buildvcs=false", "-tags", c.tags, "-ldflags", flags, "-o", path, program)
	return err
}

func (c component) copyManifests(ctx context.Context, path string) error {
	if _, err := c.goCommand(ctx, "mod", "download", c.module); err != nil {
		return err
	}
	directory, err := c.goCommand(ctx, "list", "-m", "-f", "{{.Dir}}", c.module)
	if err != nil {
		return err
	}
	return os.CopyFS(path, os.DirFS(filepath.Join(strings.TrimSpace(directory), c.directory)))
}

// goCommand runs the go command in the component's module and returns its output.
func (c component) goCommand(ctx context.Context, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Dir = filepath.Join(source(), "components", c.folder)
	// The flags and the workspace of the tests are not for this module.
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", arguments[0], err, stderr.String())
	}
	return stdout.String(), nil
}
