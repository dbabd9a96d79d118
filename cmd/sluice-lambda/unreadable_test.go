//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// The error for a package made with umask 077 explains the mistake.
func TestUnreadableFile(t *testing.T) {
	dir := filepath.Dir(bootstrap)
	path := filepath.Join(dir, "unreadable.yaml")
	if err := os.WriteFile(path, []byte(file), 0o000); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bootstrap)
	cmd.Env = []string{"SLUICE_CONFIG=" + path}
	if os.Getuid() == 0 { // who may read everything
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	out, err := cmd.CombinedOutput()
	if want := path + ": permission denied: make it readable to everybody (chmod a+r) before it is packed"; err == nil || !strings.Contains(string(out), want) {
		t.Errorf("%v, %s; want %s", err, out, want)
	}
}
