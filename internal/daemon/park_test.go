package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/state"
	"github.com/sluicehq/sluice/streamtest"
)

// oneFlow is the routes of one flow.
type oneFlow struct {
	*flow.Flow
	group *flow.Group
}

func (f oneFlow) States() []flow.RouteState { return f.group.States() }

// A person parks the records of a partial outage, and runs them again once the
// sink is mended.
func TestParkedRouteIsRedriven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const failing = 50
		var mended atomic.Bool
		m := router.New(router.TypeFrom(router.Table(map[string]string{"test": "t"})))
		m.Handle("t#*", func(_ context.Context, rec *sluice.Record) error {
			if strings.HasPrefix(string(rec.Keys.Raw()), `{"pk":{"S":"bad`) && !mended.Load() {
				return errors.New("503: try later")
			}
			return nil
		}, router.Name("search"), router.Redrive())
		box := deadletter.NewBox(state.NewMemory(), "app")
		quiet := slog.New(slog.DiscardHandler)
		f := oneFlow{group: flow.NewGroup(m)}
		f.Flow = flow.Open(t.Context(), m, flow.Options{DeadLetter: box, Logger: quiet, Group: f.group})
		n := 0
		submit := func(key string) {
			n++
			rec := recordtest.New(recordtest.Spec{Keys: fmt.Sprintf(`{"pk":{"S":"%s%d"}}`, key, n), Sequence: recordtest.Sequence(n), Shard: "shard"})
			rec.Created = time.Now()
			if _, err := f.Submit(t.Context(), rec); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		for range failing {
			submit("good")
			submit("bad")
		}
		h := Parking("", "app", f, quiet)
		ask := func(query string) (a ParkedRoute) {
			t.Helper()
			r := httptest.NewRequest("POST", "http://127.0.0.1:9464/park?"+query, nil)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil || w.Code != 200 {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			return a
		}
		want := ParkedRoute{Route: "search", State: "partial outage", Failing: failing, Error: "503: try later", Parked: failing, DryRun: true}
		if got := ask("route=search&dryRun=1"); got != want {
			t.Errorf("dry run: %+v, want %+v", got, want)
		}
		want.DryRun = false
		if got := ask("route=search"); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		time.Sleep(time.Second)
		if got, want := ask("route=search"), (ParkedRoute{Route: "search", State: "works"}); got != want {
			t.Errorf("the second time: %+v, want %+v", got, want)
		}
		if _, err := f.Close(t.Context()); err != nil { // all are settled
			t.Error(err)
		}
		mended.Store(true)
		report, err := box.RedriveAll(t.Context(), m, deadletter.Filter{}, deadletter.How{})
		if err != nil || report.Done != failing || report.Failed+report.Waiting > 0 {
			t.Errorf("redrive: %+v, %v", report, err)
		}
	})
}

// noRoutes must not be asked to park.
type noRoutes struct{ t *testing.T }

func (n noRoutes) States() []flow.RouteState { return []flow.RouteState{{Route: "a"}, {Route: "b"}} }

func (n noRoutes) Park(route string, _ bool) (parked, pending int) {
	n.t.Errorf("parked %q", route)
	return 0, 0
}

// counted has parked so many.
type counted struct{ parked, pending int }

func (c counted) States() []flow.RouteState { return []flow.RouteState{{Route: "a"}} }

func (c counted) Park(string, bool) (parked, pending int) { return c.parked, c.pending }

// The answer and the log count the parked records, and the records that will be parked.
// Without any, the log has no line.
func TestParkedAndPending(t *testing.T) {
	for c, want := range map[counted]string{
		{}:     "",
		{3, 0}: `level=WARN msg="failing records parked by hand" route=a count=3 pending=0`,
		{0, 2}: `level=WARN msg="failing records parked by hand" route=a count=0 pending=2`,
	} {
		var log bytes.Buffer
		r := httptest.NewRequest("POST", "http://127.0.0.1:9464/park?route=a", nil)
		w := httptest.NewRecorder()
		Parking("", "app", c, slog.New(slog.NewTextHandler(&log, nil))).ServeHTTP(w, r)
		var a ParkedRoute
		if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil || a.Parked != c.parked || a.Pending != c.pending {
			t.Errorf("%+v: %s, %v", c, w.Body, err)
		}
		if !strings.Contains(log.String(), want) || want == "" && log.Len() > 0 {
			t.Errorf("%+v: the log says %s", c, &log)
		}
	}
}

func TestParkingRefuses(t *testing.T) {
	for _, c := range []struct {
		name, query string
		change      func(r *http.Request)
		code        int
		body        string
	}{
		{"another application", "route=a", func(r *http.Request) { r.Header.Set(ApplicationHeader, "orders") }, 421, `of the application "app", not "orders"`},
		{"another state file", "route=a", func(r *http.Request) { r.Header.Set(StateHeader, "/other.db") }, 421, "holds the state file"},
		{"another route", "route=c", func(*http.Request) {}, 404, `there is no route "c": want one of a, b`},
		{"no route", "", func(*http.Request) {}, 404, `there is no route ""`},
		{"another parameter", "route=a&dryrun=1", func(*http.Request) {}, 400, `there is no parameter "dryrun"`},
		{"neither on nor off", "route=a&dryRun=perhaps", func(*http.Request) {}, 400, "neither 1 nor 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := httptest.NewRequest("POST", "http://127.0.0.1:9464/park?"+c.query, nil)
			c.change(r)
			w := httptest.NewRecorder()
			Parking("/state.db", "app", noRoutes{t}, slog.New(slog.DiscardHandler)).ServeHTTP(w, r)
			if w.Code != c.code || !strings.Contains(w.Body.String(), c.body) {
				t.Errorf("%d %q, want %d %q", w.Code, w.Body, c.code, c.body)
			}
		})
	}
}

// A daemon parks the failing records of a route.
func TestDaemonParks(t *testing.T) {
	noAWS(t)
	svc := streamtest.NewService(t)
	table := svc.CreateTable("orders", streamtest.TableOptions{PartitionKey: "id"})
	table.Put(map[string]any{"id": "one"})
	c := startChild(t, "broken", nil, "--table", "orders", "--start", "TRIM_HORIZON", "--listen", "127.0.0.1:0",
		"--state", filepath.Join(t.TempDir(), "state.db"), "--endpoint-dynamodb", svc.URL())
	c.until("record failed", 1)
	if code, body := c.ask("GET", "/park?route=*%23*"); code != 405 {
		t.Errorf("looking parks: %d %s", code, body)
	}
	if code, body := c.ask("POST", "/park?route=*%23*"); code != 200 || !strings.Contains(body, `"parked":1`) && !strings.Contains(body, `"pending":1`) {
		t.Errorf("/park: %d %s", code, body)
	}
	c.until("record parked as a dead letter", 1)
	c.signal(syscall.SIGTERM)
	if code := c.exit(); code != 0 {
		t.Errorf("exit %d:\n%s", code, c.output())
	}
	http.DefaultClient.CloseIdleConnections()
}
