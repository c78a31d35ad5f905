package main

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/stretchr/testify/require"
)

var created = time.Unix(1700000000, 0).UTC()

// fakeProduct returns the image around files that stand for the binaries.
func fakeProduct(t *testing.T) *product {
	t.Helper()
	s := stamp{Version: "v1.2.3", Revision: "0123abc", Created: created}
	tag, err := name.NewTag("ghcr.io/wva-project/wva:v1.2.3")
	require.NoError(t, err)
	p := &product{stamp: s, tag: tag}
	for _, platform := range []v1.Platform{{OS: "linux", Architecture: "amd64"}, {OS: "linux", Architecture: "arm64"}} {
		require.NoError(t, p.add(platform, []byte("binary for "+platform.String())))
	}
	require.NoError(t, p.link())
	return p
}

// readImages returns the images of a layout, which has one index over them.
func readImages(t *testing.T, dir string) []v1.Image {
	t.Helper()
	at, err := layout.FromPath(dir)
	require.NoError(t, err)
	top, err := at.ImageIndex()
	require.NoError(t, err)
	list, err := top.IndexManifest()
	require.NoError(t, err)
	require.Len(t, list.Manifests, 1)
	index, err := top.ImageIndex(list.Manifests[0].Digest)
	require.NoError(t, err)
	rows, err := index.IndexManifest()
	require.NoError(t, err)
	var images []v1.Image
	for _, row := range rows.Manifests {
		image, err := index.Image(row.Digest)
		require.NoError(t, err)
		images = append(images, image)
	}
	return images
}

// files returns the headers and the contents of the one layer of an image.
func files(t *testing.T, image v1.Image) ([]*tar.Header, map[string][]byte) {
	t.Helper()
	layers, err := image.Layers()
	require.NoError(t, err)
	require.Len(t, layers, 1)
	stream, err := layers[0].Uncompressed()
	require.NoError(t, err)
	defer stream.Close()
	var headers []*tar.Header
	contents := map[string][]byte{}
	for archive := tar.NewReader(stream); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return headers, contents
		}
		require.NoError(t, err)
		headers = append(headers, header)
		contents[header.Name], err = io.ReadAll(archive)
		require.NoError(t, err)
	}
}

func TestLayerHasTheFilesOfTheImageAndNoOthers(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, writeLayout(dir, fakeProduct(t)))
	images := readImages(t, dir)
	require.Len(t, images, 2)
	for _, image := range images {
		headers, _ := files(t, image)
		modes := map[string]int64{}
		for _, h := range headers {
			modes[h.Name] = h.Mode
			require.Equal(t, []int{0, 0}, []int{h.Uid, h.Gid}, "owner of %s", h.Name)
			require.Equal(t, int64(0), h.ModTime.Unix(), "time of %s", h.Name)
			require.Equal(t, h.Name[len(h.Name)-1] == '/', h.Typeflag == tar.TypeDir, "type of %s", h.Name)
		}
		require.Equal(t, map[string]int64{
			"etc/": 0o755, "etc/group": 0o644, "etc/passwd": 0o644,
			"etc/ssl/": 0o755, "etc/ssl/certs/": 0o755, "etc/ssl/certs/ca-certificates.crt": 0o644,
			"tmp/": 0o1777, "wva": 0o755,
		}, modes)
	}
}

func TestCertificatesAreValidRoots(t *testing.T) {
	_, contents := files(t, fakeProduct(t).images[0].image)
	rest, roots := contents["etc/ssl/certs/ca-certificates.crt"], 0
	for {
		var block *pem.Block
		block, rest = pem.Decode(rest)
		if block == nil {
			break
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		require.NoError(t, err)
		require.True(t, certificate.IsCA, "%s", certificate.Subject)
		roots++
	}
	require.Empty(t, bytes.TrimSpace(rest))
	require.Greater(t, roots, 100)
}

func TestConfigIsThatOfANonRootServer(t *testing.T) {
	for _, of := range fakeProduct(t).images {
		config, err := of.image.ConfigFile()
		require.NoError(t, err)
		require.Equal(t, of.platform.Architecture, config.Architecture)
		require.Equal(t, "linux", config.OS)
		require.Equal(t, created, config.Created.Time)
		require.Equal(t, []string{"/wva"}, config.Config.Entrypoint)
		require.Empty(t, config.Config.Cmd)
		require.Equal(t, "65532:65532", config.Config.User)
		require.Equal(t, map[string]struct{}{"9090/tcp": {}, "8080/tcp": {}}, config.Config.ExposedPorts)
		manifest, err := of.image.Manifest()
		require.NoError(t, err)
		require.Equal(t, config.Config.Labels, manifest.Annotations)
		require.Equal(t, "v1.2.3", config.Config.Labels["org.opencontainers.image.version"])
		require.Equal(t, "0123abc", config.Config.Labels["org.opencontainers.image.revision"])
		require.Equal(t, "2023-11-14T22:13:20Z", config.Config.Labels["org.opencontainers.image.created"])
		require.Equal(t, "Apache-2.0", config.Config.Labels["org.opencontainers.image.licenses"])
	}
}

func TestLayoutIsReplacedAndOtherFilesAreKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "below", "image")
	p := fakeProduct(t)
	require.NoError(t, replaceLayout(dir, p))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "blobs", "sha256", "old"), []byte("of an earlier run"), 0o600))
	require.NoError(t, replaceLayout(dir, p))
	require.NoFileExists(t, filepath.Join(dir, "blobs", "sha256", "old"))
	require.Len(t, readImages(t, dir), 2)

	mine := filepath.Join(dir, "mine")
	require.NoError(t, os.WriteFile(mine, nil, 0o600))
	require.ErrorContains(t, replaceLayout(dir, p), "mine, which is not part of a layout")
	require.FileExists(t, mine)
	require.Len(t, readImages(t, dir), 2)
}
