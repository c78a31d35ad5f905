package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// destinations are the places to which an image is written; those that are empty are left out.
type destinations struct {
	layout  string
	archive string
	push    string
	tree    string
}

// destination is a place to which an image was written.
type destination struct {
	Kind string `json:"kind"`
	To   string `json:"to"`
}

// write writes the image to every destination, the registry last, and stops at the first error.
func (d destinations) write(ctx context.Context, p *product) ([]destination, error) {
	var wrote []destination
	for _, to := range []struct {
		destination
		write func() error
	}{
		{destination{"tree", d.tree}, func() error { return writeTree(d.tree, p.images[0].tree) }},
		{destination{"layout", d.layout}, func() error { return replaceLayout(d.layout, p) }},
		{destination{"archive", d.archive}, func() error { return writeArchive(d.archive, p) }},
		{destination{"registry", d.push}, func() error { return d.pushImage(ctx, p) }},
	} {
		if to.To == "" {
			continue
		}
		if err := to.write(); err != nil {
			return nil, fmt.Errorf("writing the %s %s: %w", to.Kind, to.To, err)
		}
		wrote = append(wrote, to.destination)
	}
	return wrote, nil
}

// replaceLayout writes an OCI layout to a directory, which may have an earlier one and nothing
// else.
func replaceLayout(dir string, p *product) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if !slices.Contains([]string{"blobs", "index.json", "oci-layout"}, e.Name()) {
			return fmt.Errorf("it has %s, which is not part of a layout; name an empty directory", e.Name())
		}
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return writeLayout(dir, p)
}

// writeLayout writes an OCI layout. Its index.json has the image's index as its one row, so that
// the digest is that of a registry.
func writeLayout(dir string, p *product) error {
	at, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	return at.AppendIndex(p.index, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": p.tag.TagStr(),
		"io.containerd.image.name":          p.tag.Name(), // by which containerd names an import
	}))
}

// pushTag returns the reference to push to.
func (d destinations) pushTag(version string) (name.Tag, error) {
	if strings.Contains(d.push, "@") {
		return name.Tag{}, fmt.Errorf("reference %s has a digest; name a repository, or a tag", d.push)
	}
	tag, err := name.NewTag(d.push, name.WithDefaultTag(version))
	if err != nil {
		return name.Tag{}, fmt.Errorf("%w; write registry/repository or registry/repository:tag", err)
	}
	return tag, nil
}

// pushImage pushes the index and everything that it names.
func (d destinations) pushImage(ctx context.Context, p *product) error {
	tag, err := d.pushTag(p.stamp.Version)
	if err != nil {
		return err
	}
	err = remote.WriteIndex(tag, p.index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain))
	if err != nil {
		return fmt.Errorf("%w; check the reference and the credentials (docker login)", err)
	}
	return nil
}
