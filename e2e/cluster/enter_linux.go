package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
)

const remedy = "allow unprivileged user namespaces: sysctl user.max_user_namespaces, and on Ubuntu " +
	"kernel.apparmor_restrict_unprivileged_userns=0"

// second is the program's second process, which is the first of its namespaces: its end ends all
// others there.
func second(directory, stage string) *exec.Cmd {
	command := exec.Command("/proc/self/exe", os.Args[1:]...) //nolint:noctx // it is ended by a signal or with its parent
	command.Args[0] = os.Args[0]
	command.Env = append(os.Environ(), directoryVariable+"="+directory, stageVariable+"="+stage)
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		Pdeathsig:   syscall.SIGKILL,
	}
	return command
}

// probe tests whether the system grants the namespaces and allows their setup: some grant them and
// then allow nothing.
func probe(directory string) error {
	runtime.LockOSThread() // Pdeathsig is sent when the thread ends, not the process
	defer runtime.UnlockOSThread()
	var stderr bytes.Buffer
	command := second(directory, stageProbe)
	command.Stderr = &stderr
	if err := command.Run(); err != nil {
		return deniedError{fmt.Sprintf("the system grants no private user, network, mount and PID namespace (%v %s); %s",
			err, strings.TrimSpace(stderr.String()), remedy)}
	}
	return nil
}

// again runs the program in the namespaces and returns its exit code.
func again(directory string) (int, error) {
	runtime.LockOSThread() // Pdeathsig is sent when the thread ends, not the process
	defer runtime.UnlockOSThread()
	command := second(directory, stageRun)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGHUP)
	if err := command.Start(); err != nil {
		return 0, err
	}
	passed := make(chan struct{})
	go func() {
		defer close(passed)
		for s := range signals {
			_ = command.Process.Signal(s) // it may have ended
		}
	}()
	err := command.Wait()
	signal.Stop(signals)
	close(signals)
	<-passed
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 0, err
	}
	if code := command.ProcessState.ExitCode(); code >= 0 {
		return code, nil
	}
	return 1, nil // ended by a signal
}
