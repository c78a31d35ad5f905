package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const module = "github.com/wva-project/wva"

// stamp tells the source of an image.
type stamp struct {
	Version  string    `json:"version"`
	Revision string    `json:"revision,omitempty"` // commit; empty outside a git repository
	Created  time.Time `json:"created"`
}

// lastSecond is the end of the year 9999, the latest that a creation time can have.
const lastSecond = 253402300799

// tagForm is the form of a tag in a registry.
var tagForm = regexp.MustCompile(`^[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,127}$`)

// sourceAbove returns the directory of the product's module: the given one, or one above it.
func sourceAbove(dir string) (string, error) {
	start, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for dir = start; ; dir = filepath.Dir(dir) {
		content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if first, _, _ := strings.Cut(string(content), "\n"); err == nil && strings.TrimSpace(first) == "module "+module {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no directory from %s upwards is that of module %s; name it with --source", start, module)
		}
	}
}

// stampOf returns the stamp of a source directory. An empty version stands for that of git, or
// "dev" outside a git repository.
func stampOf(ctx context.Context, root, version string) (stamp, error) {
	s := stamp{Version: version, Created: time.Unix(0, 0).UTC()}
	if err := checkReadable(ctx, root); err != nil {
		return stamp{}, err
	}
	if isRepository(ctx, root) {
		if s.Version == "" {
			s.Version = describe(ctx, root)
		}
		s.Revision = git(ctx, root, "rev-parse", "HEAD")
		if seconds, err := strconv.ParseInt(git(ctx, root, "log", "-1", "--format=%ct"), 10, 64); err == nil {
			s.Created = time.Unix(seconds, 0).UTC()
		}
	}
	if s.Version == "" {
		s.Version = "dev"
	}
	if !tagForm.MatchString(s.Version) {
		return stamp{}, usagef("version %q cannot be the tag of an image; use letters, digits, '.', '-' and '_' only", s.Version)
	}
	if epoch := os.Getenv("SOURCE_DATE_EPOCH"); epoch != "" {
		seconds, err := strconv.ParseInt(epoch, 10, 64)
		if err != nil || seconds < 0 || seconds > lastSecond {
			return stamp{}, usagef("SOURCE_DATE_EPOCH %q is not a number of seconds from 1970 to 9999; correct or unset it", epoch)
		}
		s.Created = time.Unix(seconds, 0).UTC()
	}
	return s, nil
}

// isRepository reports whether the directory is the top of a git repository. Below the top of
// another one, as an unpacked archive may be, git would describe that one.
func isRepository(ctx context.Context, root string) bool {
	top := git(ctx, root, "rev-parse", "--show-toplevel")
	if top == "" {
		return false
	}
	here, err := os.Stat(root)
	if err != nil {
		return false
	}
	there, err := os.Stat(top)
	return err == nil && os.SameFile(here, there)
}

// checkReadable returns an error if the directory has a repository that git does not read, such as
// that of another user: its image would have no revision, and the version dev.
func checkReadable(ctx context.Context, root string) error {
	if _, err := os.Stat(filepath.Join(root, ".git")); err != nil {
		return nil // no repository
	}
	command := gitCommand(ctx, root, "rev-parse", "--show-toplevel")
	var problem bytes.Buffer
	command.Stderr = &problem
	if err := command.Run(); err != nil {
		return fmt.Errorf("reading the git repository %s: %w %s; make git read it, or build from an archive of it", root, err, bytes.TrimSpace(problem.Bytes()))
	}
	return nil
}

// describe returns the version of a repository. Go files that are not committed are built in too.
func describe(ctx context.Context, root string) string {
	version := git(ctx, root, "describe", "--tags", "--always", "--dirty", "--match", "v*")
	if git(ctx, root, "ls-files", "--others", "--exclude-standard", "--", "*.go") != "" {
		version = strings.TrimSuffix(version, "-dirty") + "-dirty"
	}
	return version
}

// git returns the output of a git command; empty if it fails.
func git(ctx context.Context, root string, arguments ...string) string {
	out, err := gitCommand(ctx, root, arguments...).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// gitCommand returns a git command on the repository of the directory, also within a hook of
// another one, which sets variables.
func gitCommand(ctx context.Context, root string, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, "git", append([]string{"-C", root}, arguments...)...)
	command.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "GIT_DIR=") || strings.HasPrefix(variable, "GIT_WORK_TREE=")
	})
	return command
}
