package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// checkFile returns an error if a file cannot be written to a path or would replace one of the
// inputs. It leaves no file. Errors name the file by its content, such as report, and give an
// example of a name.
func checkFile(what, example, path string, inputs ...string) error {
	info, err := os.Lstat(path) // a rename would replace a symbolic link, not its file
	switch {
	case path == "":
		return usage(fmt.Errorf("the %s has no file; name one, such as %s", what, example))
	case err == nil && info.Mode()&fs.ModeSymlink != 0 && !isDirectory(path):
		return usage(fmt.Errorf("%s %s is a symbolic link, and no regular file; name another one", what, path))
	case err == nil && isDirectory(path):
		return usage(fmt.Errorf("%s %s is a directory; name a file, such as %s/%s", what, path, strings.TrimRight(path, "/"), example))
	case err == nil && !info.Mode().IsRegular():
		return usage(fmt.Errorf("%s %s is no regular file; name another one", what, path))
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return usage(fmt.Errorf("%s: %w; name another file", what, err))
	case err == nil && slices.ContainsFunc(inputs, func(input string) bool { return isFile(info, input) }):
		return usage(fmt.Errorf("%s %s is an input; name another one", what, path))
	}
	file, err := createBeside(path)
	if err != nil {
		return usage(fmt.Errorf("%s: %w; name a file in a directory that can be written to", what, err))
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// isFile reports whether a path is that of a file.
func isFile(file fs.FileInfo, path string) bool {
	info, err := os.Stat(path)
	return err == nil && os.SameFile(file, info)
}

// createBeside creates a new file in the directory of a path.
func createBeside(path string) (*os.File, error) {
	return os.OpenFile(fmt.Sprintf("%s.%d.tmp", path, os.Getpid()), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
}

// writeFile writes a file in one step: the path has the previous file or the whole new one.
func writeFile(what, path string, content []byte) error {
	file, err := createBeside(path)
	if err != nil {
		return fmt.Errorf("writing the %s: %w", what, err)
	}
	_, err = file.Write(content)
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name()) // the first error counts
		return fmt.Errorf("writing the %s: %w", what, err)
	}
	return nil
}
