package main

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// writeArchive writes an archive that all container engines load: an OCI layout, which containerd
// reads with all platforms, and Docker's manifest.json, by which an engine without containerd's
// image store loads the first platform.
func writeArchive(file string, p *product) error {
	dir, err := os.MkdirTemp("", "wva-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := writeLayout(dir, p); err != nil {
		return err
	}
	manifest, err := dockerManifest(p)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "manifest.json"), manifest, 0o600); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(archiveDir(out, os.DirFS(dir)), out.Close())
}

// dockerManifest returns the manifest.json of an archive: the image for the first platform.
func dockerManifest(p *product) ([]byte, error) {
	first := p.images[0].image
	config, err := first.ConfigName()
	if err != nil {
		return nil, err
	}
	layers, err := first.Layers()
	if err != nil {
		return nil, err
	}
	row := tarball.Descriptor{Config: blob(config), RepoTags: []string{p.tag.Name()}}
	for _, layer := range layers {
		digest, err := layer.Digest()
		if err != nil {
			return nil, err
		}
		row.Layers = append(row.Layers, blob(digest))
	}
	return json.Marshal(tarball.Manifest{row})
}

func blob(digest v1.Hash) string { return path.Join("blobs", digest.Algorithm, digest.Hex) }

// archiveDir archives a directory, sorted by name, with fixed times, modes and owners.
func archiveDir(out *os.File, dir fs.FS) error {
	archive := tar.NewWriter(out)
	err := fs.WalkDir(dir, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		if d.IsDir() {
			return archive.WriteHeader(&tar.Header{
				Name: name + "/", Typeflag: tar.TypeDir, Mode: 0o755, ModTime: epoch, Format: tar.FormatUSTAR,
			})
		}
		content, err := fs.ReadFile(dir, name)
		if err != nil {
			return err
		}
		err = archive.WriteHeader(&tar.Header{
			Name: name, Typeflag: tar.TypeReg, Size: int64(len(content)), Mode: 0o644, ModTime: epoch, Format: tar.FormatUSTAR,
		})
		if err != nil {
			return err
		}
		_, err = archive.Write(content)
		return err
	})
	if err != nil {
		return fmt.Errorf("archiving the layout: %w", err)
	}
	return archive.Close()
}
