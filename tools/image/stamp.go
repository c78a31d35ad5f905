package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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
	if isRepository(ctx, root) {
		if s.Version == "" {
			s.Version = git(ctx, root, "describe", "--tags", "--always", "--dirty", "--match", "v*")
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
		if err != nil {
			return stamp{}, usagef("SOURCE_DATE_EPOCH %q is not a number of seconds since 1970; correct or unset it", epoch)
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

// git returns the output of a git command; empty if it fails.
func git(ctx context.Context, root string, arguments ...string) string {
	out, err := exec.CommandContext(ctx, "git", append([]string{"-C", root}, arguments...)...).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
