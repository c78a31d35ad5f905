package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// product is the image: one for each platform, and the index over them.
type product struct {
	stamp  stamp
	tag    name.Tag
	images []platformImage
	index  v1.ImageIndex
}

// platformImage is the image for one platform.
type platformImage struct {
	platform   v1.Platform
	image      v1.Image
	tree       []entry
	binarySize int64
	layerSize  int64 // uncompressed
}

// labels of the Dockerfile are the same ones; a test compares them.
var labels = map[string]string{
	"org.opencontainers.image.title":       "wva",
	"org.opencontainers.image.description": "WVA, the Workload Variant Autoscaler: an autoscaler for LLM inference on Kubernetes that KEDA calls",
	"org.opencontainers.image.source":      "https://github.com/wva-project/wva",
	"org.opencontainers.image.licenses":    "Apache-2.0",
}

// labels returns the labels of an image, which are the annotations of its manifest and index too.
func (s stamp) labels() map[string]string {
	all := maps.Clone(labels)
	all["org.opencontainers.image.version"] = s.Version
	all["org.opencontainers.image.created"] = s.Created.Format(time.RFC3339)
	if s.Revision != "" {
		all["org.opencontainers.image.revision"] = s.Revision
	}
	return all
}

// add adds the image for a platform.
func (p *product) add(platform v1.Platform, binary []byte) error {
	tree := rootTree(binary)
	content, err := tarOf(tree)
	if err != nil {
		return fmt.Errorf("archiving the files of %s: %w", platform, err)
	}
	layer, err := tarball.LayerFromOpener(
		func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil },
		tarball.WithCompressedCaching, tarball.WithCompressionLevel(gzip.BestCompression),
		tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return fmt.Errorf("compressing the files of %s: %w", platform, err)
	}
	image, err := imageOf(layer, imageConfig(platform, p.stamp))
	if err != nil {
		return fmt.Errorf("making the image for %s: %w", platform, err)
	}
	p.images = append(p.images, platformImage{
		platform: platform, image: image, tree: tree,
		binarySize: int64(len(binary)), layerSize: int64(len(content)),
	})
	return nil
}

// imageOf returns an image in OCI's media types that has one layer.
func imageOf(layer v1.Layer, config *v1.ConfigFile) (v1.Image, error) {
	image := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	image = mutate.ConfigMediaType(image, types.OCIConfigJSON)
	image, err := mutate.ConfigFile(image, config)
	if err != nil {
		return nil, err
	}
	image, err = mutate.Append(image, mutate.Addendum{
		Layer:   layer,
		History: v1.History{Created: config.Created, CreatedBy: "tools/image"},
	})
	if err != nil {
		return nil, err
	}
	return mutate.Annotations(image, config.Config.Labels).(v1.Image), nil
}

// imageConfig returns the configuration of the image, without its layer.
func imageConfig(platform v1.Platform, s stamp) *v1.ConfigFile {
	return &v1.ConfigFile{
		OS: platform.OS, Architecture: platform.Architecture,
		Created: v1.Time{Time: s.Created},
		RootFS:  v1.RootFS{Type: "layers"},
		Config: v1.Config{
			Entrypoint:   []string{"/wva"},
			User:         fmt.Sprintf("%d:%[1]d", userID),
			ExposedPorts: map[string]struct{}{"8080/tcp": {}, "9090/tcp": {}},
			WorkingDir:   "/",
			Labels:       s.labels(),
		},
	}
}

// link makes the index over the platforms.
func (p *product) link() error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, of := range p.images {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: of.image, Descriptor: v1.Descriptor{Platform: &of.platform},
		})
	}
	p.index = mutate.Annotations(index, p.stamp.labels()).(v1.ImageIndex)
	_, err := p.index.Digest()
	return err
}
