//go:build integration

package daemon

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/sluicehq/sluice/internal/localtest"
)

// otlp is a receiver of the OpenTelemetry Collector.
type otlp struct {
	t          *testing.T
	http, grpc string // its addresses
	in         io.Closer
	cmd        *exec.Cmd
	mu         sync.Mutex
	out        bytes.Buffer
	log        bytes.Buffer
}

// receivedSpan is a line of tools/collector.
type receivedSpan struct {
	Service, Trace, ID, Parent, Name, Status, Description string

	Links      []string
	Attributes map[string]any
}

var buildCollector = sync.OnceValues(func() (string, error) {
	path, err := filepath.Abs("../../.cache/collector")
	if err != nil {
		return "", err
	}
	if out, err := exec.Command("go", "-C", "../../tools/collector", "build", "-o", path, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the collector, which takes a module proxy for the first time: %w\n%s", err, out)
	}
	return path, nil
})

func startCollector(t *testing.T) *otlp {
	t.Helper()
	path, err := buildCollector()
	if err != nil {
		t.Fatal(err)
	}
	c := &otlp{t: t, http: freeAddress(t), grpc: freeAddress(t)}
	c.cmd = exec.CommandContext(t.Context(), path, c.http, c.grpc)
	c.cmd.Stdout, c.cmd.Stderr = lockedWriter{&c.mu, &c.out}, lockedWriter{&c.mu, &c.log}
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	localtest.Await(t, "the collector listens", func() string {
		if text := c.text(&c.log); !strings.Contains(text, "ready") {
			return "not ready: " + text
		}
		return ""
	})
	return c
}

type lockedWriter struct {
	mu *sync.Mutex
	b  *bytes.Buffer
}

func (w lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

func (c *otlp) text(b *bytes.Buffer) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return b.String()
}

// end ends the collector and returns what it has received, by name.
func (c *otlp) end() map[string][]receivedSpan {
	c.t.Helper()
	c.in.Close()
	if err := c.cmd.Wait(); err != nil {
		c.t.Fatalf("the collector: %v\n%s", err, c.text(&c.log))
	}
	by := map[string][]receivedSpan{}
	for line := range strings.Lines(c.text(&c.out)) {
		var s receivedSpan
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			c.t.Fatal(err)
		}
		by[s.Name] = append(by[s.Name], s)
	}
	return by
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// A daemon that samples nothing exports a trace of every failure, and none besides, to
// a receiver of the OpenTelemetry Collector. Its log has the ids.
func TestTracesOfFailures(t *testing.T) {
	for _, protocol := range []string{"http/protobuf", "grpc"} {
		t.Run(protocol, func(t *testing.T) {
			tb := newTable(t, images)
			c := startCollector(t)
			endpoint := "http://" + c.http
			if protocol == "grpc" {
				endpoint = "http://" + c.grpc
			}
			const good, bad = 30, 4
			for i := range good {
				tb.put(fmt.Sprint("good", i))
			}
			for i := range bad {
				tb.put(fmt.Sprint("bad", i))
			}
			d := startChild(t, "refused", []string{
				"OTEL_EXPORTER_OTLP_ENDPOINT=" + endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL=" + protocol,
				"OTEL_TRACES_SAMPLER=traceidratio", "OTEL_TRACES_SAMPLER_ARG=0", "OTEL_BSP_SCHEDULE_DELAY=3600000",
			}, tb.args(filepath.Join(t.TempDir(), "state.db"), "--start", "TRIM_HORIZON")...)
			d.until("sent good", good)
			d.until("record parked as a dead letter", bad)
			d.signal(syscall.SIGTERM) // which flushes
			if code := d.exit(); code != 0 {
				t.Fatalf("exit code %d:\n%s", code, d.output())
			}
			by := c.end()
			records, traces := map[string]receivedSpan{}, map[string]bool{}
			for _, s := range by["process "+tb.name] {
				records[s.ID] = s
				traces[s.Trace] = true
				if s.Service != "refused" || s.Status != "Error" || !strings.Contains(s.Description, "the sink refuses it") || s.Attributes["sluice.event"] != "INSERT" {
					t.Errorf("record %+v", s)
				}
			}
			if len(records) != bad || len(by["route send"]) != bad || len(by["park send"]) != bad || len(by["commit bin"]) == 0 || len(by["receive "+tb.name]) != len(traces) {
				t.Fatalf("%d records, %d calls, %d parkings, %d commits, %d pages of %d traces: %v\n%s", len(records), len(by["route send"]), len(by["park send"]),
					len(by["commit bin"]), len(by["receive "+tb.name]), len(traces), by, d.output())
			}
			calls := map[string]bool{}
			for _, s := range by["route send"] {
				calls[s.ID] = true
				if _, ok := records[s.Parent]; !ok || s.Status != "Error" {
					t.Errorf("call %+v", s)
				}
			}
			linked := map[string]bool{}
			for _, s := range by["commit bin"] {
				if !calls[s.Parent] || s.Status != "Error" {
					t.Errorf("commit %+v", s)
				}
				for _, id := range s.Links {
					linked[id] = true
				}
			}
			for id := range records {
				if !linked[id] {
					t.Errorf("no commit links to the record %+v", records[id])
				}
			}
			for _, s := range by["park send"] {
				letter, _ := s.Attributes["sluice.dead_letter"].(string)
				line := regexp.MustCompile(`record parked as a dead letter.* deadLetter=` + regexp.QuoteMeta(letter) + ` .*trace_id=` + s.Trace)
				if letter == "" || !line.MatchString(d.output()) {
					t.Errorf("no line of the log has the letter %q and the trace %s:\n%s", letter, s.Trace, d.output())
				}
			}
		})
	}
}
