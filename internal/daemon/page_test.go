package daemon

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/access"
	"github.com/sluicehq/sluice/internal/holders"
	"github.com/sluicehq/sluice/internal/page"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/sources/poller"
	"github.com/sluicehq/sluice/streamtest"
)

// visitor is a browser at a daemon.
type visitor struct {
	t    *testing.T
	base string
	*http.Client
	session []*http.Cookie
}

func (v *visitor) ask(method, path string, form url.Values, change ...func(*http.Request)) (int, string) {
	v.t.Helper()
	r, err := http.NewRequestWithContext(v.t.Context(), method, v.base+path, strings.NewReader(form.Encode()))
	if err != nil {
		v.t.Fatal(err)
	}
	r.Header.Set("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
	if method == "POST" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", v.base)
	}
	for _, c := range v.session {
		r.AddCookie(c)
	}
	for _, f := range change {
		f(r)
	}
	resp, err := v.Do(r)
	if err != nil {
		v.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	if cookies := resp.Cookies(); len(cookies) > 0 {
		v.session = cookies
	}
	return resp.StatusCode, string(body)
}

// A browser gets in by a link, sees the daemon, and purges a letter. Without the
// session it learns nothing and changes nothing.
func TestPageOfADaemon(t *testing.T) {
	noAWS(t)
	svc := streamtest.NewService(t)
	table := svc.CreateTable("orders", streamtest.TableOptions{PartitionKey: "id"})
	c := startChild(t, "holding", nil, "--table", "orders", "--start", "TRIM_HORIZON", "--listen", "127.0.0.1:0", "--log-level", "debug", "--grace", "10s",
		"--state", filepath.Join(t.TempDir(), "state.db"), "--endpoint-dynamodb", svc.URL())
	for _, id := range []string{"held", "poison", "well"} {
		table.Put(map[string]any{"id": id, "payload": "secret"})
	}
	c.until("msg=handled", 3)
	_, rest, _ := strings.Cut(c.output(), "msg=listening address=")
	address, _, _ := strings.Cut(rest, "\n")
	v := &visitor{t: t, base: "http://" + address, Client: &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	defer v.CloseIdleConnections()

	_, list := c.ask("GET", "/deadletters")
	var letters DeadLetterPage
	if err := json.Unmarshal([]byte(list), &letters); err != nil || len(letters.DeadLetters) != 1 {
		t.Fatalf("%s, %v", list, err)
	}
	id := letters.DeadLetters[0].ID
	purge := func() (int, string) { return v.ask("POST", "/page/letters/purge", url.Values{"id": {id}}) }

	for _, path := range []string{"/", "/page/letters", "/page/letters/" + id, "/page/settings", "/api/status", "/api/shards"} {
		code, body := v.ask("GET", path, nil)
		if code != 401 || strings.Contains(body, "orders") || strings.Contains(body, "secret") || strings.Contains(body, "holding") {
			t.Errorf("%s without a session: %d %s", path, code, body)
		}
	}
	if code, _ := purge(); code != 401 {
		t.Errorf("a purge without a session: %d", code)
	}
	if code, _ := v.ask("GET", "/page/static/style.css", nil); code != 200 {
		t.Errorf("the style of the locked page: %d", code)
	}

	_, made := c.ask("POST", "/session")
	var link access.Link
	if err := json.Unmarshal([]byte(made), &link); err != nil {
		t.Fatal(err)
	}
	if code, _ := v.ask("POST", link.Path, nil); code != 303 || len(v.session) != 1 {
		t.Fatalf("a link: %d, %v", code, v.session)
	}
	for _, step := range []struct {
		action, of string
		code       int
		want       string
	}{
		{"pause", "for=13h", 400, "12h"}, {"slow", "for=1h", 400, "concurrency"}, {"slow", "for=1h&rate=5", 303, "slowed to 5 records a second for"},
		{"pause", "for=1h", 303, "paused for"}, {"resume", "", 303, `value="1h"`}, {"stop", "", 404, "want pause"},
	} {
		form, _ := url.ParseQuery(step.of)
		form.Set("route", "work")
		code, body := v.ask("POST", "/page/route/"+step.action, form)
		if code == 303 {
			_, body = v.ask("GET", "/page/route?route=work", nil)
		}
		if code != step.code || !strings.Contains(body, step.want) || step.action == "resume" && strings.Contains(body, "An operator") {
			t.Errorf("%s: %d, no %q in %s", step.action, code, step.want, body)
		}
	}
	for path, wants := range map[string][]string{
		"/":                        {"holding", "ready, look below", "work", "works", "/page/shards?table=orders", "not\tyet"},
		"/page/shards":             {table.Shards()[0].ID, "open", "(this worker)"},
		"/page/letters/" + id[:44]: {"never", "secret", "poison", "Redrive…"},
		"/page/settings":           {svc.URL(), "TRIM_HORIZON"},
		"/page/gaps":               {"No gap is open"},
		"/api/status":              {`"application": "holding"`, `"hoursToLoss": 2`},
	} {
		code, body := v.ask("GET", path, nil)
		for _, want := range wants {
			if code != 200 || !strings.Contains(body, want) {
				t.Errorf("%s: %d, no %q in %s", path, code, want, body)
			}
		}
	}
	if _, body := c.ask("GET", "/"); !strings.HasPrefix(body, "holding, version ") {
		t.Errorf("for others: %s", body)
	}
	for what, change := range map[string]func(*http.Request){
		"another page": func(r *http.Request) { r.Header.Set("Origin", "http://example.com") },
		"no page":      func(r *http.Request) { r.Header.Del("Origin") },
	} {
		if code, _ := v.ask("POST", "/page/letters/purge", url.Values{"id": {id}}, change); code != 403 {
			t.Errorf("a purge of %s: %d", what, code)
		}
	}
	if _, body := c.ask("GET", "/deadletters"); !strings.Contains(body, id) {
		t.Error("the letter is gone")
	}
	if code, body := purge(); code != 200 || !strings.Contains(body, "Purged 1 dead letter<") {
		t.Errorf("a purge: %d %s", code, body)
	}
	if _, body := c.ask("GET", "/deadletters"); strings.Contains(body, id) {
		t.Error("the letter is still there")
	}
	if strings.Contains(c.output(), "secret") {
		t.Error("the log has the contents of items")
	}
	c.signal(syscall.SIGTERM)
	c.exit()
	http.DefaultClient.CloseIdleConnections()
}

func TestTablesShown(t *testing.T) {
	shard := func(table, id string) poller.Shard {
		return poller.Shard{Table: table, StreamARN: "arn:" + table, ID: id}
	}
	known := []poller.KnownShard{
		{Shard: shard("a", "1"), Closed: true, Settled: true}, {Shard: shard("a", "2"), Parent: "1", Closed: true}, {Shard: shard("a", "3"), Parent: "1"},
		{Shard: shard("a", "4"), Halted: true, Closed: true}, {Shard: shard("b", "1")},
	}
	reads := []poller.Status{{Shard: shard("a", "2"), Lag: 20 * time.Hour, Unsettled: 7, Position: "p", Err: errors.New("throttled")}, {Shard: shard("c", "9"), Lag: 30 * time.Hour}}
	got := tablesShown(known, reads, map[[2]string]string{{"arn:a", "3"}: "other", {"arn:a", "2"}: "before", {"arn:a", "1"}: "before"}, "me")
	want := []page.Table{
		{Table: "a", LagSeconds: 72000, HoursToLoss: 4, Unsettled: 7, Open: 3, Reading: 1, Settled: 1, Shards: []page.Shard{
			{Table: "a", ID: "1", State: page.Settled, HoursToLoss: page.Unknown}, {Table: "a", ID: "2", Parent: "1", State: page.Closed, Reading: true, Owner: "me", Position: "p", LagSeconds: 72000, HoursToLoss: 4, Unsettled: 7, Error: "throttled"},
			{Table: "a", ID: "3", Parent: "1", State: page.Open, HoursToLoss: page.Unknown, Owner: "other"}, {Table: "a", ID: "4", State: page.Halted, HoursToLoss: page.Unknown},
		}},
		{Table: "b", HoursToLoss: page.Unknown, Open: 1, Shards: []page.Shard{{Table: "b", ID: "1", State: page.Open, HoursToLoss: page.Unknown}}},
		{Table: "c", LagSeconds: 108000, Open: 1, Reading: 1, Shards: []page.Shard{{Table: "c", ID: "9", State: page.Open, Reading: true, Owner: "me", LagSeconds: 108000}}},
	}
	if !slices.EqualFunc(got, want, func(a, b page.Table) bool {
		return slices.Equal(a.Shards, b.Shards) && a.Table == b.Table && a.LagSeconds == b.LagSeconds && a.HoursToLoss == b.HoursToLoss && a.Unsettled == b.Unsettled && a.Open == b.Open && a.Reading == b.Reading && a.Settled == b.Settled
	}) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}

// The workers are listed while somebody looks. Nobody gets an old list for a new one.
func TestFleetView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := func(name string) []holders.Worker { return []holders.Worker{{Name: name}} }
		fleet := &aFleet{takes: time.Second, looks: [][]holders.Worker{of("a"), of("b"), of("c")}}
		v := &fleetView{fleet: fleet}
		want := func(name string, age, takes time.Duration) {
			t.Helper()
			begun := time.Now()
			got, err := v.get(age, countWithin)
			if took := time.Since(begun); took != takes || name == "" && (len(got) > 0 || err == nil) || name != "" && (err != nil || len(got) != 1 || got[0].Name != name) {
				t.Errorf("%v, %v, after %v; want %q after %v", got, err, took, name, takes)
			}
		}
		want("a", fleetOld, time.Second)
		time.Sleep(fleetEvery - time.Second)
		want("a", 0, 0) // nothing is newer than the last list
		time.Sleep(time.Second)
		want("a", fleetOld, 0)
		time.Sleep(2 * time.Second) // the list has come
		want("b", fleetOld, 0)
		time.Sleep(fleetEvery)
		want("c", fleetEvery, time.Second)

		fleet.takes = countWithin + time.Second
		time.Sleep(fleetOld)
		for i := range 3 { // one page waits once
			want("", fleetOld, []time.Duration{countWithin, 0, 0}[i])
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if _, err := v.get(fleetOld, countWithin); err == nil || !strings.Contains(err.Error(), "throttled") {
			t.Errorf("after a failure: %v", err)
		}
		synctest.Wait()
		time.Sleep(time.Minute)
	})
	if all, err := (*fleetView)(nil).get(0, 0); all != nil || err != nil {
		t.Errorf("of a file: %v, %v", all, err)
	}
}

// A worker's page has what other workers report, beside its own.
func TestOtherWorkersAreShown(t *testing.T) {
	one := func(name string, r holders.Report) holders.Worker {
		return holders.Worker{Name: name, State: holders.Living, Report: &r}
	}
	workers := []holders.Worker{
		one("me", holders.Report{Held: 9}), {Name: "silent"},
		one("b", holders.Report{
			Tables: []holders.TableReport{{Table: "orders", LagSeconds: 7200, Unsettled: 5}, {Table: "users"}, {Table: "of a newer configuration", LagSeconds: 9}},
			Routes: []holders.RouteReport{{Route: "send", State: "outage"}, {Route: "removed", State: "outage"}}, Items: []holders.Item{{Worker: "b", AgeSeconds: 45}}, Held: 3,
		}),
		one("c", holders.Report{Tables: []holders.TableReport{{Table: "orders", LagSeconds: 60, Unsettled: 1}}}),
	}
	others := others(aged(workers, 5*time.Second), "me")
	if len(others) != 2 || others[0].Name != "b" || others[1].Name != "c" || workers[2].Report.Items[0].AgeSeconds != 45 {
		t.Fatalf("%+v", others)
	}
	tables := []page.Table{{Table: "orders", LagSeconds: 100, Unsettled: 10, HoursToLoss: 23.9}, {Table: "users", HoursToLoss: page.Unknown}}
	addTables(tables, others)
	if got := fmt.Sprint(tables); got != "[{orders 7200 22 16 0 0 0 []} {users 0 24 0 0 0 0 []}]" {
		t.Error(got)
	}
	routes := []page.Route{{Route: "index"}, {Route: "send"}}
	addRoutes(routes, others)
	if len(routes[0].Others) != 0 || len(routes[1].Others) != 1 || routes[1].Others[0].Worker != "b" || routes[1].Others[0].State != "outage" {
		t.Errorf("%+v", routes)
	}
	h := addItems([]holders.Item{{AgeSeconds: 70}, {AgeSeconds: 3}}, others, errors.New("timeout"))
	if got := h.Held; len(got) != 3 || got[1].Worker != "b" || got[1].AgeSeconds != 50 || fmt.Sprint(h.Unlisted) != "[worker b holds 2 more what other workers do is not known: timeout]" {
		t.Errorf("%+v", h)
	}
}

func TestAcknowledgeSome(t *testing.T) {
	one, two := sluice.Gap{Table: "a", ShardID: "s", After: recordtest.Sequence(5)}, sluice.Gap{Table: "a", ShardID: "s", After: recordtest.Sequence(6)}
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	l := &lossy{open: []sluice.Gap{one, two}}
	for _, ids := range [][]string{{gapID(one)}, {"none"}} {
		if err := acknowledgeSome(t.Context(), l, ids, logger); err != nil || len(l.open) != 1 || l.open[0].After != two.After || strings.Count(log.String(), "gap acknowledged") != 1 {
			t.Errorf("%v: %v, %v left: %s", ids, err, l.open, log.String())
		}
	}
}

// Letters of one item are redriven in order. A letter that is gone meanwhile is left out.
func TestShownLetters(t *testing.T) {
	l := newLetters(t, t.Context())
	d := &shown{letterServer: &letterServer{ctx: t.Context(), box: l.box, routes: l.routes, logger: slog.New(slog.NewTextHandler(&l.log, nil))}}
	var outcomes []deadletter.Outcome
	how := deadletter.How{Told: func(o deadletter.Outcome) { outcomes = append(outcomes, o) }}
	how.DryRun = true
	if r, err := d.Redrive(t.Context(), l.ids[:1], deadletter.Filter{}, how); err != nil || r.WouldRun != 1 || l.handled != nil || strings.Contains(l.log.String(), "redriven") {
		t.Errorf("a dry run: %+v, %v, %v", r, err, l.handled)
	}
	how.DryRun = false
	if r, err := d.Redrive(t.Context(), []string{l.ids[1], l.ids[0], "gone"}, deadletter.Filter{}, how); err != nil || r.Done != 2 || strings.Join(l.handled, ", ") != "1 redriven, 2 redriven" || len(outcomes) != 3 || strings.Count(l.log.String(), "dead letter redriven") != 2 {
		t.Errorf("%+v, %v, %v, %v: %s", r, err, l.handled, outcomes, l.log.String())
	}
	list, err := d.List(t.Context(), deadletter.Filter{}, "", 1)
	if err != nil || len(list.DeadLetters) != 1 || list.Next != l.ids[2] {
		t.Errorf("%+v, %v", list, err)
	}
	for _, dryRun := range []bool{true, false} {
		if n, err := d.Purge(t.Context(), []string{l.ids[2], "gone"}, deadletter.Filter{}, dryRun); n != 1 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	if n, err := d.Purge(t.Context(), nil, deadletter.Filter{}, false); n != 0 || err != nil { // the gap stays
		t.Errorf("%d, %v", n, err)
	}
	if n, err := d.Purge(t.Context(), []string{l.ids[3]}, deadletter.Filter{}, false); n != 0 || err == nil {
		t.Errorf("a purge of a gap: %d, %v", n, err)
	}
	if _, err := d.Show(t.Context(), l.ids[3]); err != nil {
		t.Errorf("the gap: %v", err)
	}
	if _, err := d.Show(t.Context(), l.ids[2]); !errors.Is(err, deadletter.ErrNotFound) {
		t.Errorf("the purged letter: %v", err)
	}
}
