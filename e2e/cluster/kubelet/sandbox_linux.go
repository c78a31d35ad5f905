package kubelet

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// sandboxVariable holds the sandbox of a container's first process.
const sandboxVariable = "WVA_CLUSTER_CONTAINER"

// Enter becomes the container that this process was started as, or returns at once if it was not.
// It is called first in the main function of every program that starts a kubelet, because a
// container's first process is that program.
func Enter() {
	text := os.Getenv(sandboxVariable)
	if text == "" {
		return
	}
	err := become(text) // returns with an error only
	_, _ = fmt.Fprintln(os.Stderr, "kubelet: start the container:", err)
	os.Exit(128)
}

// become sets up the namespaces that the process is in and runs the container's command in its
// place.
func become(text string) error {
	runtime.LockOSThread() // capabilities are the thread's
	var s sandbox
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return err
	}
	// The network is set up from outside, and the other end of this pipe closed after that.
	var sign [1]byte
	if n, _ := os.NewFile(3, "network").Read(sign[:]); n == 0 {
		return errors.New("the network was not set up")
	}
	if err := s.furnish(); err != nil {
		return err
	}
	if err := syscall.Chroot(s.Root); err != nil {
		return fmt.Errorf("change the root: %w", err)
	}
	if err := os.Chdir(s.Directory); err != nil {
		return err
	}
	if err := unix.Sethostname([]byte(s.Hostname)); err != nil {
		return fmt.Errorf("set the host name: %w", err)
	}
	if err := s.drop(); err != nil {
		return fmt.Errorf("drop privileges: %w", err)
	}
	path, err := exec.LookPath(s.Command[0])
	if err != nil {
		return err
	}
	return fmt.Errorf("run %s: %w", path, syscall.Exec(path, s.Command, s.Environment)) //nolint:gosec // it is the pod's command
}

// furnish mounts the root and all below it.
func (s *sandbox) furnish() error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep mounts private: %w", err)
	}
	if err := syscall.Mount(s.Root, s.Root, "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount the root: %w", err)
	}
	// Some containers reject a fresh /proc; then there is none.
	_ = syscall.Mount("proc", filepath.Join(s.Root, "proc"), "proc", 0, "")
	for _, m := range s.Mounts {
		target := filepath.Join(s.Root, m.Target)
		if err := syscall.Mount(m.Source, target, "", syscall.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount %s: %w", m.Target, err)
		}
		if !m.ReadOnly {
			continue
		}
		if err := readOnly(target); err != nil {
			return fmt.Errorf("make %s read-only: %w", m.Target, err)
		}
	}
	if s.ReadOnlyRoot {
		if err := readOnly(s.Root); err != nil {
			return fmt.Errorf("make the root read-only: %w", err)
		}
	}
	return nil
}

func readOnly(path string) error {
	return syscall.Mount("", path, "", syscall.MS_REMOUNT|syscall.MS_BIND|syscall.MS_RDONLY, "")
}

// drop gives up the capabilities at the next exec, unless the user is root.
func (s *sandbox) drop() error {
	if s.NoNewPrivileges {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return err
		}
	}
	return unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
}

// process is the first process of a container.
type process struct {
	command *exec.Cmd
	ended   chan struct{}
	err     error // its result; written before ended is closed
}

// startSandbox starts a container, which appends to a log. The process has the container's user,
// and capabilities until it has set up its surroundings.
func startSandbox(s *sandbox, log string) (*process, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	output, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer output.Close() // the process has its own
	ready, tell, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer ready.Close()                       // the process has its own
	command := exec.Command("/proc/self/exe") //nolint:noctx // it is ended by a signal
	command.Env = []string{sandboxVariable + "=" + string(text)}
	command.Stdout, command.Stderr, command.ExtraFiles = output, output, []*os.File{ready}
	id := []syscall.SysProcIDMap{{ContainerID: int(s.User), HostID: os.Getuid(), Size: 1}}
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID |
			syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
		UidMappings: id, GidMappings: id,
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SYS_CHROOT, unix.CAP_DAC_OVERRIDE},
	}
	if err := command.Start(); err != nil {
		_ = tell.Close()
		return nil, fmt.Errorf("start a process in namespaces of its own: %w", err)
	}
	p := &process{command: command, ended: make(chan struct{})}
	go func() {
		p.err = command.Wait()
		close(p.ended)
	}()
	err = connect(command.Process.Pid, s.Address)
	if err == nil {
		_, err = tell.Write([]byte{1})
	}
	_ = tell.Close() // nothing is buffered
	if err != nil {
		p.kill()
		return nil, fmt.Errorf("connect %s: %w", s.Address, err)
	}
	return p, nil
}

// number is that of the process outside its namespaces.
func (p *process) number() int { return p.command.Process.Pid }

// terminate asks the process to end.
func (p *process) terminate() { _ = p.command.Process.Signal(syscall.SIGTERM) } // it may have ended

// kill ends the process, and with it all of its PID namespace.
func (p *process) kill() {
	_ = p.command.Process.Kill() // it may have ended
	<-p.ended
}

// result is the error of a process that has ended.
func (p *process) result() error {
	<-p.ended
	if p.err != nil {
		return fmt.Errorf("the container has ended: %w", p.err)
	}
	return errors.New("the container has ended with exit code 0")
}
