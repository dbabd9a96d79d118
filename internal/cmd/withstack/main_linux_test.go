//go:build integration

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/sluicehq/sluice/internal/localstack"
)

// Without a command it says which server has ended by itself, and ends.
func TestEndsWithAServer(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "withstack")
	if err := localstack.Build(t.Context(), binary, "."); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), binary)
	cmd.Env = append(os.Environ(), localstack.EnvDynamoDB+"=", localstack.EnvSQS+"=http://127.0.0.1:9324",
		localstack.EnvOpenSearch+"=http://127.0.0.1:9200", localstack.EnvOpenSearch3+"=http://127.0.0.1:9201")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		if strings.Contains(lines.Text(), "SLUICE_ENDPOINT_DYNAMODB=") {
			syscall.Kill(child(t, cmd.Process.Pid), syscall.SIGKILL)
		}
	}
	err = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 1 {
		t.Errorf("exit code %d (%v), want 1", code, err)
	}
	if want := "withstack: dynamodb has ended by itself: signal: killed\nthe end of "; !strings.Contains(stderr.String(), want) {
		t.Errorf("it says\n%s\nwant %s", &stderr, want)
	}
}

// child is the only child of a process, beside the shell that guards it.
func child(t *testing.T, parent int) int {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, name := range threads {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, pid := range strings.Fields(string(text)) {
			if comm, err := os.ReadFile("/proc/" + pid + "/comm"); err == nil && string(comm) != "sh\n" {
				all = append(all, pid)
			}
		}
	}
	if len(all) != 1 {
		t.Fatalf("%d has the children %v, want one", parent, all)
	}
	pid, err := strconv.Atoi(all[0])
	if err != nil {
		t.Fatal(err)
	}
	return pid
}
