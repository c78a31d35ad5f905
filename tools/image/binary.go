package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// buildBinary returns cmd/wva, built for a platform: static, stripped, and the same whatever the
// directory and the environment. Settings of git are left out, since a build from an archive has
// none; the version has the commit.
func buildBinary(ctx context.Context, root string, platform v1.Platform, s stamp) ([]byte, error) {
	dir, err := os.MkdirTemp("", "wva-image-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "wva")
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags", "-s -w -X main.version="+s.Version, "-o", file, "./cmd/wva")
	command.Dir = root
	command.Env = append(os.Environ(), "GOOS="+platform.OS, "GOARCH="+platform.Architecture,
		"CGO_ENABLED=0", "GOAMD64=v1", "GOARM64=v8.0", "GOFIPS140=off", "GOEXPERIMENT=", "GOWORK=off",
		"GOFLAGS=-buildvcs=false") // not empty: else a "go env -w" of the user counts
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("building wva for %s in %s: %w\n%s", platform, root, err, bytes.TrimSpace(output.Bytes()))
	}
	return os.ReadFile(file)
}
