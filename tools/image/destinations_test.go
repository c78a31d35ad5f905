package main

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/stretchr/testify/require"
)

func TestPushedImageHasTheDigestOfTheLayout(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	p := fakeProduct(t)
	for reference, tag := range map[string]string{"/wva": "/wva:v1.2.3", "/mirror/wva:latest": "/mirror/wva:latest"} {
		dir := t.TempDir()
		wrote, err := destinations{layout: dir, push: host + reference}.write(context.Background(), p)
		require.NoError(t, err)
		require.Equal(t, []destination{{"layout", dir}, {"registry", host + reference}}, wrote)

		ref, err := name.ParseReference(host + tag)
		require.NoError(t, err)
		pulled, err := remote.Index(ref)
		require.NoError(t, err)
		require.NoError(t, validate.Index(pulled))
		got, err := pulled.Digest()
		require.NoError(t, err)
		require.FileExists(t, filepath.Join(dir, "blobs", "sha256", got.Hex))
	}
}

func TestFailedPushNamesTheRemedy(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	server.Close() // nobody listens any more
	reference := strings.TrimPrefix(server.URL, "http://") + "/wva"
	_, err := destinations{push: reference}.write(context.Background(), fakeProduct(t))
	require.ErrorContains(t, err, "writing the registry "+reference)
	require.ErrorContains(t, err, "check the reference and the credentials")
}

func TestArchiveIsReadAsDockersAndAsOCIs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "below", "wva.tar")
	p := fakeProduct(t)
	require.NoError(t, writeArchive(file, p))

	tag, err := name.NewTag("ghcr.io/wva-project/wva:v1.2.3")
	require.NoError(t, err)
	image, err := tarball.ImageFromPath(file, &tag)
	require.NoError(t, err)
	config, err := image.ConfigFile()
	require.NoError(t, err)
	require.Equal(t, "amd64", config.Architecture)
	_, contents := files(t, image)
	require.Equal(t, "binary for linux/amd64", string(contents["wva"]))

	dir := t.TempDir()
	unpack(t, file, dir)
	require.Len(t, readImages(t, dir), 2)
	index, err := os.ReadFile(filepath.Join(dir, "index.json"))
	require.NoError(t, err)
	var named struct {
		Manifests []struct{ Annotations map[string]string }
	}
	require.NoError(t, json.Unmarshal(index, &named))
	require.Equal(t, map[string]string{
		"io.containerd.image.name":          "ghcr.io/wva-project/wva:v1.2.3",
		"org.opencontainers.image.ref.name": "v1.2.3",
	}, named.Manifests[0].Annotations)
}

func unpack(t *testing.T, file, dir string) {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	for archive := tar.NewReader(bytes.NewReader(content)); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
		path := filepath.Join(dir, header.Name)
		if header.Typeflag == tar.TypeDir {
			require.NoError(t, os.MkdirAll(path, 0o755))
			continue
		}
		part, err := io.ReadAll(archive)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, part, 0o600))
	}
}
