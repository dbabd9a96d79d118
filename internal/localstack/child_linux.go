package localstack

import "syscall"

// childAttr puts the server into a process group of its own, so that a Ctrl-C
// at the terminal reaches only us, who end it in order; and has the kernel end
// it when we die without having done so.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// kill ends the whole group: what is called java may be a script.
func (p *process) kill() {
	select {
	case <-p.done: // its number may be another's by now
		return
	default:
	}
	syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) //nolint:errcheck // it may be gone by now
}
