package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/spf13/cobra"
)

const long = `Build wva for Linux and write it as a container image FROM scratch. No container engine is needed.

The image has /wva, CA certificates, /etc/passwd, /etc/group and /tmp, and nothing else: no shell, no package manager.
It runs as user 65532. The CA certificates are those of Mozilla's list, from a Go module.

The digest depends on the commit, the version and the version of Go, and not on the machine, its time or its
directories. The creation time is SOURCE_DATE_EPOCH, or else that of the commit.

"go version -m wva" lists the modules that the binary is built from, with their versions and checksums.

Relative paths are below the working directory; "go run -C tools/image" makes that tools/image.`

const examples = `  go run -C tools/image . --output $PWD/dist/image
  go run -C tools/image . --tree $PWD/dist/tree --platform linux/amd64
  go run -C tools/image . --archive $PWD/wva.tar --platform linux/amd64 && docker load --input wva.tar
  go run -C tools/image . --push registry.example.com/wva --version v1.2.3`

// options are the flags.
type options struct {
	source     string
	platforms  []string
	version    string
	repository string
	format     string
	to         destinations
}

func newCommand() *cobra.Command {
	var o options
	command := &cobra.Command{
		Use:           "image [--output DIR] [--archive FILE] [--push REFERENCE] [--tree DIR]",
		Short:         "Build wva and write it as a container image",
		Long:          long,
		Example:       examples,
		Args:          noArguments,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(command *cobra.Command, _ []string) error {
			report, err := run(command.Context(), o)
			if err != nil {
				return err
			}
			return report.write(command.OutOrStdout(), o.format)
		},
	}
	command.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usagef("%w; see --help", err) })
	flags := command.Flags()
	flags.SortFlags = false
	flags.StringVar(&o.to.layout, "output", "", "write an OCI layout to this directory")
	flags.StringVar(&o.to.archive, "archive", "", "write an archive for docker load, kind load and ctr images import to this file")
	flags.StringVar(&o.to.push, "push", "", "push to this reference, with the credentials of ~/.docker/config.json; without a tag, the tag is the version")
	flags.StringVar(&o.to.tree, "tree", "", "write the root file system to this directory; needs one --platform")
	flags.StringSliceVar(&o.platforms, "platform", []string{"linux/amd64", "linux/arm64"}, "platforms, separated by commas")
	flags.StringVar(&o.version, "version", "", "version of the binary and tag of the image (default: git describe, or dev)")
	flags.StringVar(&o.repository, "repository", "ghcr.io/wva-project/wva", "repository that layout and archive name")
	flags.StringVar(&o.source, "source", "", "directory of the source code (default: that of the module around the working directory)")
	flags.StringVarP(&o.format, "format", "o", "text", "text or json")
	return command
}

func noArguments(_ *cobra.Command, arguments []string) error {
	if len(arguments) > 0 {
		return usagef("unknown argument %q; see --help", arguments[0])
	}
	return nil
}

// run builds the image and writes it to every destination.
func run(ctx context.Context, o options) (*report, error) {
	platforms, err := o.check()
	if err != nil {
		return nil, err
	}
	root := o.source
	if root == "" {
		if root, err = sourceAbove("."); err != nil {
			return nil, err
		}
	}
	s, err := stampOf(ctx, root, o.version)
	if err != nil {
		return nil, err
	}
	tag, err := name.NewTag(o.repository + ":" + s.Version)
	if err != nil {
		return nil, usagef("%w; name a --repository and a --version that make a tag", err)
	}
	built := &product{stamp: s, tag: tag}
	for _, platform := range platforms {
		binary, err := buildBinary(ctx, root, platform, s)
		if err != nil {
			return nil, err
		}
		if err := built.add(platform, binary); err != nil {
			return nil, err
		}
	}
	if err := built.link(); err != nil {
		return nil, err
	}
	wrote, err := o.to.write(ctx, built)
	if err != nil {
		return nil, err
	}
	return newReport(built, wrote)
}

// check returns the platforms, or every error of the command line.
func (o options) check() ([]v1.Platform, error) {
	var invalid []error
	if o.to == (destinations{}) {
		invalid = append(invalid, errors.New("nothing to write; name --output, --archive, --push or --tree"))
	}
	if o.format != "text" && o.format != "json" {
		invalid = append(invalid, fmt.Errorf("format %q is unknown; write text or json", o.format))
	}
	if o.to.tree != "" && len(o.platforms) != 1 {
		invalid = append(invalid, fmt.Errorf("--tree is for one platform and there are %d; add --platform linux/amd64", len(o.platforms)))
	}
	if o.to.push != "" {
		if _, err := o.to.pushTag("version"); err != nil {
			invalid = append(invalid, err)
		}
	}
	platforms, err := parsePlatforms(o.platforms)
	if err != nil {
		invalid = append(invalid, err)
	}
	if err := errors.Join(invalid...); err != nil {
		return nil, &usageError{err}
	}
	return platforms, nil
}

// parsePlatforms returns the platforms, each once.
func parsePlatforms(given []string) ([]v1.Platform, error) {
	if len(given) == 0 {
		return nil, errors.New("there is no platform; add --platform linux/amd64")
	}
	var platforms []v1.Platform
	seen := map[string]bool{}
	for _, text := range given {
		if text != "linux/amd64" && text != "linux/arm64" {
			return nil, fmt.Errorf("platform %q is not supported; write linux/amd64, linux/arm64 or both", text)
		}
		if seen[text] {
			return nil, fmt.Errorf("platform %q is there twice; write it once", text)
		}
		seen[text] = true
		platform, err := v1.ParsePlatform(text)
		if err != nil {
			return nil, err
		}
		platforms = append(platforms, *platform)
	}
	return platforms, nil
}
