package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/sluicehq/sluice/streamtest"
)

// A daemon needs to write nowhere but to the folder of its state file, and takes
// SIGHUP for no end.
func TestGuest(t *testing.T) {
	noAWS(t)
	svc := streamtest.NewService(t)
	table := svc.CreateTable("orders", streamtest.TableOptions{PartitionKey: "id"})
	before := names(t, ".")
	dir := t.TempDir()
	nowhere := filepath.Join(t.TempDir(), "missing")
	c := startChild(t, "holding", []string{"HOME=" + nowhere, "TMPDIR=" + nowhere, "XDG_CACHE_HOME=" + nowhere},
		"--table", "orders", "--start", "TRIM_HORIZON", "--listen", "127.0.0.1:0", "--log-level", "debug", "--pprof",
		"--state", filepath.Join(dir, "state.db"), "--endpoint-dynamodb", svc.URL())
	table.Put(map[string]any{"id": "poison"})
	table.Put(map[string]any{"id": "well"})
	c.until("msg=handled", 2)
	for _, path := range []string{"/", "/api/held", "/metrics", "/readyz", "/livez", "/debug/pprof/goroutine?debug=1"} {
		if code, body := c.ask("GET", path); code != 200 {
			t.Errorf("GET %s: %d %s", path, code, body)
		}
	}
	for _, file := range written(t, c.Process.Pid) {
		if !strings.HasPrefix(file, dir+"/") {
			t.Errorf("it has %s open for writing", file)
		}
	}
	c.signal(syscall.SIGHUP)
	c.until("nothing is reloaded", 1)
	table.Put(map[string]any{"id": "later"})
	c.until("msg=handled", 3)
	c.signal(syscall.SIGTERM)
	if code := c.exit(); code != 0 {
		t.Errorf("exit %d:\n%s", code, c.output())
	}
	if got := names(t, dir); !slices.Equal(got, []string{"state.db"}) {
		t.Errorf("the folder of the state file holds %q", got)
	}
	if got := names(t, "."); !slices.Equal(got, before) {
		t.Errorf("the working directory holds %q, and held %q", got, before)
	}
	if _, err := os.Stat(nowhere); err == nil {
		t.Errorf("%s was made", nowhere)
	}
}

func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// written lists the regular files that a process has open for writing.
func written(t *testing.T, pid int) (files []string) {
	t.Helper()
	fds := fmt.Sprintf("/proc/%d/fd", pid)
	for _, fd := range names(t, fds) {
		file, err := os.Readlink(filepath.Join(fds, fd))
		if err != nil || !strings.HasPrefix(file, "/") {
			continue // closed meanwhile, or no file
		}
		if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
			continue
		}
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%s", pid, fd))
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(text), "flags:")
		flags, err := strconv.ParseInt(strings.TrimSpace(strings.SplitN(rest, "\n", 2)[0]), 8, 64)
		if err != nil {
			t.Fatalf("fdinfo: %s", text)
		}
		if flags&(syscall.O_WRONLY|syscall.O_RDWR) != 0 {
			files = append(files, file)
		}
	}
	if len(files) == 0 {
		t.Error("nothing is open for writing, not even the state file")
	}
	return files
}
