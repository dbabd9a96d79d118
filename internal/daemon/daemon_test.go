package daemon

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/internal/runtimeapi"
)

func TestHandledIsLogged(t *testing.T) {
	var out bytes.Buffer
	calls := 0
	counting := func(context.Context, *sluice.Record, *sluice.Route, flow.Result, time.Duration, error) { calls++ }
	o := Options{LogFormat: "json", LogLevel: "debug"}
	h := inTurn(counting, logged(newLogger(o, &out)))
	rec := recordtest.New(recordtest.Spec{Keys: `{"pk":{"S":"secret key"}}`, New: `{"pk":{"S":"secret key"},"x":{"S":"secret"}}`, Sequence: recordtest.Sequence(123), Shard: "shard"})
	h(context.Background(), &rec, &sluice.Route{Name: "r"}, flow.Retried, time.Millisecond, errors.New("down"))
	h(context.Background(), &rec, nil, flow.Unrouted, 0, nil)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 || calls != 2 {
		t.Fatalf("%d lines, %d calls: %s", len(lines), calls, out.String())
	}
	for _, want := range []string{`"msg":"handled"`, `"table":"test"`, `"shard":"shard"`, `"sequence":"` + string(rec.Sequence) + `"`, `"result":"retried"`, `"took":1000000`, `"route":"r"`, `"error":"down"`} {
		if !strings.Contains(lines[0], want) {
			t.Errorf("no %s in %s", want, lines[0])
		}
	}
	if strings.Contains(lines[1], `"route":`) || strings.Contains(lines[1], `"error":`) {
		t.Errorf("unrouted: %s", lines[1])
	}
	if strings.Contains(out.String(), "secret") {
		t.Errorf("the log holds what is in the item: %s", out.String())
	}

	o.LogLevel = "info"
	out.Reset()
	h = inTurn(counting, logged(newLogger(o, &out)))
	h(context.Background(), &rec, nil, flow.Unrouted, 0, nil)
	if out.Len() > 0 || calls != 3 {
		t.Errorf("at level info: %q, %d calls", out.String(), calls)
	}
}

func TestServer(t *testing.T) {
	var reasons []string
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "series") })
	s, err := serve("127.0.0.1:0", endpoints{"GET /metrics": metrics, "GET /livez": Livez("orders", func() string { return "" })}, func(*http.Request) []string { return reasons }, logger)
	if err != nil {
		t.Fatal(err)
	}
	_, address, _ := strings.Cut(strings.TrimSpace(log.String()), "address=")
	get := func(path string, code int, body string) {
		t.Helper()
		resp, err := http.Get("http://" + address + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		got, _ := io.ReadAll(resp.Body)
		if resp.StatusCode != code || strings.TrimSpace(string(got)) != body {
			t.Errorf("GET %s: %d %q, want %d %q", path, resp.StatusCode, got, code, body)
		}
	}
	get("/metrics", 200, "series")
	get("/livez", 200, "ok")
	get("/readyz", 200, "ok")
	reasons = []string{"route \"r\" fails", "store fails"}
	get("/readyz", 503, "route \"r\" fails\nstore fails")
	get("/livez", 200, "ok")
	s.stopping.Store(true)
	get("/readyz", 503, "stopping")
	get("/", 404, "404 page not found")
	s.stop()
	if _, err := http.Get("http://" + address + "/livez"); err == nil {
		t.Error("the server answers after its end")
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestServerCutsSlowScrapes(t *testing.T) {
	begun := make(chan struct{})
	slow := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(begun)
		<-r.Context().Done()
	})
	var log bytes.Buffer
	s, err := serve("127.0.0.1:0", endpoints{"GET /metrics": slow}, func(*http.Request) []string { return nil }, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	_, address, _ := strings.Cut(strings.TrimSpace(log.String()), "address=")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if resp, err := http.Get("http://" + address + "/metrics"); err == nil {
			resp.Body.Close()
		}
	}()
	<-begun
	s.stop()
	<-ended
	http.DefaultClient.CloseIdleConnections()
}

// The same program is a function when Lambda starts it.
func TestUnderLambda(t *testing.T) {
	noAWS(t)
	var out bytes.Buffer
	fn, err := runtimeapi.Start(t.Context(), runtimeapi.Command{
		Path: os.Args[0], Env: []string{childEnv + "=echo", "SLUICE_TABLES=a,b", "AWS_REGION=us-east-1"}, Stdout: &out, Stderr: &out,
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	event := recordtest.Event(recordtest.New(recordtest.Spec{Keys: `{"id":{"S":"x"}}`}))
	answer, err := fn.Invoke(t.Context(), event, localtest.Patience)
	if err != nil || string(answer.Payload) != `{"batchItemFailures":[]}` {
		t.Errorf("answer %s, %v", answer.Payload, err)
	}
	if _, err := fn.Stop(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(out.String(), "handled x test true [a b]") {
		t.Errorf("the function printed %s", out.String())
	}
	if !strings.Contains(out.String(), `"Route":"*#*","Done":1`) || !strings.Contains(out.String(), `"ColdStarts":1,"Records":1,"Settled":1`) {
		t.Errorf("its metrics are not in %s", out.String())
	}

	out.Reset()
	fn, err = runtimeapi.Start(t.Context(), runtimeapi.Command{
		Path: os.Args[0], Env: []string{childEnv + "=echo", "SLUICE_EMF=off", "AWS_REGION=us-east-1"}, Stdout: &out, Stderr: &out,
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if _, err := fn.Invoke(t.Context(), event, localtest.Patience); err != nil {
		t.Error(err)
	}
	if _, err := fn.Stop(); err != nil {
		t.Error(err)
	}
	if strings.Contains(out.String(), "_aws") {
		t.Errorf("metrics, though they are off: %s", out.String())
	}

	out.Reset()
	_, err = runtimeapi.Start(t.Context(), runtimeapi.Command{
		Path: os.Args[0], Env: []string{childEnv + "=echo", "ECHO_FAIL=1", "AWS_REGION=us-east-1"}, Stdout: &out, Stderr: &out,
	})
	if err == nil || !strings.Contains(out.String(), "echo: the queue is missing") {
		t.Errorf("a function that cannot start: %v\n%s", err, out.String())
	}
}
