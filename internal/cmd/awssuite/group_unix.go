//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// inGroup has the end of the command's context end the command and what it
// started. A Ctrl-C reaches the suite alone, which then ends them.
func inGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
