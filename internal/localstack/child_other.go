//go:build !unix

package localstack

import (
	"os/exec"
	"syscall"
)

func childAttr() *syscall.SysProcAttr { return nil }

func killChild(cmd *exec.Cmd) {
	cmd.Process.Kill() //nolint:errcheck // it may be gone by now
}

// guard does nothing: these systems have no shell.
func guard(*exec.Cmd, []string) (dismiss func(), err error) { return func() {}, nil }
