//go:build unix

package localstack

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// childAttr gives a child its own process group, so that a Ctrl-C at the terminal
// reaches only this process, which ends the child in order.
func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// killChild ends the whole group: java may be a script.
func killChild(cmd *exec.Cmd) {
	syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) //nolint:errcheck // it may be gone by now
}

// guard starts a shell that reads from a pipe. Only this process can write to it, and
// never does: the shell reads on when this process is gone, kills the child's group and
// removes the files.
func guard(child *exec.Cmd, files []string) (dismiss func(), err error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	const script = `read -r end; kill -9 "-$0"; rm -rf -- "$@"`
	sh := exec.Command("/bin/sh", append([]string{"-c", script, strconv.Itoa(child.Process.Pid)}, files...)...)
	sh.Stdin, sh.SysProcAttr = read, childAttr()
	err = sh.Start()
	read.Close()
	if err != nil {
		write.Close()
		return nil, err
	}
	return func() {
		killChild(sh)
		sh.Wait() //nolint:errcheck // it was killed
		write.Close()
	}, nil
}
