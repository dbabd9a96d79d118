package localstack

import "os/exec"

// StartChild starts a program, and closes done when it has ended. If this process is
// killed first, its children are killed, too, and the files removed; but not on Windows.
func StartChild(cmd *exec.Cmd, files ...string) (done <-chan struct{}, err error) {
	cmd.SysProcAttr = childAttr()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	dismiss, err := guard(cmd, files)
	if err != nil {
		killChild(cmd)
		cmd.Wait() //nolint:errcheck // it was killed
		return nil, err
	}
	ended := make(chan struct{})
	go func() {
		cmd.Wait() //nolint:errcheck // ProcessState has it
		dismiss()
		close(ended)
	}()
	return ended, nil
}
