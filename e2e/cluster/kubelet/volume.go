package kubelet

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// volume is a directory that follows objects of the API server.
type volume struct {
	name      string
	directory string
	// read returns the files; nil for an emptyDir.
	read func(ctx context.Context) (map[string][]byte, error)

	files   map[string][]byte
	version int
}

// openVolumes makes the volumes of the pod. An emptyDir keeps its files over restarts.
func (w *worker) openVolumes(ctx context.Context) ([]*volume, error) {
	var volumes []*volume
	for i := range w.pod.Spec.Volumes {
		spec := &w.pod.Spec.Volumes[i]
		v := &volume{name: spec.Name, directory: filepath.Join(w.directory(), "volumes", spec.Name)}
		if err := os.MkdirAll(v.directory, 0o777); err != nil {
			return nil, err
		}
		if spec.EmptyDir == nil {
			read, err := w.source(spec)
			if err != nil {
				return nil, fmt.Errorf("volume %s: %w", v.name, err)
			}
			v.read = read
			if err := os.RemoveAll(v.directory); err != nil { // of the container before
				return nil, err
			}
			if err := os.MkdirAll(v.directory, 0o755); err != nil {
				return nil, err
			}
		}
		if err := v.refresh(ctx); err != nil {
			return nil, fmt.Errorf("volume %s: %w", v.name, err)
		}
		volumes = append(volumes, v)
	}
	return volumes, nil
}

// directory is that of the pod.
func (w *worker) directory() string {
	return filepath.Join(w.options.Directory, "pods", string(w.pod.UID))
}

// refresh reads the volume's objects and writes their files if they have changed. As a kubelet
// does, it replaces all files at once: each is a link through ..data, which changes its target.
func (v *volume) refresh(ctx context.Context) error {
	if v.read == nil {
		return nil
	}
	files, err := v.read(ctx)
	if err != nil || v.version > 0 && maps.EqualFunc(files, v.files, bytes.Equal) {
		return err
	}
	v.version++
	fresh := fmt.Sprintf("..%s.%d", time.Now().UTC().Format("2006_01_02_15_04_05"), v.version)
	for name, content := range files {
		path := filepath.Join(v.directory, fresh, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return err
		}
	}
	if len(files) == 0 {
		if err := os.MkdirAll(filepath.Join(v.directory, fresh), 0o755); err != nil {
			return err
		}
	}
	before, _ := os.Readlink(filepath.Join(v.directory, "..data")) // there is none at first
	if err := replaceLink(fresh, filepath.Join(v.directory, "..data")); err != nil {
		return err
	}
	if err := v.link(files); err != nil {
		return err
	}
	v.files = files
	if before == "" {
		return nil
	}
	return os.RemoveAll(filepath.Join(v.directory, before))
}

// link makes the visible links of the files and removes those of files that are gone.
func (v *volume) link(files map[string][]byte) error {
	visible := map[string]bool{}
	for name := range files {
		first, _, _ := strings.Cut(name, "/")
		visible[first] = true
	}
	entries, err := os.ReadDir(v.directory)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if name := entry.Name(); !strings.HasPrefix(name, "..") && !visible[name] {
			if err := os.Remove(filepath.Join(v.directory, name)); err != nil {
				return err
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(visible)) {
		if err := replaceLink(filepath.Join("..data", name), filepath.Join(v.directory, name)); err != nil {
			return err
		}
	}
	return nil
}

// replaceLink makes a symbolic link, at once if there is one.
func replaceLink(target, path string) error {
	if current, err := os.Readlink(path); err == nil && current == target {
		return nil
	}
	fresh := path + "_tmp"
	_ = os.Remove(fresh) // left by an attempt that failed
	if err := os.Symlink(target, fresh); err != nil {
		return err
	}
	return os.Rename(fresh, path)
}

// mounts resolves the mounts of the container.
func (w *worker) mounts(volumes []*volume) ([]mount, error) {
	var mounts []mount
	for _, m := range w.pod.Spec.Containers[0].VolumeMounts {
		i := slices.IndexFunc(volumes, func(v *volume) bool { return v.name == m.Name })
		switch {
		case i < 0:
			return nil, fmt.Errorf("the mount %s names no volume of the pod", m.Name)
		case m.SubPath != "" || m.SubPathExpr != "":
			return nil, fmt.Errorf("the mount %s has a subPath, which this kubelet does not mount", m.Name)
		}
		mounts = append(mounts, mount{
			// ConfigMaps, Secrets and the like are never writable.
			Source: volumes[i].directory, Target: m.MountPath, ReadOnly: m.ReadOnly || volumes[i].read != nil, Directory: true,
		})
	}
	slices.SortStableFunc(mounts, func(a, b mount) int { return len(a.Target) - len(b.Target) })
	return mounts, nil
}

// keyed returns the files of an object's keys: all, or those of the items.
func keyed(object string, data map[string][]byte, items []corev1.KeyToPath, optional *bool) (map[string][]byte, error) {
	if len(items) == 0 {
		return data, nil
	}
	files := map[string][]byte{}
	for _, item := range items {
		content, found := data[item.Key]
		if !found {
			if optional != nil && *optional {
				continue
			}
			return nil, fmt.Errorf("%s has no key %q", object, item.Key)
		}
		files[item.Path] = content
	}
	return files, nil
}
