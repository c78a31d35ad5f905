package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"

	"github.com/wva-project/wva/e2e/cluster"
)

// shell runs the user's shell inside, with kubectl on its PATH, until it ends. Ctrl-C goes to the
// shell.
func shell(ctx context.Context, c *cluster.Cluster) error {
	environment, err := c.Environment()
	if err != nil {
		return err
	}
	name := os.Getenv("SHELL")
	if name == "" {
		name = "/bin/sh"
	}
	fmt.Println("KUBECONFIG is set, and kubectl and helm, if it is built, are on the PATH. The cluster ends with this shell.")
	command := exec.CommandContext(context.WithoutCancel(ctx), name)
	command.Env = environment
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	return command.Run()
}
