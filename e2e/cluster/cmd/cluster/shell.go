package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/wva-project/wva/e2e/cluster"
)

// shell runs the user's shell inside, with kubectl on its PATH, until it ends. Ctrl-C goes to the
// shell.
func shell(ctx context.Context, c *cluster.Cluster) error {
	kubectl, err := cluster.Path("kubectl")
	if err != nil {
		return err
	}
	programs := filepath.Join(filepath.Dir(c.Kubeconfig), "programs")
	if err := os.Mkdir(programs, 0o755); err != nil {
		return err
	}
	if err := os.Symlink(kubectl, filepath.Join(programs, "kubectl")); err != nil {
		return err
	}
	name := os.Getenv("SHELL")
	if name == "" {
		name = "/bin/sh"
	}
	fmt.Println("KUBECONFIG is set and kubectl is on the PATH. The cluster ends with this shell.")
	command := exec.CommandContext(context.WithoutCancel(ctx), name)
	command.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig, "PATH="+programs+":"+os.Getenv("PATH"))
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	return command.Run()
}
