//go:build !linux

package localstack

import "syscall"

// childAttr asks for nothing: only Linux ends a child with its parent.
func childAttr() *syscall.SysProcAttr { return nil }

func (p *process) kill() {
	p.cmd.Process.Kill() //nolint:errcheck // it may be gone by now
}
