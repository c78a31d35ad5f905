package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// checkReport returns an error if a report cannot be written to a path, or would replace the trace.
// It leaves no file.
func checkReport(path, trace string) error {
	info, err := os.Lstat(path) // a rename would replace a symbolic link, not its file
	switch {
	case err == nil && info.Mode()&fs.ModeSymlink != 0 && !isDirectory(path):
		return usage(fmt.Errorf("report %s is a symbolic link, and no regular file; name another one", path))
	case err == nil && isDirectory(path):
		return usage(fmt.Errorf("report %s is a directory; name a file, such as %s/report.html", path, strings.TrimRight(path, "/")))
	case err == nil && !info.Mode().IsRegular():
		return usage(fmt.Errorf("report %s is no regular file; name another one", path))
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return usage(fmt.Errorf("report: %w; name another file", err))
	case err == nil && isFile(info, trace):
		return usage(fmt.Errorf("report %s is the file of the trace; name another one", path))
	}
	file, err := createBeside(path)
	if err != nil {
		return usage(fmt.Errorf("report: %w; name a file in a directory that can be written to", err))
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

// writeReport writes a report in one step: the path has the previous file or the whole report.
func writeReport(path string, page []byte) error {
	file, err := createBeside(path)
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	_, err = file.Write(page)
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name()) // the first error counts
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// unseen are the flags that do not change a report: it is the same at every speed.
var unseen = []string{"report", "output", "speed", "grpc-address", "verbose"}

// commandLine returns the command with the flags that determine the report, sorted.
func commandLine(command *cobra.Command) string {
	line := []string{"wvactl", command.Name()}
	command.Flags().Visit(func(f *pflag.Flag) {
		values := []string{f.Value.String()}
		if list, several := f.Value.(pflag.SliceValue); several {
			values = list.GetSlice()
		}
		for _, value := range values {
			if !slices.Contains(unseen, f.Name) {
				line = append(line, "--"+f.Name, shellWord(value))
			}
		}
	})
	return strings.Join(line, " ")
}

// shellWord quotes a value if a shell would not read it as one word.
func shellWord(text string) string {
	plain := strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./_-") == ""
	if plain && text != "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
