//go:build unix

package localstack

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// A starter that is killed cannot stop its servers; a shell of each does.
func TestServersEndWithTheirParent(t *testing.T) {
	parent := exec.Command(os.Args[0], t.TempDir())
	parent.Env = append(os.Environ(), roleEnv+"=parent")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	addr, ok := strings.CutPrefix(strings.TrimSpace(line), "http://")
	if !ok {
		t.Fatalf("the parent says: %s", line)
	}
	// The server never closes this connection; only its end does.
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatalf("the server does not run: %v", err)
	}
	defer conn.Close()

	parent.Process.Kill()
	parent.Wait()
	if n, err := conn.Read(make([]byte, 1)); err == nil {
		t.Fatalf("the server said %d bytes", n)
	}
}
