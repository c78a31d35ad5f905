package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/wva-project/wva/e2e/cluster/kubelet"
)

// The names of the images that run for real.
const (
	wvaImage        = "ghcr.io/wva-project/wva"
	prometheusImage = "quay.io/prometheus/prometheus"
)

// Users of the images, as their configurations name them.
const (
	wvaUser        = 65532
	prometheusUser = 65534
)

// images returns the images of the options. That of wva is built once in the life of the program.
func (o Options) images(ctx context.Context) ([]kubelet.Image, error) {
	images := slices.Clone(o.Images)
	if o.WVA {
		tree := filepath.Join(os.Getenv(directoryVariable), "wva-image")
		if _, err := os.Stat(tree); errors.Is(err, os.ErrNotExist) {
			if err := imageTool(ctx, "run", ".", "--tree", tree, "--platform", "linux/"+runtime.GOARCH); err != nil {
				return nil, fmt.Errorf("build wva's image: %w", err)
			}
		}
		images = append(images, kubelet.Image{Name: wvaImage, Tree: tree, Entrypoint: []string{"/wva"}, User: wvaUser})
	}
	if o.Prometheus {
		tree, err := prometheusTree()
		if err != nil {
			return nil, err
		}
		images = append(images, kubelet.Image{Name: prometheusImage, Tree: tree, Entrypoint: []string{"/bin/prometheus"}, User: prometheusUser})
	}
	return images, nil
}

// prepareImage fetches the modules of the tool that writes the image: inside there is no network.
func prepareImage(ctx context.Context) error {
	return imageTool(ctx, "build", "-o", os.DevNull, ".")
}

// imageTool runs the go command in the module of tools/image.
func imageTool(ctx context.Context, arguments ...string) error {
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Dir = filepath.Join(source(), "..", "..", "tools", "image")
	command.Env = append(os.Environ(), "GOWORK=off")
	output, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("go %s in tools/image: %w: %s", strings.Join(arguments, " "), err, output)
	}
	return nil
}

// prometheusTree makes the tree of an image that has the binary only.
func prometheusTree() (string, error) {
	binary, err := Path(prometheus)
	if err != nil {
		return "", err
	}
	tree := filepath.Join(os.Getenv(directoryVariable), "prometheus-image")
	if err := os.MkdirAll(filepath.Join(tree, "bin"), 0o755); err != nil {
		return "", err
	}
	path := filepath.Join(tree, "bin", "prometheus")
	if _, err := os.Stat(path); err == nil {
		return tree, nil
	}
	content, err := os.ReadFile(binary)
	if err != nil {
		return "", err
	}
	return tree, os.WriteFile(path, content, 0o755) //nolint:gosec // it is a program
}
