package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const (
	userID = 65532 // "nonroot" of the distroless images
	passwd = "nonroot:x:65532:65532:nonroot:/:/sbin/nologin\n"
	group  = "nonroot:x:65532:\n"
)

// epoch is the modification time of every file.
var epoch = time.Unix(0, 0)

// entry is a file or directory of the image, owned by root.
type entry struct {
	path    string // without a leading slash
	mode    fs.FileMode
	content []byte
}

// rootTree returns the root file system around a binary, parents first.
func rootTree(binary []byte) []entry {
	return []entry{
		{path: "etc", mode: fs.ModeDir | 0o755},
		{path: "etc/group", mode: 0o644, content: []byte(group)},
		{path: "etc/passwd", mode: 0o644, content: []byte(passwd)},
		{path: "etc/ssl", mode: fs.ModeDir | 0o755},
		{path: "etc/ssl/certs", mode: fs.ModeDir | 0o755},
		{path: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, content: certificates()},
		{path: "tmp", mode: fs.ModeDir | fs.ModeSticky | 0o777},
		{path: "wva", mode: 0o755, content: binary},
	}
}

// certificates returns the CA certificates of Mozilla's list as PEM. A root that is trusted for
// certificates of a limited time only is left out: a PEM file cannot say so.
func certificates() []byte {
	var all bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			all.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
		}
	}
	return all.Bytes()
}

// tarOf returns the entries as an archive that depends on nothing else.
func tarOf(entries []entry) ([]byte, error) {
	var buffer bytes.Buffer
	archive := tar.NewWriter(&buffer)
	for _, e := range entries {
		header := &tar.Header{
			Name: e.path, Typeflag: tar.TypeReg, Size: int64(len(e.content)),
			Mode: int64(e.mode.Perm()), ModTime: epoch, Format: tar.FormatUSTAR,
		}
		if e.mode.IsDir() {
			header.Name, header.Typeflag = e.path+"/", tar.TypeDir
		}
		if e.mode&fs.ModeSticky != 0 {
			header.Mode |= 0o1000
		}
		if err := archive.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := archive.Write(e.content); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}

// writeTree writes the entries below a directory, which may have those of an earlier run and no
// others. A file is replaced and not overwritten, so that a binary that runs keeps its own.
func writeTree(dir string, entries []entry) error {
	if there, err := filepath.EvalSymlinks(dir); err == nil {
		dir = there // a walk does not follow a link
	}
	if err := onlyHas(dir, entries); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.path)
		if e.mode.IsDir() {
			if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
		} else if err := replaceFile(path, e.content); err != nil {
			return err
		}
		if err := os.Chmod(path, e.mode); err != nil { // the umask applies to the calls above
			return err
		}
	}
	for _, e := range slices.Backward(entries) { // a new file changes the time of its directory
		if err := os.Chtimes(filepath.Join(dir, e.path), epoch, epoch); err != nil {
			return err
		}
	}
	return nil
}

// onlyHas returns an error if the directory has a file that is none of the entries. A symbolic link
// is none: files below it would be written elsewhere. A fresh file of an interrupted run will be
// replaced.
func onlyHas(dir string, entries []entry) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path == dir {
			return fs.SkipAll
		}
		if err != nil || path == dir {
			return err
		}
		below, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(entries, func(e entry) bool {
			name := filepath.ToSlash(below)
			return d.Type() == e.mode.Type() && (name == e.path || d.Type().IsRegular() && name == e.path+fresh)
		}) {
			return fmt.Errorf("%s has %s, which is not part of the image; name an empty directory", dir, below)
		}
		return nil
	})
}

// fresh ends the name of a file that is not yet in its place.
const fresh = ".new"

func replaceFile(path string, content []byte) error {
	if err := os.WriteFile(path+fresh, content, 0o600); err != nil {
		return err
	}
	if err := os.Rename(path+fresh, path); err != nil {
		return errors.Join(err, os.Remove(path+fresh))
	}
	return nil
}
