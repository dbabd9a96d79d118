package localstack

import "syscall"

// childAttr gives the server its own process group, so that a Ctrl-C at the
// terminal reaches only this process, which ends the server in order. If this
// process dies first, the kernel ends the server.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// kill ends the whole group: java may be a script.
func (p *process) kill() {
	select {
	case <-p.done: // its number may be another's by now
		return
	default:
	}
	syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) //nolint:errcheck // it may be gone by now
}
