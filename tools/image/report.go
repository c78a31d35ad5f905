package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
)

// report tells the image that was written.
type report struct {
	stamp
	Reference string           `json:"reference"`
	Digest    string           `json:"digest"`
	Platforms []platformReport `json:"platforms"`
	Wrote     []destination    `json:"wrote"`
}

// platformReport tells the image for one platform. Sizes are in bytes.
type platformReport struct {
	Platform         string `json:"platform"`
	Digest           string `json:"digest"`
	Binary           int64  `json:"binarySize"`
	Layer            string `json:"layerDigest"`
	CompressedSize   int64  `json:"compressedSize"`
	UncompressedSize int64  `json:"uncompressedSize"`
}

func newReport(p *product, wrote []destination) (*report, error) {
	digest, err := p.index.Digest()
	if err != nil {
		return nil, err
	}
	r := &report{stamp: p.stamp, Reference: p.tag.Name(), Digest: digest.String(), Wrote: wrote}
	for _, of := range p.images {
		row, err := of.report()
		if err != nil {
			return nil, err
		}
		r.Platforms = append(r.Platforms, row)
	}
	return r, nil
}

func (i platformImage) report() (platformReport, error) {
	digest, err := i.image.Digest()
	if err != nil {
		return platformReport{}, err
	}
	manifest, err := i.image.Manifest()
	if err != nil {
		return platformReport{}, err
	}
	layer := manifest.Layers[0]
	return platformReport{
		Platform: i.platform.String(), Digest: digest.String(), Binary: i.binarySize,
		Layer: layer.Digest.String(), CompressedSize: layer.Size, UncompressedSize: i.layerSize,
	}, nil
}

func (r *report) write(to io.Writer, format string) error {
	if format == "json" {
		encoder := json.NewEncoder(to)
		encoder.SetIndent("", "  ")
		return encoder.Encode(r)
	}
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "reference\t%s\n", r.Reference)
	fmt.Fprintf(table, "digest\t%s\n", r.Digest)
	for _, row := range r.Platforms {
		fmt.Fprintf(table, "%s\t%s\n", row.Platform, row.Digest)
		fmt.Fprintf(table, "\tlayer %s compressed, %s uncompressed; binary %s\n",
			megabytes(row.CompressedSize), megabytes(row.UncompressedSize), megabytes(row.Binary))
	}
	for _, to := range r.Wrote {
		fmt.Fprintf(table, "%s\t%s\n", to.Kind, to.To)
	}
	return table.Flush()
}

func megabytes(size int64) string { return fmt.Sprintf("%.1f MB", float64(size)/1e6) }
