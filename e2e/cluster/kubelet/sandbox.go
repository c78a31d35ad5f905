package kubelet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// sandbox is the surroundings of one container and its command. It is handed to the container's
// first process as JSON.
type sandbox struct {
	Root         string // the directory that becomes its root
	ReadOnlyRoot bool
	Mounts       []mount
	Hostname     string
	Directory    string // working directory
	Command      []string
	Environment  []string
	User         int64
	Address      string
	// NoNewPrivileges is the opposite of allowPrivilegeEscalation.
	NoNewPrivileges bool
}

// mount is a file or directory that is visible inside.
type mount struct {
	Source, Target string
	ReadOnly       bool
	Directory      bool
}

// sandbox makes the container's root and resolves its specification.
func (w *worker) sandbox(ctx context.Context, volumes []*volume) (*sandbox, error) {
	if len(w.pod.Spec.Containers) > 1 || len(w.pod.Spec.InitContainers) > 0 {
		return nil, errors.New("the pod has several containers, or an init container; this kubelet runs one")
	}
	variables, err := w.environment(ctx)
	if err != nil {
		return nil, err
	}
	mounts, err := w.mounts(volumes)
	if err != nil {
		return nil, err
	}
	container := &w.pod.Spec.Containers[0]
	s := &sandbox{
		Root: filepath.Join(w.directory(), "root"), Hostname: w.pod.Name, Address: w.pod.Status.PodIP,
		Directory: container.WorkingDir, User: w.image.User, Mounts: mounts,
	}
	if s.Directory == "" {
		s.Directory = "/"
	}
	if err := w.applySecurity(s); err != nil {
		return nil, err
	}
	s.Command = w.image.Entrypoint
	if len(container.Command) > 0 {
		s.Command = container.Command
	}
	s.Command = slices.Concat(s.Command, container.Args)
	for i, word := range s.Command {
		s.Command[i] = expand(word, variables)
	}
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		s.Environment = append(s.Environment, name+"="+variables[name])
	}
	return s, w.makeRoot(s)
}

// applySecurity applies the security contexts of the pod and of its container.
func (w *worker) applySecurity(s *sandbox) error {
	nonRoot := false
	if pod := w.pod.Spec.SecurityContext; pod != nil {
		if pod.RunAsUser != nil {
			s.User = *pod.RunAsUser
		}
		nonRoot = pod.RunAsNonRoot != nil && *pod.RunAsNonRoot
	}
	if own := w.pod.Spec.Containers[0].SecurityContext; own != nil {
		if own.RunAsUser != nil {
			s.User = *own.RunAsUser
		}
		if own.RunAsNonRoot != nil {
			nonRoot = *own.RunAsNonRoot
		}
		s.ReadOnlyRoot = own.ReadOnlyRootFilesystem != nil && *own.ReadOnlyRootFilesystem
		s.NoNewPrivileges = own.AllowPrivilegeEscalation != nil && !*own.AllowPrivilegeEscalation
	}
	if nonRoot && s.User == 0 {
		return errors.New("the container has runAsNonRoot and its image runs as root")
	}
	return nil
}

// makeRoot copies the image, so that nothing that a container writes is left in it, and makes the
// files of the network and the points of all mounts.
func (w *worker) makeRoot(s *sandbox) error {
	if err := os.RemoveAll(s.Root); err != nil { // of the container before
		return err
	}
	if err := os.CopyFS(s.Root, os.DirFS(w.image.Tree)); err != nil {
		return fmt.Errorf("copy the image %s: %w", w.image.Name, err)
	}
	if err := os.MkdirAll(filepath.Join(s.Root, "etc"), 0o755); err != nil {
		return err
	}
	search := w.pod.Namespace + ".svc.cluster.local svc.cluster.local cluster.local"
	for name, content := range map[string]string{
		"resolv.conf": "search " + search + "\nnameserver " + w.options.Nameserver + "\noptions ndots:5\n",
		"hosts":       "127.0.0.1 localhost\n::1 localhost\n" + s.Address + " " + s.Hostname + "\n",
		"hostname":    s.Hostname + "\n",
	} {
		if err := os.WriteFile(filepath.Join(s.Root, "etc", name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	for _, device := range []string{"null", "zero", "full", "random", "urandom"} {
		s.Mounts = append(s.Mounts, mount{Source: "/dev/" + device, Target: "/dev/" + device})
	}
	if err := os.MkdirAll(filepath.Join(s.Root, "proc"), 0o755); err != nil {
		return err
	}
	for _, m := range s.Mounts {
		if err := makePoint(filepath.Join(s.Root, m.Target), m.Directory); err != nil {
			return fmt.Errorf("mount %s: %w", m.Target, err)
		}
	}
	return nil
}

// makePoint makes the file or directory on which something is mounted.
func makePoint(path string, directory bool) error {
	if directory {
		return os.MkdirAll(path, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, nil, 0o644)
}

// address returns the address of a pod by its number. KWOK gives its pods addresses from the low
// end of the same block.
func address(number int) string {
	return fmt.Sprintf("10.244.%d.%d", 255-number/254, 1+number%254)
}

// Owns reports whether an address belongs to a pod that a kubelet of this package runs: a process
// with a network of its own answers there.
func Owns(address string) bool {
	return strings.HasPrefix(address, "10.244.255.") || strings.HasPrefix(address, "10.244.254.")
}
