package daemon

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
)

// The question follows no redirect.
func TestApplicationIsThatOfTheAddress(t *testing.T) {
	daemon := httptest.NewServer(Livez("orders", func() string { return "" }))
	defer daemon.Close()
	other := httptest.NewServer(http.RedirectHandler(daemon.URL, http.StatusFound))
	defer other.Close()
	if got := applicationAt(other.Listener.Addr().String()); got != "" {
		t.Errorf("application %q", got)
	}
}

// A second daemon names the process that has its port.
func TestPortInUse(t *testing.T) {
	s, err := serve("127.0.0.1:0", endpoints{"GET /livez": Livez("orders", func() string { return "" })}, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.stop()
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	go func() { // no HTTP is spoken there
		for {
			c, err := other.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("220 mail\r\n"))
			_ = c.Close()
		}
	}()
	process := fmt.Sprintf("process %d (", os.Getpid())
	for _, tt := range []struct {
		address string
		sluice  bool
	}{{s.address.String(), true}, {other.Addr().String(), false}} {
		_, err := listen(tt.address)
		if err == nil {
			t.Fatal("it listens")
		}
		if runtime.GOOS == "linux" && !strings.Contains(err.Error(), "it is held by "+process) {
			t.Errorf("no %q in %v", process, err)
		}
		if got := strings.Contains(err.Error(), `the Sluice daemon of application "orders"`); got != tt.sluice {
			t.Errorf("%v", err)
		}
	}
}

func TestProcessOn(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	link := func(to string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(to), Mode: os.ModeSymlink} }
	const table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n" +
		"   0: 0100007F:24F8 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0 100 0 0 10 0\n" +
		"   1: 0100007F:24F9 0100007F:24F8 01 00000000:00000000 00:00000000 00000000  1000        0 4712 1 0 100 0 0 10 0\n"
	root := fstest.MapFS{
		"proc/net/tcp": file(table), "proc/12/comm": file("sluice\n"), "proc/12/fd/3": link("socket:[4711]"),
		"proc/13/comm": file("curl\n"), "proc/13/fd/4": link("socket:[4712]"), "proc/self/fd/3": link("socket:[4711]"),
	}
	if got := processOn(root, 9464); got != "process 12 (sluice)" {
		t.Errorf("port 9464: %q", got)
	}
	root["proc/net/tcp6"] = file(strings.Replace(table, "4711", "4713", 1))
	root["proc/14/comm"], root["proc/14/fd/5"], root["proc/14/fd/6"] = file("mail\x1b[2J\n"), link("socket:[4713]"), link("socket:[4713]")
	if got := processOn(root, 9464); got != `process 12 (sluice) or process 14 (mail\x1b[2J)` {
		t.Errorf("port 9464 at two addresses: %q", got)
	}
	if got := processOn(root, 9465); got != "" {
		t.Errorf("a connection: %q", got)
	}
	if got := processOn(fstest.MapFS{}, 9464); got != "" {
		t.Errorf("no /proc: %q", got)
	}
}
